package lease

import (
	"context"
	"errors"
	"time"
)

// heartbeats renews the tenure until it ends. Failures are repeated inside the window, which ends before anybody else may
// take over; at its end the lease is lost, whether or not anybody said so.
func (l *Lease) heartbeats(t *tenure) {
	interval := l.settings.Interval()
	wait, failures := interval, 0
	var last error
	for {
		left, ok := l.left(t)
		if !ok {
			return
		}
		if left <= 0 {
			l.overdue(last)
			continue
		}
		if wait >= left && left/2 > l.settings.OperationTimeout/10 {
			wait = left / 2 // the time is running out: rather one more try than to sleep over the end
		}
		if !l.rest(t, max(min(wait, left), time.Millisecond)) {
			return
		}
		if left, ok = l.left(t); !ok || left <= 0 {
			continue
		}
		switch err := l.heartbeat(t, min(left, l.settings.OperationTimeout)); {
		case err == nil:
			wait, failures, last = interval, 0, nil
		case errors.Is(err, ErrLost):
			return
		default:
			last = err
			wait = interval >> max(0, 2-failures) // a quarter, a half, then the whole interval
			failures++
			l.log.Info("lease: heartbeat failed", "error", err, "next-in", wait)
		}
	}
}

// left is how long the tenure may still be trusted; ok is false when it has ended.
func (l *Lease) left(t *tenure) (time.Duration, bool) {
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tenure != t {
		return 0, false
	}
	if g := l.holding.Load(); !g.forever {
		return g.deadline.Sub(now), true
	}
	return Infinite, true
}

// rest waits for d, or until there is doubt. It reports false when the tenure has ended.
func (l *Lease) rest(t *tenure, d time.Duration) bool {
	fired, stop := l.clock.NewTimer(d)
	defer stop()
	select {
	case <-fired:
	case <-t.doubt:
	case <-t.ctx.Done():
		return false
	}
	return true
}

// heartbeat writes one sign of life. After an error that wraps ErrLost the tenure is over; any other means: try again.
func (l *Lease) heartbeat(t *tenure, timeout time.Duration) error {
	ctx, cancel := withTimeout(t.ctx, l.clock, timeout, errTimeout)
	defer cancel()
	if err := l.lock(ctx); err != nil {
		return err
	}
	defer l.unlock()
	s, known := l.cached()
	if !known || !l.owns(t, &s.Record) {
		var err error
		if s, err = l.fetchOwn(ctx, t); err != nil {
			return err
		}
	}
	for n := 1; ; n++ {
		start := l.clock.Now()
		got, err := l.write(ctx, l.renewed(s.Record), s.Version)
		if err == nil {
			l.extend(t, got, start)
			return nil
		}
		if !errors.Is(err, ErrConflict) {
			return err
		}
		// An earlier heartbeat whose answer was lost, an edit by somebody else, or the end.
		if err := l.pause(ctx, n); err != nil {
			return err
		}
		if s, err = l.fetchOwn(ctx, t); err != nil {
			return err
		}
	}
}

// fetchOwn reads the record. If it is not the tenure's any more, the tenure ends here, while no other writer is admitted.
func (l *Lease) fetchOwn(ctx context.Context, t *tenure) (Snapshot, error) {
	s, err := l.fetch(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	if !l.owns(t, &s.Record) {
		reason := l.lossReason(t, &s.Record, s.Version)
		l.lose(t, reason)
		return Snapshot{}, reason
	}
	return s, nil
}

// owns reports whether t goes on and r is its record.
func (l *Lease) owns(t *tenure, r *Record) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tenure == t && l.recognises(t, r)
}

// renewed is r with a new sign of life. It grows even if the wall clock does not, so that others see the change;
// a millisecond, because a backend may store no finer times.
func (l *Lease) renewed(r Record) Record {
	now := l.clock.Now().Round(0)
	if next := r.Renewed.Add(time.Millisecond); now.Before(next) {
		now = next
	}
	r.Renewed, r.TTL = now, l.settings.ttl()
	return r
}

// extend moves the deadline after a heartbeat that was sent at start.
func (l *Lease) extend(t *tenure, s Snapshot, start time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tenure == t && s.Record.Nonce == t.nonce {
		l.hold(t, &s.Record, l.deadlineFor(start))
	}
}
