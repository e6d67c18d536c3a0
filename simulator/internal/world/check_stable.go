package world

import (
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// waitsUntilStable checks that no member decides before its view has been stable for stable-after, or has
// been unstable for so much longer that everybody goes down, or, with a lease, the member asks it about the
// view as it is. No wait is needed for the last chance of a member that was told that its side is given up,
// which asks the lease, nor for what an operator asks for.
type waitsUntilStable struct {
	unchecked
	from      *process // the member that ordered; nil outside of such a step
	requested bool     // an operator asked for it
}

func (c *waitsUntilStable) took(w *World, p *process, e sbr.Event) {
	p.watch.view(p, e)
	c.from = nil
	_, c.requested = e.(sbr.DownRequested)
	if o, ok := e.(sbr.Ordered); ok {
		c.from = w.byID[o.From]
	}
}

func (c *waitsUntilStable) stepped(w *World, p *process, effects []sbr.Effect) {
	h := &p.watch
	from, requested := c.from, c.requested
	c.from, c.requested = nil, false
	h.suspects = p.r.Suspects()
	for _, e := range effects {
		x, ok := e.(sbr.Explain)
		if !ok || x.What != sbr.TopicDecision || x.Decision == nil {
			continue
		}
		if requested {
			h.decided = true
			continue
		}
		if from != nil && x.Decision.Final.NeedsLease() {
			if h.proxy = true; !from.watch.decided {
				w.violate("stable", "%s decides for %s, which has never decided anything", p.id, from.id)
			}
		}
		waited, stable, unrest := p.clock()-h.viewed, p.stableAfter(), p.node.rules.Resolver.UnstableIn(h.size)
		lease := sbr.NeedsLease(p.node.rules.Strategy)
		unstable := (lease || x.Decision.Final == sbr.DownAll) && p.clock()-h.troubled > stable+unrest
		// A race in unrest goes on while the view changes further: its end needs no wait either.
		unstable = unstable || h.unrest && x.Decision.Final == sbr.DownReachable
		h.unrest = lease && unstable && waited < stable
		if !h.proxy && !unstable && waited < stable-clockGrain {
			w.violate("stable", "%s decides %s after %v of a stable view, stable-after is %v", p.id, x.Decision.Final,
				waited, stable)
		}
		h.decided = true
	}
	h.count(p)
}

// clockGrain is what a clock that does not run at the rate of the world rounds.
const clockGrain = time.Microsecond
