package world

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// prompt is promise L2, resolver by resolver: the leader of a side decides at the very moment at which its
// view has been stable for stable-after, and asks the lease at the very moment at which the delay of its side
// is over. Nothing polls in between.
type prompt struct{ unchecked }

func (*prompt) took(_ *World, p *process, e sbr.Event) {
	h := &p.watch
	switch e := e.(type) {
	case sbr.LeaseAnswer, sbr.LeaseObserved, sbr.Told, sbr.Ordered, sbr.Resumed, sbr.Cleared, sbr.Asked,
		sbr.DownRequested, sbr.Left:
		h.reset, h.tryBy = p.clock(), 0 // whatever these begin, they begin now
	case sbr.MemberSeen:
		if m, known := p.r.Member(e.Member.ID); !known || m.Status != e.Member.Status {
			h.reset = p.clock()
		}
	case sbr.MemberGone, sbr.Reachability:
		h.reset = p.clock() // it may lead its side from now on
	}
}

func (*prompt) stepped(w *World, p *process, effects []sbr.Effect) {
	h, now := &p.watch, p.clock()
	late := func(by time.Duration) bool { return now > by+clockGrain && !p.paused }
	if h.tryBy != 0 && late(h.tryBy) {
		w.violate("L2", "%s was to ask the lease at %v and has not at %v", p.id, h.tryBy, now)
		h.tryBy = 0
	}
	for _, e := range effects {
		switch e := e.(type) {
		case sbr.Explain:
			if e.What == sbr.TopicDecision && e.Decision != nil {
				h.decision(w, p, e.Decision)
			} else {
				h.reset, h.tryBy = now, 0 // armed, healed, paused: what comes begins anew
			}
		case sbr.AcquireLease, sbr.ReadLease, sbr.DownSelf, sbr.TellOrder:
			h.tryBy = 0
		}
	}
}

func (h *watch) decision(w *World, p *process, d *sbr.Decision) {
	now := p.clock()
	if waited := now - h.reset; waited > p.stableAfter()+clockGrain && leads(p) && p.rate == 1 {
		w.violate("L2", "%s leads its side and decides after %v of a stable view, stable-after is %v", p.id, waited,
			p.stableAfter())
	}
	if d.Final.NeedsLease() {
		h.tryBy = now + d.Delay
	}
}

// leads reports whether p comes first, as far as it knows: no member that it reaches comes before it, or it
// is the first of the largest group.
func leads(p *process) bool {
	s := p.r.Snapshot()
	v := sbr.View{Self: p.id, Members: s.Members, Reports: p.confirmed(p.watch.reports, p.misses)}
	g := p.node.rules.Strategy.Decide(&v).Group
	if g == nil {
		return s.Leader == p.id
	}
	i := slices.IndexFunc(g.Members, func(id sbr.ID) bool {
		m, _ := p.r.Member(id)
		return m.Status == sbr.Up || m.Status == sbr.Leaving
	})
	return i >= 0 && g.Members[i] == p.id
}
