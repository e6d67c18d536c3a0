package drive

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/inbox"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/lease"
)

// leasing carries out a machine's effects on one lease: one after the other, off the machine's goroutine. It
// posts the outcomes to an inbox. The goroutine that empties the inbox calls Acquire and Release.
type leasing struct {
	inbox *inbox.Inbox
	// open opens the lease, which may take a while, and what is to be closed after it.
	open func(context.Context) (*lease.Lease, io.Closer, error)
	// lease is nil until it is open. grant is the one that was acquired last: read it after the answer.
	lease  *lease.Lease
	grant  *lease.Grant
	opened io.Closer // may be nil

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	// waiting ends the acquire that is under way, lost reports the loss of its lease.
	waiting context.CancelFunc
	lost    func(why string)
	// before is closed when everything begun so far is done.
	before chan struct{}
}

// newLeasing returns the driver of a lease, which ends with ctx, and is closed by Close.
func newLeasing(ctx context.Context, open func(context.Context) (*lease.Lease, io.Closer, error),
	b *inbox.Inbox) *leasing {
	g := &leasing{open: open, inbox: b, waiting: func() {}, lost: func(string) {}, before: make(chan struct{})}
	close(g.before)
	g.ctx, g.cancel = context.WithCancel(ctx)
	return g
}

// Open opens the lease, unless it is open.
func (g *leasing) Open(ctx context.Context) (err error) {
	if g.lease == nil {
		g.lease, g.opened, err = g.open(ctx)
	}
	return err
}

// inTurn runs f after everything begun earlier.
func (g *leasing) inTurn(f func()) {
	before, done := g.before, make(chan struct{})
	g.before = done
	g.work.Go(func() {
		defer close(done)
		<-before
		f()
	})
}

// Acquire waits for the lease, watching its holder, until it is granted, the outcome is unknown, or Release
// gives it up. The answer, and a later loss, are posted to the inbox.
func (g *leasing) Acquire(e slot.AcquireLease, tell func(slot.Event)) {
	ctx, cancel := context.WithCancel(g.ctx)
	post := func(x slot.Event) { g.inbox.Post(func() { tell(x) }) }
	lost := func(why string) { post(slot.LeaseLost{Shard: e.Shard, Attempt: e.Attempt, Why: why}) }
	g.waiting, g.lost = cancel, lost
	g.inTurn(func() {
		defer cancel()
		grant, err := g.acquire(ctx)
		a := slot.LeaseAnswer{Shard: e.Shard, Attempt: e.Attempt, Outcome: lease.OutcomeOf(err)}
		switch held := (*lease.HeldError)(nil); {
		case errors.As(err, &held):
			a.Token, a.Why = held.Record.Token, "held by "+held.Record.Holder
		case err != nil:
			a.Why = err.Error()
		default:
			g.grant, a.Token = grant, grant.Token()
			defer g.work.Go(func() { // after the answer
				<-grant.Done()
				if why := grant.Lost(); why != nil {
					lost(why.Error())
				}
			})
		}
		post(a)
	})
}

// openTimeout bounds the opening of a store, which need not reach it.
const openTimeout = 5 * time.Second

func (g *leasing) acquire(ctx context.Context) (*lease.Grant, error) {
	opening, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if err := g.Open(opening); err != nil {
		return nil, err
	}
	return g.lease.AcquireWait(ctx, lease.Proposal{})
}

// Doubt reports the loss of the lease that was acquired last: by its own clock it is over, which may not be
// noticed yet.
func (g *leasing) Doubt(why string) { g.lost(why) }

// releaseTries is how often a release without an answer is tried: the next holder would have to wait until
// the lease expires.
const releaseTries = 3

// Release releases the lease, held or not, and ends waiting for it. done is posted to the inbox, in bounded
// time.
func (g *leasing) Release(done func()) {
	g.waiting()
	g.inTurn(func() {
		for try := 0; g.lease != nil && try < releaseTries; try++ {
			if err := g.lease.Release(g.ctx); err == nil || errors.Is(err, lease.ErrNotHeld) {
				break
			}
		}
		g.inbox.Post(done)
	})
}

// Close ends everything. A lease that is still held expires.
func (g *leasing) Close() {
	g.cancel()
	<-g.before // it may be opening the lease
	if g.lease != nil {
		g.lease.Close()
	}
	g.work.Wait()
	if g.opened != nil {
		_ = g.opened.Close() // nothing waits for it any more
	}
}
