package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// AcquireWait is Acquire, repeated until it is granted or ctx ends: while somebody holds the lease it watches the record and
// tries again when the lease becomes free, or its holder has been silent for too long. Who of many waits is next is open.
//
// The error wraps that of the last Acquire, and ctx's cause if that has ended the waiting. Where another try would end the same way it
// returns at once: superseded, ErrTooLarge, ErrTokenSpent, ErrClosed, an impossible Proposal.
func (l *Lease) AcquireWait(ctx context.Context, p Proposal) (*Grant, error) {
	if _, err := l.machine.terms(&p); err != nil {
		return nil, err
	}
	w := waiter{lease: l, proposal: &p}
	defer w.stop()
	for failures := 0; ; {
		g, err := l.Acquire(ctx, p)
		if err == nil || isFutile(err) {
			return g, err
		}
		var end error
		if OutcomeOf(err) == sbr.Held {
			failures, end = 0, w.wait(ctx)
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

// waiter watches the record on behalf of one AcquireWait. The watch begins when it is first needed.
type waiter struct {
	lease    *Lease
	proposal *Proposal
	changed  chan struct{}
	end      func()
}

// wait returns when another Acquire is worth while.
func (w *waiter) wait(ctx context.Context) error {
	if w.changed == nil {
		w.watch(ctx)
	}
	for {
		left := w.left()
		if left <= 0 {
			return context.Cause(ctx)
		}
		fired, stop := w.lease.clock.NewTimer(left)
		select {
		case <-fired:
		case <-w.changed:
		case <-w.lease.root.Done():
			stop()
			return ErrClosed
		case <-ctx.Done():
			stop()
			return context.Cause(ctx)
		}
		stop()
	}
}

// left is how long nothing needs to be tried, as far as is known. It is bounded, so that nobody waits for ever on a watch
// that stands still.
func (w *waiter) left() time.Duration {
	l := w.lease
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.machine.Wait(now, w.proposal)
}

func (w *waiter) watch(ctx context.Context) {
	w.changed = make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = w.lease.Watch(ctx, func(Record) { w.wake() }) // without it the waiter asks once in a heartbeat interval
	}()
	w.end = func() { cancel(); <-ended }
}

func (w *waiter) stop() {
	if w.end != nil {
		w.end()
	}
}

func (w *waiter) wake() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}
