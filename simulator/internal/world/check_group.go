package world

import (
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// allReach is promise S5: the survivors of a verdict all reach each other, as far as confirmed reports had
// reached its writer. It holds where the largest group stays (design rule 17). Other rules down every member
// that is indirectly connected. While the view keeps changing only what has stood for stable-after counts.
type allReach struct{ unchecked }

func (*allReach) took(_ *World, p *process, e sbr.Event) {
	h := &p.watch
	switch e := e.(type) {
	case sbr.Observations:
		before, since := h.reported, h.since
		if h.reported, h.since = nil, nil; !sbr.KeepsLargestGroup(p.node.rules.Strategy) || p.clean(e.Reports) {
			return
		}
		h.reported, h.since = e.Reports, make([]time.Duration, len(e.Reports))
		i := 0
		for n, r := range e.Reports { // both lists are in order
			for i < len(before) && compareReports(before[i], r) < 0 {
				i++
			}
			h.since[n] = p.clock()
			if i < len(before) && before[i] == r {
				h.since[n] = since[i]
			}
		}
	case sbr.Reachability:
		h.missing(p, e.ID, e.Unreachable)
	case sbr.MemberGone:
		h.missing(p, e.ID, true)
	case sbr.MemberSeen:
		if m, known := p.r.Member(e.Member.ID); known && m.Unlisted {
			h.missing(p, m.ID, false)
		}
	}
}

func (h *watch) missing(p *process, id sbr.ID, unreachable bool) {
	if !unreachable {
		delete(h.missed, id)
		return
	}
	if h.missed == nil {
		h.missed = make(map[sbr.ID]time.Duration)
	}
	if _, already := h.missed[id]; !already {
		h.missed[id] = p.clock()
	}
}

// binding are the broken links that a verdict of p may not leave among its survivors.
func (p *process) binding() map[link]bool {
	h, after := &p.watch, p.stableAfter()
	if p.clock()-h.viewed >= after {
		return p.brokenLinks(h.reports, p.misses)
	}
	var reports []sbr.Report
	for i, r := range h.reported {
		if p.clock()-h.since[i] >= after {
			reports = append(reports, r)
		}
	}
	return p.brokenLinks(reports, func(id sbr.ID) bool {
		at, missing := h.missed[id]
		return missing && p.clock()-at >= after
	})
}

func (*allReach) stepped(w *World, p *process, effects []sbr.Effect) {
	if !sbr.KeepsLargestGroup(p.node.rules.Strategy) {
		return
	}
	for _, e := range effects {
		x, ok := e.(sbr.AcquireLease)
		if !ok || p.request != "" { // an operator's request decides about one member, not about links
			continue
		}
		stays := make(map[sbr.ID]bool)
		for _, id := range x.Verdict.Survivors {
			stays[id] = true
		}
		for link := range p.binding() {
			if stays[link[0]] && stays[link[1]] {
				w.violate("S5", "%s asks for the lease for %s and %s, and has a report that one cannot reach the other",
					p.id, link[0], link[1])
			}
		}
	}
}
