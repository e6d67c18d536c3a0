package lease

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
)

// grant is what Check looks at. It is never changed, only replaced.
type grant struct {
	token    uint64
	deadline time.Time
	forever  bool
}

func (g *grant) live(now time.Time) bool { return g.forever || now.Before(g.deadline) }

// tenure is one time of holding the lease, from the grant to its loss or release. Its fields are guarded by Lease.mu.
type tenure struct {
	nonce string
	token uint64
	lost  func(error)
	// ctx ends with the tenure; it bounds the heartbeats.
	ctx context.Context
	end context.CancelFunc
	// returned is closed when the Acquire that began the tenure returns: the lost callback waits for it.
	returned chan struct{}
	// doubt wakes the heartbeat early, because something looks as if the lease were gone.
	doubt chan struct{}
}

// verify asks for a heartbeat now.
func (t *tenure) verify() {
	select {
	case t.doubt <- struct{}{}:
	default:
	}
}

// deadlineFor is how long a write that was sent at start keeps the lease.
func (l *Lease) deadlineFor(start time.Time) time.Time {
	if l.settings.HeartbeatTimeout == Infinite {
		return time.Time{}
	}
	return start.Add(l.settings.Window())
}

// deadlineOf is the present deadline of t.
func (l *Lease) deadlineOf(t *tenure) time.Time {
	if g := l.holding.Load(); g != nil && l.tenure == t {
		return g.deadline
	}
	return time.Time{}
}

// hold publishes what Check reads. Called under mu.
func (l *Lease) hold(t *tenure, r *Record, deadline time.Time) {
	t.token = r.Token
	l.holding.Store(&grant{token: r.Token, deadline: deadline, forever: l.settings.HeartbeatTimeout == Infinite})
}

// begin starts or goes on with a tenure for the record s, whose write was sent at start. The error is ErrTooLate when the
// time is over already, errMoved when the record has moved on meanwhile, ErrClosed when the lease was closed.
func (l *Lease) begin(a *attempt, s Snapshot, start time.Time) error {
	deadline, now := l.deadlineFor(start), l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return ErrClosed
	case l.know.token > s.Record.Token:
		return errMoved
	case !deadline.IsZero() && !now.Before(deadline):
		return ErrTooLate
	}
	t := l.tenure
	if t == nil {
		t = &tenure{returned: a.returned, doubt: make(chan struct{}, 1)}
		t.ctx, t.end = context.WithCancel(l.root)
		l.tenure = t
		l.running.Go(func() { l.heartbeats(t) })
	}
	if a.lost != nil {
		t.lost = a.lost
	}
	t.nonce = s.Record.Nonce
	delete(l.strays, t.nonce)
	l.hold(t, &s.Record, deadline)
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
	lost := t.lost
	l.log.Warn("lease: lost", "token", t.token, "reason", reason)
	if lost == nil {
		return
	}
	// Not counted in running: the callback may call Close, which waits for those.
	go func() {
		<-t.returned
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
	reason := fmt.Errorf("%w: no heartbeat was confirmed for %v", ErrLost, l.settings.Window())
	if last != nil {
		reason = fmt.Errorf("%w: %w", reason, last)
	}
	l.loseLocked(t, reason)
}
