package shards

import (
	"slices"

	"github.com/serf-sbr/serf-sbr/sharding/allocation"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
)

// fickle is the real allocator, which changes its mind: what it wishes counts for as long as it is possible.
type fickle struct {
	*allocation.Allocator
	wishes [MaxShards]int8 // those of the state in which it is asked
}

// Next returns the moves that the allocator would begin now, and those that it wishes.
func (f *fickle) Next(members []allocation.Member, current map[string]allocation.Placement) []allocation.Move {
	moves := f.Allocator.Next(members, current)
	for n, shard := range f.Shards() {
		if f.wishes[n] == nobody {
			continue
		}
		to, at := name(int(f.wishes[n])), current[shard]
		possible := slices.ContainsFunc(members, func(m allocation.Member) bool { return m.ID == to && !m.Leaving && !m.Unreachable })
		if !possible {
			continue
		}
		moves = slices.DeleteFunc(moves, func(m allocation.Move) bool { return m.Shard == shard })
		cutOff := slices.ContainsFunc(members, func(m allocation.Member) bool { return m.ID == at.Owner && m.Unreachable })
		if at.Owner != to && at.To == "" && !cutOff {
			moves = append(moves, allocation.Move{Shard: shard, From: at.Owner, To: to, Reason: allocation.Preferred})
		}
	}
	return moves
}

// wanting are the whims of the allocation: it wants a shard on another member than the one that runs it.
func (w *walker) wanting(to []walk.Move, s *state) []walk.Move {
	if c := &s.chiefs[0]; s.whims == 0 || c.m == nil || !s.Live(int(c.at)) {
		return to
	}
	for n := range w.Shards {
		for i := range w.Members {
			if s.Live(i) && int(s.wishes[n]) != i && !w.active(s, i, n) {
				to = append(to, walk.Move{Kind: wants, At: at(i, n)})
			}
		}
	}
	return to
}
