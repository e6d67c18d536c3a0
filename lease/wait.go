package lease

import (
	"context"
	"errors"
	"time"
)

// AcquireWait is Acquire, repeated until it is granted or ctx ends: while somebody holds the lease it watches the record and
// tries again when the lease becomes free, or its holder has been silent for too long. Who of many waits is next is open.
//
// The outcome is Granted, or else the last one with Err saying why it gave up: ctx's cause; or, at once, that another try
// would end the same way (Superseded, ErrTooLarge, ErrTokenSpent, ErrClosed, an impossible Proposal).
func (l *Lease) AcquireWait(ctx context.Context, p Proposal, lost func(error)) Outcome {
	if _, err := l.machine.terms(&p); err != nil {
		return Outcome{Kind: Unknown, Err: err}
	}
	w := waiter{lease: l, proposal: &p}
	defer w.stop()
	for failures := 0; ; {
		out := l.Acquire(ctx, p, lost)
		if done(&out) {
			return out
		}
		var err error
		if out.Kind == Held {
			failures, err = 0, w.wait(ctx)
		} else {
			failures++
			err = sleep(ctx, l.clock, min(l.settings.Interval(), l.opts.Backoff(failures+1)<<min(failures, 10)))
		}
		if err != nil {
			out.Err = err
			return out
		}
	}
}

// done reports whether waiting is over, or futile.
func done(out *Outcome) bool {
	switch out.Kind {
	case Granted:
		return true
	case Held:
		if out.Superseded {
			out.Err = ErrConflict
		}
		return out.Superseded
	default:
		return errors.Is(out.Err, ErrTooLarge) || errors.Is(out.Err, ErrTokenSpent) || errors.Is(out.Err, ErrClosed)
	}
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
