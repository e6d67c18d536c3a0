package lease

import (
	"context"
	"errors"
	"fmt"
)

// Do acquires the lease, runs fn and releases the lease. It is single-entrant: of two calls on one Lease, too, only one runs.
// If somebody holds the lease nothing is run and the error wraps ErrHeld; if nobody knows, it is Outcome.Err.
//
// fn's context ends when the lease is lost, with a context.Cause that wraps ErrLost. The error is fn's, joined by the loss if
// there was one: then the end of the work may have run unprotected, which only the fencing token (Token) guards against.
// The lease is released after fn also when it panics; a release that fails is logged, the lease runs out then.
func (l *Lease) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	return l.do(ctx, fn, l.Acquire)
}

// DoWait is Do that waits until the lease is free, as AcquireWait does.
func (l *Lease) DoWait(ctx context.Context, fn func(ctx context.Context) error) error {
	return l.do(ctx, fn, l.AcquireWait)
}

func (l *Lease) do(ctx context.Context, fn func(context.Context) error, acquire func(context.Context, Proposal, func(error)) Outcome) error {
	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := acquire(ctx, Proposal{Exclusive: true}, cancel)
	switch out.Kind {
	case Granted:
	case Held:
		err := fmt.Errorf("%w by %q (token %d)", ErrHeld, out.Record.Holder, out.Record.Token)
		if out.Err != nil {
			err = fmt.Errorf("%w: %w", err, out.Err)
		}
		return err
	default:
		return out.Err
	}
	defer func() {
		// The caller's ctx may be over; the release is bounded by OperationTimeout. Work that has outlived its grant must not
		// release what somebody else in this process got meanwhile.
		if released := l.releaseGrant(context.WithoutCancel(ctx), out.Record.Token); released.Kind == ReleaseUnknown {
			l.log.Warn("lease: not released after the work; it runs out", "error", released.Err)
		}
	}()
	err := fn(work)
	loss := context.Cause(work)
	switch {
	case !errors.Is(loss, ErrLost) && l.Token() == out.Record.Token, errors.Is(err, ErrLost):
		return err
	case !errors.Is(loss, ErrLost):
		loss = fmt.Errorf("%w: its time was over when the work ended", ErrLost)
	}
	if err == nil {
		return loss
	}
	return fmt.Errorf("%w; %w", err, loss)
}
