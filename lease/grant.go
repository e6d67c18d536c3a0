package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Grant is what an Acquire was granted: one time of holding the lease, from the grant to its loss or release. Several grants of one
// Lease, of Acquires while it was held, share such a time and end together. It is safe for concurrent use.
type Grant struct {
	lease  *Lease
	hold   *hold
	record Record
}

// hold is one time of holding the lease: a context that ends with it, by the reason.
type hold struct {
	context.Context
	tenure uint64
	end    context.CancelCauseFunc
}

func newHold(tenure uint64) *hold {
	h := &hold{tenure: tenure}
	h.Context, h.end = context.WithCancelCause(context.Background())
	return h
}

// Record returns the record as it was written for this grant.
func (g *Grant) Record() Record { return g.record }

// Token returns the fencing token of this grant, also after its end. A later Acquire may have got a larger one: see Lease.Token.
func (g *Grant) Token() uint64 { return g.record.Token }

// Done is closed when the grant has ended; Lease.Check is false before. It is closed before a release is sent to the store.
func (g *Grant) Done() <-chan struct{} { return g.hold.Done() }

// Err is nil until Done is closed. After that it wraps ErrLost, and also ErrReleased or ErrClosed if this owner has ended the grant.
func (g *Grant) Err() error { return context.Cause(g.hold) }

// Lost is why the grant was lost: nil while it is held, and where this owner itself has ended it.
func (g *Grant) Lost() error {
	err := g.Err()
	if errors.Is(err, ErrReleased) || errors.Is(err, ErrClosed) {
		return nil
	}
	return err
}

// Context returns a copy of ctx that ends with the grant, too: its context.Cause is Err then. Call cancel after use.
func (g *Grant) Context(ctx context.Context) (work context.Context, cancel context.CancelFunc) {
	ends, end := context.WithCancelCause(g.hold)
	stop := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	return &workContext{Context: ends, caller: ctx}, func() { stop(); end(context.Canceled) }
}

// workContext ends as its Context does, and has the values and the deadline of its caller's. It is no child of that one: a
// context ends at once with its parent, and work must have been told of a release before that is sent.
type workContext struct {
	context.Context
	caller context.Context
}

func (w *workContext) Deadline() (time.Time, bool) { return w.caller.Deadline() }

func (w *workContext) Value(key any) any {
	if v := w.Context.Value(key); v != nil {
		return v
	}
	return w.caller.Value(key)
}

// Release gives the grant up, and every other one of the same time of holding the lease. It is Lease.Release, but leaves alone what
// was granted after this grant has ended: then it returns ErrNotHeld.
func (g *Grant) Release(ctx context.Context) error {
	return g.lease.do(ctx, ReleaseOp{Tenure: g.hold.tenure}).Err
}

// HeldError says that for certain nothing was granted. It is an ErrHeld.
type HeldError struct {
	// Record is the record as it stood in the store. Its Holder may be empty if the proposal was superseded, and may be this
	// owner if an earlier attempt of its own, whose answer was lost, turns out to have been written.
	Record Record
	// Superseded says that the token was another than Proposal.Base, whoever holds the lease.
	Superseded bool
	// RetryAfter is how long the holder may stay silent until it counts as gone, as seen from here, zero where that never
	// happens. If it is this owner after a take-over: until it may use the lease.
	RetryAfter time.Duration
	// Grant is not nil if this owner holds the lease all the same, by an earlier grant.
	Grant *Grant
}

// Error implements error.
func (e *HeldError) Error() string {
	if e.Superseded {
		return fmt.Sprintf("%v: superseded by token %d (holder %q)", ErrHeld, e.Record.Token, e.Record.Holder)
	}
	return fmt.Sprintf("%v by %q (token %d)", ErrHeld, e.Record.Holder, e.Record.Token)
}

// Is reports that it is an ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// OutcomeOf is what an Acquire that returned err means to a resolver: Granted for nil, Held for a HeldError, and Unknown for anything
// else, since the store may have granted then, or may still.
func OutcomeOf(err error) sbr.Outcome {
	switch held := (*HeldError)(nil); {
	case err == nil:
		return sbr.Granted
	case errors.As(err, &held):
		return sbr.Held
	default:
		return sbr.Unknown
	}
}
