package explore

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// walkState is one state of a walk. States share resolvers; whoever steps one clones it first.
type walkState struct {
	now     time.Duration
	members []walkNode
	flying  []walkPacket
	record  sbr.Record

	lost, late, crashes, pauses int
}

type walkNode struct {
	r      *sbr.Resolver
	at     time.Duration // when it was last stepped
	up     bool
	paused bool
	since  time.Duration
	last   uint64 // the last attempt
}

// walkPacket is something under way to a member, or from one to the store.
type walkPacket struct {
	to      int // the member; for a request the one that asks
	request bool
	late    bool
	from    int
	attempt uint64
	event   sbr.Event  // what arrives
	effect  sbr.Effect // what is asked of the store
	key     string     // its encoding, without the attempt
}

type walkMove struct {
	name string
	to   *walkState
}

// quiet reports whether nothing happens by itself any more, but for members that go on asking a store they do not reach.
func (w *walker) quiet(s *walkState) bool {
	for i := range s.members {
		m := &s.members[i]
		_, due := s.due(i)
		if m.up && (m.paused || due && (w.access[i] || m.r.State() != sbr.StateUp)) {
			return false
		}
	}
	return !slices.ContainsFunc(s.flying, func(p walkPacket) bool { return !p.late })
}

func (s *walkState) clone() *walkState {
	c := *s
	c.members = slices.Clone(s.members)
	c.flying = slices.Clone(s.flying)
	return &c
}

// key encodes everything that decides what can follow.
func (s *walkState) key() []byte {
	b := []byte{byte(s.lost), byte(s.late), byte(s.crashes), byte(s.pauses)}
	for i := range s.members {
		m := &s.members[i]
		if !m.up {
			b = append(b, 0)
			continue
		}
		b = append(b, 1)
		if m.paused {
			b[len(b)-1] = 2
			b = binary.AppendVarint(b, int64(s.now-m.since))
		}
		if _, ok := m.r.NextDeadline(); ok {
			b = binary.AppendVarint(b, int64(s.now-m.at))
		}
		b = m.r.AppendState(b)
	}
	b = append(b, s.record.Holder...)
	b = binary.AppendUvarint(b, s.record.Token)
	if v := s.record.Verdict; v != nil {
		b = fmt.Append(b, v.Survivors, v.Down)
	}
	packets := make([]string, 0, len(s.flying))
	for i := range s.flying {
		p := &s.flying[i]
		packets = append(packets, fmt.Sprint(p.to, p.from, p.request, p.late, s.members[p.to].last-p.attempt, p.key))
	}
	slices.Sort(packets)
	for _, p := range packets {
		b = append(append(b, p...), 0)
	}
	return b
}

// due is when the next deadline of a member comes.
func (s *walkState) due(i int) (time.Duration, bool) {
	m := &s.members[i]
	if !m.up || m.paused {
		return 0, false
	}
	at, ok := m.r.NextDeadline()
	return max(at, s.now), ok
}

// moves are all steps that can follow s.
func (w *walker) moves(s *walkState) []walkMove {
	var all []walkMove
	onTime := false
	for k := range s.flying {
		p := &s.flying[k]
		if !p.request && s.members[p.to].paused {
			continue // waits until it goes on
		}
		onTime = onTime || !p.late
		all = w.packetMoves(all, s, k)
	}
	if !onTime {
		all = w.timeMoves(all, s)
	}
	return w.nodeMoves(all, s)
}

// packetMoves lets a packet arrive, get lost or be late.
func (w *walker) packetMoves(all []walkMove, s *walkState, k int) []walkMove {
	p := s.flying[k]
	name := fmt.Sprintf("%v: %s %s", s.now, walkID(p.to), p.key)
	if p.request {
		name = fmt.Sprintf("%v: store <- %s %s", s.now, walkID(p.to), p.key)
	}
	n := s.clone()
	n.flying = slices.Delete(n.flying, k, k+1)
	if p.request {
		w.serve(n, p)
	} else {
		w.step(n, p.to, p.event)
	}
	all = append(all, walkMove{name: name, to: n})
	if _, sight := p.event.(sbr.Reachability); s.lost > 0 && !sight { // a detector looks again and again
		n = s.clone()
		n.lost--
		n.flying = slices.Delete(n.flying, k, k+1)
		all = append(all, walkMove{name: name + " LOST", to: n})
	}
	if s.late > 0 && !p.late {
		n = s.clone()
		n.late--
		n.flying[k].late = true
		all = append(all, walkMove{name: name + " LATE", to: n})
	}
	return all
}

// timeMoves lets time pass up to the next deadline of all; of several at one time any may be first.
func (w *walker) timeMoves(all []walkMove, s *walkState) []walkMove {
	first, any := time.Duration(0), false
	for i := range s.members {
		if at, ok := s.due(i); ok && (!any || at < first) {
			first, any = at, true
		}
	}
	for i := range s.members {
		if at, ok := s.due(i); ok && at == first {
			n := s.clone()
			n.now = first
			w.tick(n, i)
			all = append(all, walkMove{name: fmt.Sprintf("%v: %s's deadline", first, walkID(i)), to: n})
		}
	}
	return all
}

// nodeMoves crashes, pauses and continues members.
func (w *walker) nodeMoves(all []walkMove, s *walkState) []walkMove {
	for i := range s.members {
		m := &s.members[i]
		if !m.up {
			continue
		}
		if m.paused {
			n := s.clone()
			n.members[i].paused = false
			w.step(n, i, sbr.Resumed{Gap: time.Minute})
			w.noticed(n, i, false)
			all = append(all, walkMove{name: fmt.Sprintf("%v: %s CONTINUES", s.now, walkID(i)), to: n})
			continue
		}
		if s.crashes > 0 {
			n := s.clone()
			n.crashes--
			w.end(n, i)
			w.noticed(n, i, true)
			all = append(all, walkMove{name: fmt.Sprintf("%v: %s CRASHES", s.now, walkID(i)), to: n})
		}
		if s.pauses > 0 {
			n := s.clone()
			n.pauses--
			n.members[i].paused, n.members[i].since = true, s.now
			w.noticed(n, i, true)
			all = append(all, walkMove{name: fmt.Sprintf("%v: %s PAUSES", s.now, walkID(i)), to: n})
		}
	}
	return all
}
