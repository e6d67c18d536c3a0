package world

import (
	"errors"

	core "github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// A slot's lease: what package drive does with lease.Lease, and AcquireWait in it.

// slotLease is an executor's part in the lease of its slot. One thing is done after the other.
type slotLease struct {
	client    *client      // nil: it needs none
	acquiring *acquisition // to get the lease; nil: not now
	grant     uint64       // the attempt that got it; zero: none has, or its loss was told
	busy      bool
	turns     []func()
}

// acquisition asks for the lease until it is granted, or given up.
type acquisition struct {
	attempt  uint64
	op       lease.OpID // under way; zero: it waits
	failures int
	looks    int // how often it has looked whether to ask again
	begun    bool
	givenUp  bool
}

// plain is what a slot asks of its lease.
var plain lease.Proposal

func (t *executor) openLease() {
	c := newClient(t.p, &t.slot.store)
	c.watches = func() bool { return t.acquiring != nil && t.acquiring.begun && t.acquiring.op == 0 }
	c.lost = func(why string) {
		t.p.w.note(t.p, "lost", "the lease of %s: %s", t.slot.Name, why)
		t.forfeit(t.grant, why)
	}
	c.news = func(lease.Record) { t.tryAgain() }
	t.client = c
}

// closeLease ends the executor's part in the lease. A lease that is still held runs out.
func (t *executor) closeLease() {
	if t.client != nil {
		t.client.close()
		t.acquiring = nil
	}
}

// inTurn runs f once everything that was begun before is done.
func (t *slotLease) inTurn(f func()) {
	if t.turns = append(t.turns, f); !t.busy {
		t.nextTurn()
	}
}

func (t *slotLease) nextTurn() {
	if t.busy = len(t.turns) > 0; t.busy {
		f := t.turns[0]
		t.turns = t.turns[1:]
		f()
	}
}

func (t *executor) acquire(attempt uint64) {
	x := &acquisition{attempt: attempt}
	t.acquiring = x
	t.inTurn(func() {
		if x.begun = !x.givenUp; x.begun {
			t.try(x)
		} else {
			t.nextTurn()
		}
	})
}

// try asks once.
func (t *executor) try(x *acquisition) {
	c := t.client
	x.op = c.begin(lease.AcquireOp{Proposal: plain, Nonce: c.w.nonce()}, func(f lease.Finished) {
		x.op = 0
		switch outcome := lease.OutcomeOf(f.Err); {
		case x.givenUp:
			t.nextTurn()
		case outcome == sbr.Granted:
			t.acquiring, t.grant = nil, x.attempt
			t.nextTurn()
			t.tell(core.LeaseAnswer{Shard: t.shard, Attempt: x.attempt, Outcome: sbr.Granted,
				Token: f.Snapshot.Record.Token})
		case outcome == sbr.Held:
			x.failures = 0
			t.tryAgain()
		default:
			x.failures++
			c.w.after(c.m.Pause(x.failures), t.p, func() { t.tryOn(x) })
		}
	})
}

// tryAgain asks once more if it is worth while, and looks again when it may be.
func (t *executor) tryAgain() {
	x := t.acquiring
	if x == nil || !x.begun || x.op != 0 || x.failures > 0 {
		return
	}
	wait := t.client.m.Wait(t.client.now(), &plain)
	if wait <= 0 {
		t.try(x)
		return
	}
	x.looks++
	look := x.looks
	t.p.w.after(wait, t.p, func() {
		if t.acquiring == x && x.looks == look {
			t.tryAgain()
		}
	})
}

func (t *executor) tryOn(x *acquisition) {
	if t.acquiring == x && x.op == 0 {
		t.try(x)
	}
}

// releaseTries is how often a release is tried whose answer does not come, as in package drive.
const releaseTries = 3

// release gives the lease up, held or not, and ends trying to get it.
func (t *executor) release(attempt uint64) {
	x := t.acquiring
	t.acquiring, t.grant = nil, 0
	if x != nil {
		x.givenUp = true
	}
	t.inTurn(func() { t.giveBack(attempt, releaseTries) })
	switch {
	case x == nil || !x.begun:
	case x.op != 0:
		t.client.cancel(x.op)
	default:
		t.nextTurn() // it has only waited
	}
}

func (t *executor) giveBack(attempt uint64, tries int) {
	t.client.begin(lease.ReleaseOp{}, func(f lease.Finished) {
		if f.Err != nil && !errors.Is(f.Err, lease.ErrNotHeld) && tries > 1 {
			t.giveBack(attempt, tries-1)
			return
		}
		t.nextTurn()
		t.tell(core.LeaseReleased{Shard: t.shard, Attempt: attempt})
	})
}

// forfeit tells the machine that the lease is lost, once.
func (t *executor) forfeit(attempt uint64, why string) {
	if attempt == t.grant && attempt != 0 {
		t.grant = 0
		t.tell(core.LeaseLost{Shard: t.shard, Attempt: attempt, Why: why})
	}
}
