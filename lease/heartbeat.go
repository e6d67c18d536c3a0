package lease

import (
	"context"
	"errors"
	"time"
)

// heartbeats renews the tenure until it ends. Failures are repeated inside the window, which ends before anybody else may
// take over; at its end the lease is lost, whether or not anybody said so. A grant for a fixed time is only watched over.
func (l *Lease) heartbeats(t *tenure) {
	var rhythm rhythm
	for {
		left, terms, ok := l.left(t)
		if !ok {
			return
		}
		if left <= 0 {
			l.overdue(rhythm.last)
			continue
		}
		why, ok := l.rest(t, max(rhythm.wait(terms.interval, left, l.settings.OperationTimeout), time.Millisecond))
		if !ok {
			return
		}
		if left, terms, ok = l.left(t); !ok || left <= 0 || why == termsChanged {
			continue
		}
		if terms.interval == 0 && why != inDoubt {
			continue
		}
		err := l.heartbeat(t, min(left, l.settings.OperationTimeout))
		if errors.Is(err, ErrLost) {
			return
		}
		if rhythm.note(err); err != nil {
			l.log.Info("lease: heartbeat failed", "error", err, "next-in", rhythm.wait(terms.interval, left, l.settings.OperationTimeout))
		}
	}
}

// rhythm is when the next heartbeat is due: after a quarter of the interval once one has failed, then a half, then the whole.
type rhythm struct {
	failures int
	last     error
}

func (r *rhythm) note(err error) {
	r.last = err
	if r.failures++; err == nil {
		r.failures = 0
	}
}

func (r *rhythm) wait(interval, left, operation time.Duration) time.Duration {
	if interval == 0 {
		return left
	}
	wait := interval
	if r.failures > 0 {
		wait = interval >> max(0, 3-r.failures)
	}
	if wait >= left && left/2 > operation/10 {
		wait = left / 2 // the time is running out: rather one more try than to sleep over the end
	}
	return min(wait, left)
}

// left is how long the tenure may still be trusted; ok is false when it has ended.
func (l *Lease) left(t *tenure) (left time.Duration, in terms, ok bool) {
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tenure != t {
		return 0, terms{}, false
	}
	if g := l.holding.Load(); !g.forever {
		return g.deadline.Sub(now), t.terms, true
	}
	return Infinite, t.terms, true
}

// awakened is why a rest has ended.
type awakened uint8

const (
	onTime awakened = iota
	inDoubt
	termsChanged
)

// rest waits for d, or until there is doubt or news. It reports false when the tenure has ended.
func (l *Lease) rest(t *tenure, d time.Duration) (why awakened, ok bool) {
	var fired <-chan time.Time
	if d != Infinite {
		f, stop := l.clock.NewTimer(d)
		defer stop()
		fired = f
	}
	select {
	case <-fired:
		return onTime, true
	case <-t.doubt:
		return inDoubt, true
	case <-t.changed:
		return termsChanged, true
	case <-t.ctx.Done():
		return onTime, false
	}
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
	_, terms, _ := l.left(t)
	for n := 1; ; n++ {
		start := l.clock.Now()
		got, err := l.write(ctx, l.renewed(s.Record, terms), s.Version)
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

// renewed is r with a new sign of life of a holder with these terms.
func (l *Lease) renewed(r Record, t terms) Record {
	r = l.touched(r)
	r.TTL = t.recorded()
	return r
}

// touched is r with another time. It grows even if the wall clock does not, so that others see the change;
// a millisecond is the finest that a record has.
func (l *Lease) touched(r Record) Record {
	now := wall(l.clock.Now())
	if next := r.Renewed.Add(time.Millisecond); now.Before(next) {
		now = next
	}
	r.Renewed = now
	return r
}

// extend moves the deadline after a heartbeat that was sent at start.
func (l *Lease) extend(t *tenure, s Snapshot, start time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tenure == t && s.Record.Nonce == t.nonce {
		l.hold(t, &s.Record, start)
	}
}
