// Package sleep waits, unless there is nothing to wait for any more.
package sleep

import (
	"context"
	"time"
)

// Within runs f, and reports whether it returned before over came; else f goes on, and nobody waits for it.
func Within[T any](over <-chan T, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return true
	case <-over:
		return false
	}
}

// For waits for d, or until ctx ends: then it returns the cause. If d is not above zero it does not wait,
// whether or not ctx has ended.
func For(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
