package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// AcquireWait is Acquire, repeated until it is granted or ctx ends: while the lease is held it watches the
// record and tries again when the lease becomes free, or its holder has been silent for too long. The order
// of several waiting calls is open.
//
// The error wraps that of the last Acquire, and ctx's cause if that has ended the waiting. Where another try
// would end the same way it returns at once: superseded, ErrTooLarge, ErrTokenSpent, ErrClosed, an impossible
// Proposal.
func (l *Lease) AcquireWait(ctx context.Context, p Proposal) (*Grant, error) {
	if _, err := l.machine.terms(&p); err != nil {
		return nil, err
	}
	watching, stop := context.WithCancel(ctx)
	changed, watch := make(chan struct{}, 1), sync.WaitGroup{}
	defer watch.Wait()
	defer stop()
	begin := sync.OnceFunc(func() {
		watch.Go(func() {
			_ = l.Watch(watching, func(Record) { // it ends with ctx, or with the lease
				select {
				case changed <- struct{}{}:
				default:
				}
			})
		})
	})
	for failures := 0; ; {
		g, err := l.Acquire(ctx, p)
		if err == nil || isFutile(err) {
			return g, err
		}
		var end error
		if held, ok := errors.AsType[*HeldError](err); ok {
			begin()
			if l.opts.OnHeld != nil {
				l.opts.OnHeld(held.Record)
			}
			failures, end = 0, l.untilFree(ctx, &p, changed)
		} else {
			failures++
			end = sleep(ctx, l.clock, l.machine.Pause(failures))
		}
		if end != nil {
			return nil, fmt.Errorf("%w: %w", err, end)
		}
	}
}

// isFutile reports whether another Acquire would end the same way.
func isFutile(err error) bool {
	held := (*HeldError)(nil)
	return errors.As(err, &held) && held.Superseded ||
		errors.Is(err, ErrTooLarge) || errors.Is(err, ErrTokenSpent) || errors.Is(err, ErrClosed)
}

// untilFree returns when another Acquire is worth while: when nothing that is known speaks against it. A
// stalled watch delays that until the holder has been silent for too long; a holder that never expires speaks
// against it until a change is seen.
func (l *Lease) untilFree(ctx context.Context, p *Proposal, changed <-chan struct{}) error {
	for {
		now := l.clock.Now()
		l.mu.Lock()
		left := l.machine.Wait(now, p)
		l.mu.Unlock()
		if left <= 0 {
			return context.Cause(ctx)
		}
		fired, stop := l.clock.NewTimer(left)
		select {
		case <-fired:
		case <-changed:
		case <-l.root.Done():
			stop()
			return ErrClosed
		case <-ctx.Done():
			stop()
			return context.Cause(ctx)
		}
		stop()
	}
}

// Clock tells the time and wakes sleepers. The default is the machine's.
type Clock interface {
	// Now returns the time. Its differences should come from a monotonic clock, as those of time.Now do.
	Now() time.Time
	// NewTimer returns a channel that receives once when d is over, and a function that gives the timer up.
	NewTimer(d time.Duration) (fired <-chan time.Time, stop func() bool)
}

type systemClock struct{}

// SystemClock returns the machine's clock.
func SystemClock() Clock { return systemClock{} }

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) NewTimer(d time.Duration) (<-chan time.Time, func() bool) {
	t := time.NewTimer(d)
	return t.C, t.Stop
}

// withTimeout is context.WithTimeoutCause by the given clock.
func withTimeout(ctx context.Context, c Clock, d time.Duration, cause error) (
	context.Context, context.CancelFunc) {
	if _, ok := c.(systemClock); ok {
		return context.WithTimeoutCause(ctx, d, cause)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	fired, stop := c.NewTimer(d)
	go func() {
		defer stop()
		select {
		case <-fired:
			cancel(cause)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, c Clock, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	fired, stop := c.NewTimer(d)
	defer stop()
	select {
	case <-fired:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
