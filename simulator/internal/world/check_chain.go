package world

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// chain checks the verdicts at the moment they are written: the token grows by one, the writer stands in the
// last verdict, and the survivors only shrink, but for members that had read it when they started. It also
// checks promise S3: a holder is replaced only when it was silent for the heartbeat-timeout, or is one that the
// writer's attempt may replace.
type chain struct {
	unchecked
	heard time.Duration // when the holder last gave a sign of life
}

// replaced checks promise S3. A clock that runs too fast may not keep it.
func (c *chain) replaced(w *World, by *process, before, after *lease.Record) {
	silent := w.now - c.heard
	if before.Holder != "" && after.Holder != "" && after.Holder != before.Holder &&
		silent < w.opts.Store.HeartbeatTimeout-clockGrain && by.rate <= 1 && !w.store.wentBack &&
		!slices.Contains(by.takesOver, sbr.ID(before.Holder)) {
		w.violate("S3", "%s replaced the holder %s, which had given a sign of life %v before", after.Holder,
			before.Holder, silent)
	}
	if after.Holder == string(by.id) && after.Nonce != before.Nonce {
		c.heard = w.now
	}
}

func (c *chain) committed(w *World, by *process, before, after *lease.Record) {
	c.replaced(w, by, before, after)
	switch {
	case w.store.writesBack && after.Token > before.Token:
		return // a verdict that the store had forgotten, told again
	case after.Token < before.Token:
		w.violate("token", "it went from %d back to %d", before.Token, after.Token)
		return
	case after.Token == before.Token:
		if after.Holder != before.Holder && after.Holder != "" {
			w.violate("S3", "%s became the holder under the old token %d", after.Holder, after.Token)
		}
		return
	case after.Token != before.Token+1:
		w.violate("token", "it went from %d to %d", before.Token, after.Token)
	}
	last, next := before.Verdict, after.Verdict
	if !last.MayWrite(by.id, by.self.Seen) {
		w.violate("chain", "%s wrote verdict %d although verdict %d leaves it out", by.id, next.Token, last.Token)
	}
	for _, id := range next.Survivors {
		if s := w.byID[id]; s == nil || !last.Eligible(id, s.self.Seen) {
			w.violate("chain", "verdict %d lists %s, which verdict %d leaves out, among its survivors", next.Token,
				id, last.Token)
		}
	}
	if len(next.Down) == 0 {
		w.violate("chain", "verdict %d removes nobody", next.Token)
	}
}
