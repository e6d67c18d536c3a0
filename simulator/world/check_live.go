package world

import "github.com/serf-sbr/serf-sbr/sbr"

// oneSideLives is promise L1: where a lease decides, whoever always reached it, was never stopped and stands in the last verdict is up
// when everything has come to rest. So a side that is whole never goes down with the other one.
//
// Not held to it are members of a side that went down for a reason of its own: a view that was never stable, or members that reach
// each other only in part, both of which down everybody (down-all-when-unstable, down-all-when-indirectly-connected); nor members
// that joined during the partition, which decide nothing and go with their side.
type oneSideLives struct {
	unchecked
	excused map[sbr.ID]bool
}

func (c *oneSideLives) took(_ *World, p *process, e sbr.Event) {
	o, ok := e.(sbr.Ordered)
	if ok && (o.Order.Kind == sbr.DownAll || o.Order.Kind == sbr.DownUnreachable && p.watch.late) {
		c.mark(p)
	}
}

func (c *oneSideLives) stepped(_ *World, p *process, effects []sbr.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case sbr.Explain:
			if e.Decision != nil && e.Decision.Final == sbr.DownAll {
				c.mark(p)
			}
		case sbr.DownSelf:
			if m, _ := p.r.Member(p.id); m.Status == sbr.Joining {
				c.mark(p)
			}
		}
	}
}

func (c *oneSideLives) mark(p *process) {
	if c.excused == nil {
		c.excused = make(map[sbr.ID]bool)
	}
	c.excused[p.id] = true
}

func (c *oneSideLives) rested(w *World) {
	if !sbr.NeedsLease(w.opts.Strategy) {
		return
	}
	v := w.store.verdict()
	for _, p := range w.procs {
		if p.downReason == "" || p.watch.harmed || c.excused[p.id] || v.Standing(p.id, p.self.Seen) == sbr.Out {
			continue
		}
		w.violate("L1", "%s always reached the lease, no verdict leaves it out, and it is down: %s", p.id, p.downReason)
	}
}
