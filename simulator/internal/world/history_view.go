package world

import (
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// took records what an event changes in the view of a process; a checker sees every event first.
func (r *historian) took(_ *World, p *process, e sbr.Event) {
	r.settle()
	r.stale = append(r.stale, p.node.index)
	if !r.h.Watched[p.node.index] {
		return
	}
	switch e := e.(type) {
	case sbr.MemberSeen:
		if e.Member.Status <= sbr.Up {
			r.see(p, e.Member.ID, Alive)
		}
	case sbr.MemberGone:
		r.see(p, e.ID, Unknown)
	case sbr.Reachability:
		sight := Alive
		if e.Unreachable {
			sight = Failed
		}
		r.see(p, e.ID, sight)
	case sbr.Observations:
		r.probed(p, e.Reports)
	}
}

// stepped records that a decision takes effect, and has the process looked at again, after whatever the step leads to.
func (r *historian) stepped(_ *World, p *process, effects []sbr.Effect) {
	r.settle()
	r.stale = append(r.stale, p.node.index)
	for _, e := range effects {
		switch e.(type) {
		case sbr.TellOrder, sbr.DownSelf, sbr.Remove:
			r.add(Acted{p.node.index})
			return
		}
	}
}

// committed records who holds the lease, and the verdict.
func (r *historian) committed(_ *World, by *process, before, after *lease.Record) {
	r.settle()
	r.held(sbr.ID(after.Holder))
	if after.Token != before.Token && by != nil {
		r.add(Ruled{by.node.index, after.Token})
	}
}

// held records who holds the lease.
func (r *historian) held(id sbr.ID) {
	holder := -1
	if p := r.w.byID[id]; p != nil {
		holder = p.node.index
	}
	if holder != r.holder {
		r.holder = holder
		r.add(Held{holder})
	}
}

// see records what p thinks of an incarnation. What it thinks of an old one of a node counts only until it knows the present one.
func (r *historian) see(p *process, id sbr.ID, sight Sight) {
	s := r.w.byID[id]
	if s == nil || s.node == p.node || s != s.node.proc && p.knows(s.node.proc) {
		return
	}
	pair := [2]int{p.node.index, s.node.index}
	if sight == Alive && r.missed[pair] {
		sight = Missed
	}
	r.set(pair, sight, s != s.node.proc)
}

func (r *historian) set(pair [2]int, sight Sight, former bool) {
	old, differs := r.sights[pair]
	if !differs {
		old = Alive
	}
	if old == sight {
		return
	}
	if sight == Alive {
		delete(r.sights, pair)
	} else {
		r.sights[pair] = sight
	}
	r.add(Viewed{pair[0], pair[1], sight, former})
}

// probed records whom p's own probes miss.
func (r *historian) probed(p *process, reports []sbr.Report) {
	now := make(map[int]bool)
	for _, rep := range reports {
		if s := r.w.byID[rep.Subject]; rep.Observer == p.id && s != nil {
			now[s.node.index] = true
		}
	}
	for i := range r.w.nodes { // in order: a map has none
		pair := [2]int{p.node.index, i}
		if now[i] == r.missed[pair] {
			continue
		}
		r.missed[pair] = now[i]
		switch old, differs := r.sights[pair]; {
		case now[i] && !differs:
			r.set(pair, Missed, false)
		case !now[i] && old == Missed:
			r.set(pair, Alive, false)
		}
	}
}
