package allocation_test

import (
	"cmp"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding/allocation"
)

// twin is the rule once more, as it is told: step by step, each time looking at every shard and every member.
type twin struct {
	cfg     allocation.Config
	shards  []string
	members map[sbr.ID]allocation.Member
	owner   map[string]sbr.ID // where the shard was, and "" where nobody is
	at      map[string]sbr.ID // where it counts
	fixed   map[string]bool
	loads   map[sbr.ID]int  // counted anew before each step
	surplus map[string]bool // what members have above the capacity, likewise
}

func newTwin(cfg allocation.Config, shards []string, members []allocation.Member, current places) *twin {
	w := &twin{
		cfg: cfg, shards: shards, members: map[sbr.ID]allocation.Member{},
		owner: map[string]sbr.ID{}, at: map[string]sbr.ID{}, fixed: map[string]bool{},
	}
	for _, m := range members {
		w.members[m.ID] = m
	}
	for _, s := range shards {
		w.owner[s] = current[s].Owner
		if _, here := w.members[current[s].To]; here {
			w.at[s], w.fixed[s] = current[s].To, true
		} else if _, here := w.members[current[s].Owner]; here {
			w.at[s] = current[s].Owner
		}
	}
	return w
}

func twinScore(shard, member string) uint64 {
	final := func(z uint64) uint64 {
		z ^= z >> 30
		z *= 0xbf58476d1ce4e5b9
		z ^= z >> 27
		z *= 0x94d049bb133111eb
		z ^= z >> 31
		return z
	}
	return final(final(final(xxhash.Sum64String(kind))+xxhash.Sum64String(shard)) ^ xxhash.Sum64String(member))
}

func (w *twin) able(id sbr.ID) bool {
	m, here := w.members[id]
	return here && !m.Leaving && !m.Unreachable
}

func (w *twin) load(id sbr.ID) (n int) {
	for _, s := range w.shards {
		if w.at[s] == id {
			n++
		}
	}
	return n
}

// bounds returns the capacity and the share.
func (w *twin) bounds() (capacity, share int) {
	able, movable := 0, 0
	for id := range w.members {
		if w.able(id) {
			able++
		}
	}
	for _, s := range w.shards {
		if !w.members[w.at[s]].Unreachable {
			movable++
		}
	}
	if able == 0 {
		return 0, 0
	}
	for capacity < movable && capacity*able*100 < movable*int(w.cfg.LoadFactor*100+0.5) {
		capacity++
	}
	return capacity, movable / able
}

// best returns the pair with the highest score among those that may be.
func (w *twin) best(may func(shard string, to sbr.ID) bool) (shard string, to sbr.ID, found bool) {
	type pair struct {
		shard  string
		member allocation.Member
	}
	var pairs []pair
	for _, s := range w.shards {
		for id, m := range w.members {
			if w.able(id) && !w.fixed[s] && w.at[s] != id && may(s, id) {
				pairs = append(pairs, pair{s, m})
			}
		}
	}
	if len(pairs) == 0 {
		return "", "", false
	}
	p := slices.MinFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(twinScore(b.shard, b.member.Name), twinScore(a.shard, a.member.Name)),
			cmp.Compare(a.shard, b.shard), cmp.Compare(a.member.Name, b.member.Name),
			cmp.Compare(a.member.ID, b.member.ID))
	})
	return p.shard, p.member.ID, true
}

func (w *twin) prefers(shard string, to sbr.ID) bool {
	return twinScore(shard, w.members[to].Name) > twinScore(shard, w.members[w.at[shard]].Name)
}

// count looks at who has what, and who has too much of it.
func (w *twin) count(capacity int) {
	w.loads, w.surplus = map[sbr.ID]int{}, map[string]bool{}
	for id, m := range w.members {
		w.loads[id] = w.load(id)
		var own []string
		for _, s := range w.shards {
			if w.at[s] == id && !w.fixed[s] {
				own = append(own, s)
			}
		}
		slices.SortFunc(own, func(a, b string) int {
			return cmp.Or(cmp.Compare(twinScore(a, m.Name), twinScore(b, m.Name)), cmp.Compare(b, a))
		})
		for i, s := range own {
			w.surplus[s] = w.able(id) && i < w.loads[id]-capacity
		}
	}
}

func (w *twin) plan() (moves []allocation.Move) {
	capacity, share := w.bounds()
	doubt := false
	for _, m := range w.members {
		doubt = doubt || m.Unreachable
	}
	rules := []struct {
		reason allocation.Reason
		may    func(shard string, to sbr.ID) bool
	}{
		{allocation.Unowned, func(s string, to sbr.ID) bool { return w.at[s] == "" && w.loads[to] < capacity }},
		{allocation.OwnerLeaves, func(s string, to sbr.ID) bool {
			m := w.members[w.at[s]]
			return m.Leaving && !m.Unreachable && w.loads[to] < capacity
		}},
		{allocation.Preferred, func(s string, to sbr.ID) bool {
			return !doubt && w.able(w.at[s]) && w.loads[to] < share && w.prefers(s, to)
		}},
		{allocation.OwnerFull, func(s string, to sbr.ID) bool {
			return !doubt && w.loads[to] < capacity && w.surplus[s]
		}},
	}
	for _, rule := range rules {
		for {
			w.count(capacity)
			shard, to, found := w.best(rule.may)
			if !found {
				break
			}
			w.at[shard], w.fixed[shard] = to, true
			moves = append(moves, allocation.Move{Shard: shard, From: w.owner[shard], To: to, Reason: rule.reason})
		}
	}
	return moves
}
