// Package sleep waits, unless there is nothing to wait for any more.
package sleep

import (
	"context"
	"time"
)

// For waits for d, or until ctx ends: then it returns the cause. If d is not above zero it does not wait, whether or not ctx has ended.
func For(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
