package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Grant is what an Acquire was granted: one time of holding the lease, from the grant to its loss or release.
// Several grants of one Lease, of Acquires while it was held, share such a time and end together. It is safe
// for concurrent use.
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

// Record returns the record as it was written for this grant.
func (g *Grant) Record() Record { return g.record }

// Token returns the fencing token of this grant, also after its end. A later Acquire may have got a larger
// one: see Lease.Token.
func (g *Grant) Token() uint64 { return g.record.Token }

// Done is closed when the grant has ended; Lease.Check is false before. It is closed before a release is sent
// to the store.
func (g *Grant) Done() <-chan struct{} { return g.hold.Done() }

// Err is nil until Done is closed. After that it wraps ErrLost, and also ErrReleased or ErrClosed if this
// owner has ended the grant.
func (g *Grant) Err() error { return context.Cause(g.hold) }

// Lost is why the grant was lost: nil while it is held, and where this owner itself has ended it.
func (g *Grant) Lost() error {
	err := g.Err()
	if errors.Is(err, ErrReleased) || errors.Is(err, ErrClosed) {
		return nil
	}
	return err
}

// Context returns a copy of ctx that ends with the grant, too: its context.Cause is Err then. Call cancel
// after use.
func (g *Grant) Context(ctx context.Context) (work context.Context, cancel context.CancelFunc) {
	ends, end := context.WithCancelCause(g.hold)
	stop := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	return &workContext{Context: ends, caller: ctx}, func() { stop(); end(context.Canceled) }
}

// workContext ends as its Context does, and has the values and the deadline of its caller's. It is no child
// of the caller's: a context ends at once with its parent, and work must have been told of a release before
// that is sent.
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

// Release gives the grant up, and every other one of the same time of holding the lease. It is Lease.Release,
// but leaves alone what was granted after this grant has ended: then it returns ErrNotHeld.
func (g *Grant) Release(ctx context.Context) error {
	return g.lease.do(ctx, ReleaseOp{Tenure: g.hold.tenure}).Err
}

// HeldError says that for certain nothing was granted. It is an ErrHeld.
type HeldError struct {
	// Record is the record as it stood in the store. Its Holder may be empty if the proposal was superseded,
	// and may be this owner if an earlier attempt of its own, whose answer was lost, turns out to have been
	// written.
	Record Record
	// Superseded says that the token was another than Proposal.Base, whatever the holder.
	Superseded bool
	// RetryAfter is how long the holder may stay silent until it counts as gone, as seen from here, zero
	// where that never happens. If it is this owner after a take-over: until it may use the lease.
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

// OutcomeOf is what an Acquire that returned err means to a resolver: Granted for nil, Held for a HeldError,
// and Unknown for anything else, since the store may have granted then, or may still.
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

// Proposal is what an Acquire wants to write. The zero Proposal is a plain lock.
type Proposal struct {
	// Verdict is written together with the holder, in one conditional write. Nil: a plain lock, the last
	// verdict stays. Acquire works on a copy, sorts its lists and fills in its Token.
	Verdict *sbr.Verdict
	// Base is the Record.Token that Verdict builds upon. Any other token in the store means that another
	// party was faster: Acquire answers a HeldError (Superseded) and nothing is written. Not used without a
	// verdict.
	Base uint64
	// BaseBy is the writer of the verdict under Base, as far as that is known: a store that forgot may hold
	// another verdict under that token, which counts as another token. Empty: not compared.
	BaseBy string
	// TakeOver names holders that may be replaced although they are alive: a former leader of one's own side.
	// Until its next heartbeat such a holder does not know. So the verdict counts at once, but Check is false
	// until the former holder's time is over, as if it had crashed; a plain Acquire is refused until then,
	// and a Release frees the record only then (never, where HeartbeatTimeout is Infinite). It excludes For.
	TakeOver []string
	// Override replaces any holder, alive or not, and counts at once. It is for people and tools with that
	// right. They make sure that the former holder has ended.
	Override bool
	// Exclusive makes the lease single-entrant: an Acquire is refused while any owner holds it, this one
	// included.
	Exclusive bool
	// For is how long the grant lasts. Zero: as long as heartbeats go on. Infinite: until it is released. It
	// must not exceed Settings.HeartbeatTimeout, since others wait no longer than that. Check turns false a
	// little before it is over, as Settings.Window does before HeartbeatTimeout. Two lives under one owner's
	// name must not use it: one cannot know how long the other has asked for, so a shorter time of the second
	// would end the first without a word.
	For time.Duration
	// KeepAlive renews a grant with For by heartbeats, each for the same time.
	KeepAlive bool
}

// plain reports whether any grant of this owner is as good as a new one.
func (p *Proposal) plain() bool {
	return p.Verdict == nil && p.For == 0 && !p.Exclusive && !p.Override
}

func (p Proposal) clone() Proposal {
	p.Verdict = p.Verdict.Clone()
	if p.Verdict != nil {
		p.Verdict.Normalize()
	}
	p.TakeOver = slices.Clone(p.TakeOver)
	return p
}
