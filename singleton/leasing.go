package singleton

import (
	"context"
	"sync"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/singleton/handover"
)

// leasing carries out what the machine wants of the lease: one thing after the other, off the loop.
type leasing struct {
	lease *lease.Lease
	post  func(func())

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	// waiting ends the acquire that is under way. Loop only.
	waiting context.CancelFunc
	// before is closed when everything that was begun is done. Loop only.
	before chan struct{}
}

func newLeasing(l *lease.Lease, post func(func())) *leasing {
	g := &leasing{lease: l, post: post, waiting: func() {}, before: make(chan struct{})}
	close(g.before)
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g
}

// inTurn runs f after everything that was begun before.
func (g *leasing) inTurn(f func()) {
	before, done := g.before, make(chan struct{})
	g.before = done
	g.work.Go(func() {
		defer close(done)
		<-before
		f()
	})
}

// acquire waits for the lease, watching who holds it, until it is granted, nobody knows, or it is given up.
func (g *leasing) acquire(attempt uint64, step func(handover.Event)) {
	ctx, cancel := context.WithCancel(g.ctx)
	g.waiting = cancel
	g.inTurn(func() {
		defer cancel()
		out := g.lease.AcquireWait(ctx, lease.Proposal{}, func(reason error) {
			g.post(func() { step(handover.LeaseLost{Attempt: attempt, Why: reason.Error()}) })
		})
		a := handover.LeaseAnswer{Attempt: attempt, Token: out.Record.Token}
		switch {
		case out.Kind == lease.Granted:
			a.Outcome = sbr.Granted
		case out.Kind == lease.Held:
			a.Outcome, a.Why = sbr.Held, "held by "+out.Record.Holder
		case out.Err != nil:
			a.Why = out.Err.Error()
		}
		g.post(func() { step(a) })
	})
}

// release gives the lease up, held or not, and ends waiting for it.
func (g *leasing) release(attempt uint64, step func(handover.Event)) {
	g.waiting()
	g.inTurn(func() {
		g.lease.Release(g.ctx)
		g.post(func() { step(handover.LeaseReleased{Attempt: attempt}) })
	})
}

// close ends everything. A lease that is still held runs out.
func (g *leasing) close() {
	g.cancel()
	g.lease.Close()
	g.work.Wait()
}
