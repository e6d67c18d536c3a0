package world

import "github.com/serf-sbr/serf-sbr/sbr"

// allReach is promise S5: the survivors of a verdict all reach each other, as far as confirmed reports had reached its writer. It holds
// where the largest group stays (design rule 17). Other rules down every member that is indirectly connected.
type allReach struct{ unchecked }

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
		for link := range p.brokenLinks(p.watch.reports) {
			if stays[link[0]] && stays[link[1]] {
				w.violate("S5", "%s asks for the lease for %s and %s, and has a report that one cannot reach the other", p.id, link[0], link[1])
			}
		}
	}
}
