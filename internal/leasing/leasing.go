// Package leasing carries out what a pure machine wants of one lease: one thing after the other, off the machine's goroutine, which is told by way of an inbox.
package leasing

import (
	"context"
	"sync"

	"github.com/serf-sbr/serf-sbr/internal/inbox"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Answer is what became of an attempt.
type Answer struct {
	Outcome sbr.Outcome
	// Token is the lease's when it was granted.
	Token uint64
	// Why says who holds it, or why nobody knows.
	Why string
}

// Leasing drives one lease. Acquire and Release are called by the goroutine that empties the inbox.
type Leasing struct {
	lease *lease.Lease
	inbox *inbox.Inbox

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	// waiting ends the acquire that is under way, lost is whom its loss is told.
	waiting context.CancelFunc
	lost    func(why string)
	// before is closed when everything that was begun is done.
	before chan struct{}
}

// New returns the driver of a lease, which it closes with Close.
func New(l *lease.Lease, b *inbox.Inbox) *Leasing {
	g := &Leasing{lease: l, inbox: b, waiting: func() {}, lost: func(string) {}, before: make(chan struct{})}
	close(g.before)
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g
}

// Lease returns the lease that is driven.
func (g *Leasing) Lease() *lease.Lease { return g.lease }

// inTurn runs f after everything that was begun before.
func (g *Leasing) inTurn(f func()) {
	before, done := g.before, make(chan struct{})
	g.before = done
	g.work.Go(func() {
		defer close(done)
		<-before
		f()
	})
}

// Acquire waits for the lease, watching who holds it, until it is granted, nobody knows, or it is given up by Release. answered and lost are posted to the
// inbox; lost may come first.
func (g *Leasing) Acquire(answered func(Answer), lost func(why string)) {
	ctx, cancel := context.WithCancel(g.ctx)
	g.waiting, g.lost = cancel, lost
	g.inTurn(func() {
		defer cancel()
		out := g.lease.AcquireWait(ctx, lease.Proposal{}, func(reason error) {
			g.inbox.Post(func() { lost(reason.Error()) })
		})
		a := Answer{Token: out.Record.Token}
		switch {
		case out.Kind == lease.Granted:
			a.Outcome = sbr.Granted
		case out.Kind == lease.Held:
			a.Outcome, a.Why = sbr.Held, "held by "+out.Record.Holder
		case out.Err != nil:
			a.Why = out.Err.Error()
		}
		g.inbox.Post(func() { answered(a) })
	})
}

// Doubt posts the loss of the lease that was acquired last: its own clock says that it is over, and nobody may have noticed yet.
func (g *Leasing) Doubt(why string) {
	lost := g.lost
	g.inbox.Post(func() { lost(why) })
}

// releaseTries is how often a release is tried whose answer does not come: whoever is next would have to wait until the lease runs out.
const releaseTries = 3

// Release gives the lease up, held or not, and ends waiting for it. done is posted to the inbox, in bounded time.
func (g *Leasing) Release(done func()) {
	g.waiting()
	g.inTurn(func() {
		for range releaseTries {
			if g.lease.Release(g.ctx).Kind != lease.ReleaseUnknown {
				break
			}
		}
		g.inbox.Post(done)
	})
}

// Close ends everything. A lease that is still held runs out.
func (g *Leasing) Close() {
	g.cancel()
	g.lease.Close()
	g.work.Wait()
}
