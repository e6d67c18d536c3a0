// Package patience counts time in which this process ran.
//
// A process that is stopped (a paused virtual machine, SIGSTOP) finds every timer over when it goes on. For a
// limit on another process that is wrong: that one may have stood still as well, or not have begun.
//
// # Guarantees
//
//   - A standstill of any length counts as at most two tenths of the limit.
//
// # Non-guarantees
//
//   - A limit is up to a tenth longer than asked for.
package patience

import (
	"context"
	"time"
)

// steps is into how many parts a limit is cut. A ticker does not make up for ticks that nobody took.
const steps = 10

// WithTimeout is context.WithTimeoutCause, but for the time in which this process does not run. d must be
// more than zero.
func WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		tick := time.NewTicker(max(d/steps, 1))
		defer tick.Stop()
		for range steps {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
		cancel(cause)
	}()
	return ctx, func() { cancel(context.Canceled) }
}
