package world

import (
	"errors"
	"slices"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// A resolver's lease: what package downing does with lease.Lease.

// openLease makes the lease of a process's resolver.
func (p *process) openLease() {
	c := newClient(p, &p.w.store)
	c.watches = func() bool { return p.node.rules.Resolver.Watched && p.runs() }
	c.lost = func(why string) {
		p.w.note(p, "lost", "the lease: %s", why)
		p.step(sbr.LeaseReleased{Done: true})
	}
	c.news = func(r lease.Record) {
		// A heartbeat is a sign of life of the holder and no news to the resolver.
		if o := p.heardOf; o == nil || r.Token != o.Token || r.Holder != o.Holder || r.Behind != o.Behind {
			p.heardOf = &r
			p.step(sbr.LeaseObserved{Record: recordOf(r)})
		}
	}
	p.client = c
}

func (p *process) readLease(e sbr.ReadLease) {
	p.w.note(p, "reads", "attempt %d", e.Attempt)
	p.client.begin(lease.ReadOp{}, func(f lease.Finished) { p.leaseRead(e.Attempt, f) })
}

func (p *process) restoreVerdict(e sbr.RestoreVerdict) {
	p.w.note(p, "restores", "attempt %d", e.Attempt)
	p.client.begin(lease.Restoration(e.Verdict, p.w.nonce()), func(f lease.Finished) {
		p.leaseRead(e.Attempt, f)
	})
}

func (p *process) leaseRead(attempt uint64, f lease.Finished) {
	answer := sbr.LeaseRead{Attempt: attempt, Record: recordOf(f.Snapshot.Record)}
	if f.Err != nil {
		answer = sbr.LeaseRead{Attempt: attempt, Err: f.Err.Error()}
	}
	p.step(answer)
}

func (p *process) acquireLease(e sbr.AcquireLease) {
	w, v := p.w, &e.Verdict
	w.trace.mix(w.now, p, "asks")
	w.trace.number(e.Base)
	w.trace.ids(v.Survivors)
	w.trace.ids(v.Down)
	if w.wordy() {
		w.say(p, "asks", "attempt %d over token %d: survivors %v, down %v, over %v", e.Attempt, e.Base,
			names(v.Survivors), names(v.Down), names(e.TakeOver))
	}
	proposal := lease.Proposal{Verdict: v, Base: e.Base, BaseBy: string(e.BaseBy)}
	p.takesOver = slices.Clone(e.TakeOver)
	for _, id := range e.TakeOver {
		proposal.TakeOver = append(proposal.TakeOver, string(id))
	}
	p.client.begin(lease.AcquireOp{Proposal: proposal, Nonce: w.nonce()}, func(f lease.Finished) {
		answer := sbr.LeaseAnswer{Attempt: e.Attempt, Outcome: lease.OutcomeOf(f.Err),
			Record: recordOf(f.Snapshot.Record)}
		if f.Err != nil {
			answer.Err = f.Err.Error()
		}
		if held := (*lease.HeldError)(nil); errors.As(f.Err, &held) {
			answer.Record = recordOf(held.Record)
		}
		w.note(p, "answer", "attempt %d: %s %s", e.Attempt, answer.Outcome, answer.Err)
		p.step(answer)
	})
}

func (p *process) releaseLease(e sbr.ReleaseLease) {
	p.w.note(p, "releases", "attempt %d", e.Attempt)
	p.client.begin(lease.ReleaseOp{}, func(f lease.Finished) {
		p.step(sbr.LeaseReleased{Attempt: e.Attempt, Done: f.Err == nil || errors.Is(f.Err, lease.ErrNotHeld)})
	})
}

// recordLeave records who has left. The leaving process does not await the answer; nothing follows from it.
func (p *process) recordLeave(e sbr.RecordLeave) {
	leaves := func(v *sbr.Verdict) bool { return v.Token == e.Token && v.Leave(e.Gone, e.Here) }
	p.client.begin(lease.Amendment(leaves), func(f lease.Finished) {
		if v := f.Snapshot.Record.Verdict; f.Err == nil && v != nil {
			p.w.note(p, "recorded", "as left after verdict %d: %v; %v remain", v.Token, names(v.Left),
				names(v.Remaining()))
		}
	})
}
