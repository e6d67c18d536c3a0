package world

import (
	"github.com/serf-sbr/serf-sbr/lease"
)

// chain checks the verdicts at the moment they are written: the token grows by one, the writer stands in the
// last verdict, and the survivors only shrink, but for members that had read it when they started. It also
// checks promise S3: a holder is replaced only when it was silent, or is named as one that may be replaced,
// which the writer's attempt decides.
type chain struct{ unchecked }

func (*chain) committed(w *World, by *process, before, after *lease.Record) {
	switch {
	case w.store.writesBack:
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
