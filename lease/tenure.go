package lease

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
)

// grant is what Check looks at. It is never changed, only replaced.
type grant struct {
	token uint64
	// from is the moment at which a former holder that was replaced knows it for certain: see Lease.owed.
	from     time.Time
	deadline time.Time
	forever  bool
}

// live reports whether the time is not over yet, valid whether the grant may be used.
func (g *grant) live(now time.Time) bool  { return g.forever || now.Before(g.deadline) }
func (g *grant) valid(now time.Time) bool { return g.live(now) && !now.Before(g.from) }

// tenure is one time of holding the lease, from the grant to its loss or release. Its fields are guarded by Lease.mu.
type tenure struct {
	nonce string
	token uint64
	terms terms
	lost  func(error)
	// ctx ends with the tenure; it bounds the heartbeats.
	ctx context.Context
	end context.CancelFunc
	// returned is closed when the Acquire that brought lost returns: the callback waits for it.
	returned chan struct{}
	// doubt wakes the heartbeats early, because something looks as if the lease were gone; changed because the terms have.
	doubt, changed chan struct{}
}

// verify asks for a heartbeat now.
func (t *tenure) verify() { wake(t.doubt) }

func wake(sleeper chan struct{}) {
	select {
	case sleeper <- struct{}{}:
	default:
	}
}

// hold publishes what Check reads after a write of t's record that was sent at start. Called under mu.
func (l *Lease) hold(t *tenure, r *Record, start time.Time) {
	t.token = r.Token
	deadline, finite := t.terms.deadline(start)
	l.holding.Store(&grant{token: r.Token, from: l.owedUntil, deadline: deadline, forever: !finite})
}

// begin starts or goes on with a tenure for the record s, whose write was sent at start. The error is ErrTooLate when the
// time is over already, errMoved when the record has moved on meanwhile, ErrClosed when the lease was closed.
func (l *Lease) begin(a *attempt, s Snapshot, start time.Time) error {
	deadline, finite := a.terms.deadline(start)
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return ErrClosed
	case l.know.token > s.Record.Token:
		return errMoved
	case finite && !now.Before(deadline):
		return ErrTooLate
	}
	t := l.tenure
	if t == nil {
		t = &tenure{returned: a.returned, doubt: make(chan struct{}, 1), changed: make(chan struct{}, 1)}
		t.ctx, t.end = context.WithCancel(l.root)
		l.tenure = t
		l.running.Go(func() { l.heartbeats(t) })
	} else if t.terms != a.terms {
		wake(t.changed)
	}
	if a.lost != nil {
		t.lost, t.returned = a.lost, a.returned
	}
	t.nonce, t.terms = s.Record.Nonce, a.terms
	delete(l.strays, t.nonce)
	l.hold(t, &s.Record, start)
	return nil
}

// endTenure clears the flag and stops the heartbeats. Called under mu.
func (l *Lease) endTenure(t *tenure) {
	l.tenure = nil
	l.holding.Store(nil)
	t.end()
}

// lose ends t, if it has not ended yet, and tells the callback.
func (l *Lease) lose(t *tenure, reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tenure == t {
		l.loseLocked(t, reason)
	}
}

func (l *Lease) loseLocked(t *tenure, reason error) {
	l.endTenure(t)
	lost, returned := t.lost, t.returned
	l.log.Warn("lease: lost", "token", t.token, "reason", reason)
	if lost == nil {
		return
	}
	// Not counted in running: the callback may call Close, which waits for those.
	go func() {
		<-returned
		defer func() {
			if p := recover(); p != nil {
				l.log.Error("lease: the lost callback panicked", "panic", p, "stack", string(debug.Stack()))
			}
		}()
		lost(reason)
	}()
}

// overdue ends the tenure if its deadline has passed; last is the last failure, if any.
func (l *Lease) overdue(last error) {
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tenure
	if t == nil || l.holding.Load().live(now) {
		return
	}
	reason := fmt.Errorf("%w: no heartbeat was confirmed for %v", ErrLost, t.terms.window)
	if t.terms.interval == 0 {
		reason = fmt.Errorf("%w: its time is over (%v, of which %v may be used)", ErrLost, t.terms.ttl, t.terms.window)
	}
	if last != nil {
		reason = fmt.Errorf("%w: %w", reason, last)
	}
	l.loseLocked(t, reason)
}
