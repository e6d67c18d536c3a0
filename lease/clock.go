package lease

import (
	"context"
	"time"
)

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
func withTimeout(ctx context.Context, c Clock, d time.Duration, cause error) (context.Context, context.CancelFunc) {
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
