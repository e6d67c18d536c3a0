package world

import (
	"fmt"
	"math/rand/v2"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// A resolver that knows n members needs memory in proportion to n, so a world in which all know all grows with the square. Beyond
// Options.Resolvers only some members know the whole cluster, the witnesses. All others are followers: they run the same
// resolver, but it knows the witnesses alone, and its strategy never decides.

// How many witnesses there are.
const (
	// firstOf are the first members of each side, and of the whole: they lead it, race in the leader's place, and tell the others a
	// verdict that downs them, which three do. Of many sides fewer.
	firstOf = 3
	// drawn are left to the seed.
	drawn = 3
	// maxRoles is for how many roles the first members with it are witnesses.
	maxRoles = 8
	// maxWitnesses bounds them all, but for one of each side, of which there may be maxSides.
	maxWitnesses = 48
	maxSides     = 200
)

// witness reports whether the resolver of a node knows the whole cluster.
func (w *World) witness(node int) bool { return w.witnesses == nil || w.witnesses[node] }

// choose decides which nodes are witnesses.
func (w *World) choose(nodes int) error {
	limit := w.opts.Resolvers
	if limit <= 0 {
		limit = DefaultResolvers
	}
	if nodes <= limit {
		return nil
	}
	if n := len(w.opts.Sides); n > maxSides {
		return fmt.Errorf("world: %d sides are too many for a world of more than %d nodes: it plays at most %d", n, limit, maxSides)
	}
	w.witnesses = make(map[int]bool)
	w.follows = follow{lease: sbr.NeedsLease(w.opts.Strategy)}
	sides := append([][]int{seq(nodes)}, w.opts.Sides...)
	each := max(1, min(firstOf, maxWitnesses/(2*len(sides))))
	for _, side := range sides {
		for i := 0; i < min(each, len(side)) && (i == 0 || len(w.witnesses) < maxWitnesses); i++ {
			w.witnesses[side[i]] = true
		}
	}
	w.chooseRoles()
	for _, i := range w.opts.Harmed {
		if len(w.witnesses) < maxWitnesses {
			w.witnesses[i] = true
		}
	}
	rng := rand.New(rand.NewPCG(w.opts.Seed, 0xf0110)) // of its own: the run draws the same with and without
	for range drawn {
		w.witnesses[rng.IntN(nodes)] = true
	}
	return nil
}

// chooseRoles makes the first members with each role witnesses: rules that count a role, or look for the oldest with it, go by those.
func (w *World) chooseRoles() {
	have := make(map[string]int)
	for i := range w.opts.Members {
		for _, role := range w.opts.Members[i].Roles {
			if have[role]++; have[role] <= 2 && len(have) <= maxRoles {
				w.witnesses[i] = true
			}
		}
	}
}

func seq(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// follow is the strategy of a follower.
type follow struct{ lease bool }

// Decide keeps everybody.
func (follow) Decide(*sbr.View) sbr.Choice {
	return sbr.Choice{Reason: "a follower decides nothing"}
}

// NeedsLease is that of the strategy that the witnesses follow.
func (f follow) NeedsLease() bool { return f.lease }

// others are those that the process may know, itself included; a place among them is a place in process.peers.
func (p *process) others() []*process {
	if p.full {
		return p.w.procs
	}
	return p.w.full
}

// place is where s stands among the others of p, which must be able to know it.
func (p *process) place(s *process) int {
	if p.full {
		return s.index
	}
	return s.slot
}

// views reports whether p may know s; then s may know p.
func (p *process) views(s *process) bool { return p.full || s.full }

// peer is what p thinks of s, which it must be able to know.
func (p *process) peer(s *process) *peer {
	place := p.place(s)
	for len(p.peers) <= place {
		p.peers = append(p.peers, peer{})
	}
	return &p.peers[place]
}

// knows reports whether p knows s.
func (p *process) knows(s *process) bool {
	if !p.views(s) {
		return false
	}
	place := p.place(s)
	return place < len(p.peers) && p.peers[place].known
}

// strangers reports whether neither of two processes ever heard of the other. Followers never look at each other: those that were
// there from the start have heard of each other.
func strangers(p, q *process) bool {
	if !p.views(q) {
		first := len(p.w.opts.Members)
		return p.index >= first || q.index >= first
	}
	return !p.peer(q).met && !q.peer(p).met
}

// recordOf is what is handed to the resolver of p. Nobody changes a verdict that was written, so all share it.
func (p *process) recordOf(s state) sbr.Record {
	r := s.record
	r.Verdict = p.copyOf(r.Verdict)
	return r
}

// copyOf is a verdict as p is told it. A follower is told what it says of those that it knows: ten thousand copies of ten thousand
// names would be all that a large world consists of.
func (p *process) copyOf(v *sbr.Verdict) *sbr.Verdict {
	if v == nil || p.full {
		return v
	}
	c := &sbr.Verdict{Token: v.Token, DecidedBy: v.DecidedBy, Reason: v.Reason, Partial: true}
	say := func(x *process) {
		switch v.Standing(x.id, x.self.Seen) {
		case sbr.Survivor:
			c.Survivors = append(c.Survivors, x.id)
		case sbr.Out:
			c.Down = append(c.Down, x.id)
		}
	}
	for _, x := range p.w.full {
		say(x)
	}
	say(p)
	c.Normalize()
	return c
}
