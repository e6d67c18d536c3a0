package world

import (
	"slices"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// oneSideLives is promise L1: where a lease decides, a member that always reached it, was never stopped and
// stands in the last verdict is up when everything has come to rest. So a side that is whole never goes down
// with the other one.
//
// Not held to it are members of a side that went down for a reason of its own: a view that was never stable,
// or members that reach each other only in part, both of which down everybody (down-all-when-unstable,
// down-all-when-indirectly-connected); nor members that joined during the partition, which decide nothing and
// go with their side; nor members whose own attempt had no answer in time while a non-member wrote the
// record: each write over what was read before fails then, so they reached the store in vain.
type oneSideLives struct {
	excused map[sbr.ID]bool
	// own is how many of the writes to the record were made by members.
	own uint64
	// began is how many others there had been when a member's attempt began.
	began map[sbr.ID]uint64
}

func (c *oneSideLives) committed(*World, *process, *lease.Record, *lease.Record) { c.own++ }

// foreign is how many writes to the record were made by non-members.
func (c *oneSideLives) foreign(w *World) uint64 { return w.store.writes - c.own }

func (c *oneSideLives) took(w *World, p *process, e sbr.Event) {
	switch e := e.(type) {
	case sbr.Ordered:
		if e.Order.Kind == sbr.DownAll {
			c.mark(p)
		}
	case sbr.LeaseAnswer:
		if began, ok := c.began[p.id]; ok && e.Outcome == sbr.Unknown && c.foreign(w) > began {
			c.mark(p)
		}
	}
}

func (c *oneSideLives) stepped(w *World, p *process, effects []sbr.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case sbr.AcquireLease:
			if c.began == nil {
				c.began = make(map[sbr.ID]uint64)
			}
			c.began[p.id] = c.foreign(w)
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
	if slices.ContainsFunc(w.nodes, func(n *Node) bool { return !sbr.NeedsLease(n.rules.Strategy) }) {
		return
	}
	v := w.store.verdict()
	for _, p := range w.procs {
		if p.downReason == "" || p.watch.harmed || c.excused[p.id] || v.Standing(p.id, p.self.Seen) == sbr.Out {
			continue
		}
		w.violate("L1", "%s always reached the lease, no verdict leaves it out, and it is down: %s", p.id,
			p.downReason)
	}
}
