package world

import "github.com/serf-sbr/serf-sbr/sbr"

// ruler is the process's resolver, as the tenant of the lease that carries the verdicts.
type ruler process

func (u *ruler) acquire(eff sbr.AcquireLease) {
	w, p, v := u.w, (*process)(u), &eff.Verdict
	w.trace.mix(w.now, p, "asks")
	w.trace.number(eff.Base)
	w.trace.ids(v.Survivors)
	w.trace.ids(v.Down)
	if w.wordy() {
		w.say(p, "asks", "attempt %d over token %d: survivors %v, down %v, over %v",
			eff.Attempt, eff.Base, names(v.Survivors), names(v.Down), names(eff.TakeOver))
	}
	u.client.acquire(proposal{attempt: eff.Attempt, verdict: v, base: eff.Base, baseBy: eff.BaseBy, takeOver: eff.TakeOver})
}

func (u *ruler) answered(attempt uint64, o sbr.Outcome, s state, why string) {
	p := (*process)(u)
	p.w.note(p, "answer", "attempt %d: %s %s", attempt, o, why)
	e := sbr.LeaseAnswer{Attempt: attempt, Outcome: o, Err: why}
	if o != sbr.Unknown {
		e.Record = s.record
	}
	p.step(e)
}

func (u *ruler) released(attempt uint64, done bool) {
	(*process)(u).step(sbr.LeaseReleased{Attempt: attempt, Done: done})
}

func (u *ruler) lost(why string) {
	p := (*process)(u)
	p.w.note(p, "lost", "the lease: %s", why)
	p.w.after(0, p, func() { u.released(0, true) })
}
