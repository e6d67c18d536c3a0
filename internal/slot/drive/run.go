package drive

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/slot"
)

// ErrNotRunning is wrapped by Run.Check when the run may not work any more.
var ErrNotRunning = errors.New("this run may not work any more")

// Holding is a run's view of its lease. *lease.Lease is one. Neither method blocks.
type Holding interface {
	// Token is the token of the grant that is certainly held; 0: none is.
	Token() uint64
	// ValidUntil is when the grant expires unless it is renewed.
	ValidUntil() (until time.Time, ok bool)
}

// Run is one execution of a function of the application. Its fields do not change once it was started. All
// methods are safe for concurrent use.
type Run struct {
	// Of names what runs, for errors.
	Of string
	// Shard is the number of the slot that runs.
	Shard int
	// Number counts the runs on this member.
	Number uint64
	// Token is the fencing token.
	Token uint64
	// State is the state that the last run handed over, From the name of its member.
	State []byte
	From  string
	// Holding is the lease; nil: there is none, and Until says how long the run is trusted.
	Holding Holding
	Until   *Deadline

	ctx    context.Context
	cancel context.CancelCauseFunc
	over   chan struct{} // closed when nothing of it is left
	begun  time.Time

	mu   sync.Mutex
	left []byte
	told time.Time // when the run was asked to end; zero: it was not
}

// Begin gives the run its context, which ends with parent or by Stop. If the run may not work any more,
// because the process was paused since the decision, it must not be started: the error is slot.CauseLeaseLost
// or slot.CauseUnsure.
func (r *Run) Begin(parent context.Context) error {
	r.ctx, r.cancel = context.WithCancelCause(parent)
	r.over, r.begun = make(chan struct{}), time.Now()
	err := r.mayWork()
	if err != nil {
		r.cancel(nil)
	}
	return err
}

// Start calls f on a goroutine of its own, and ended when nothing of it is left. Begin comes before.
func (r *Run) Start(f func(context.Context) error, ended func(error)) {
	Go(func() error { return f(r.ctx) }, func(err error) {
		r.cancel(nil)
		close(r.over)
		ended(err)
	})
}

// Stop ends the run's context, with a cause and an explanation. The first one counts.
func (r *Run) Stop(cause slot.Cause, why string) {
	r.mu.Lock()
	if r.told.IsZero() {
		r.told = time.Now()
	}
	r.mu.Unlock()
	r.cancel(fmt.Errorf("%w: %s", cause, why))
}

// ending is why the run ended, and when it was asked to; for a run that ended by itself, returned and zero.
func (r *Run) ending() (cause string, told time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, ok := errors.AsType[slot.Cause](r.Cause()); ok {
		return string(c), r.told
	}
	return returned, time.Time{}
}

// Cause is why the run's context has ended; nil: it has not.
func (r *Run) Cause() error { return context.Cause(r.ctx) }

func (r *Run) mayWork() error {
	switch {
	case r.ctx.Err() != nil:
		return context.Cause(r.ctx)
	case r.Holding != nil && !r.holds():
		return slot.CauseLeaseLost
	case r.Holding == nil && r.Until.Passed():
		return slot.CauseUnsure
	default:
		return nil
	}
}

// holds reports whether the lease is held by both clocks: a lease goes by the monotonic one alone.
func (r *Run) holds() bool {
	until, ok := r.Holding.ValidUntil()
	return ok && r.Holding.Token() == r.Token && (until.IsZero() || Since(until) < 0)
}

// Check returns nil while the run certainly may work. It never blocks. The error wraps ErrNotRunning and a
// cause.
func (r *Run) Check() error {
	if err := r.mayWork(); err != nil {
		return fmt.Errorf("%s: %w: %w", r.Of, ErrNotRunning, err)
	}
	return nil
}

// ValidUntil is when Check fails unless something is renewed before; zero: never. ok is false when it fails
// already.
func (r *Run) ValidUntil() (at time.Time, ok bool) {
	switch {
	case r.mayWork() != nil:
		return time.Time{}, false
	case r.Holding != nil:
		return r.Holding.ValidUntil()
	default:
		return r.Until.Time(), true
	}
}

// HandOver sets the state for the next run. The error names a size above slot.MaxState.
func (r *Run) HandOver(state []byte) error {
	if len(state) > slot.MaxState {
		return fmt.Errorf("%s: %d bytes of state cannot be handed over, only %d: keep them in a store, under the token",
			r.Of, len(state), slot.MaxState)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = append([]byte(nil), state...)
	return nil
}

// Left is the state for the next run.
func (r *Run) Left() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left
}

// ErrExited is the error of a function that does not return: runtime.Goexit, as of t.FailNow in a test.
var ErrExited = errors.New("it ended its goroutine")

// Panicked is the error of a function that panics.
type Panicked struct {
	Value any
	Stack []byte
}

// Error is one line; the stack is not in it.
func (p *Panicked) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Go runs f on a goroutine of its own, and then calls ended with its error, however it ends.
func Go(f func() error, ended func(error)) {
	go func() {
		err := ErrExited
		defer func() {
			if p := recover(); p != nil {
				err = &Panicked{Value: p, Stack: debug.Stack()}
			}
			ended(err)
		}()
		err = f()
	}()
}

// Attributes are the log attributes of a function's end.
func Attributes(err error) []any {
	if p, ok := errors.AsType[*Panicked](err); ok {
		return []any{"error", err, "stack", string(p.Stack)}
	}
	return []any{"error", err}
}

// Since is how long ago t was, by the monotonic clock or by the wall clock, whichever says longer: the
// monotonic clock stops while a machine is suspended. A wall clock that is set ahead makes the time too long,
// which is safe.
func Since(t time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(t), now.Round(0).Sub(t.Round(0)))
}

// Deadline is a moment up to which something may go on. The zero Deadline has passed. It is safe for
// concurrent use.
type Deadline struct {
	at atomic.Pointer[time.Time]
}

// Set sets the deadline.
func (d *Deadline) Set(at time.Time) { d.at.Store(&at) }

// Passed reports whether one of the two clocks has reached the deadline.
func (d *Deadline) Passed() bool {
	at := d.at.Load()
	return at == nil || Since(*at) >= 0
}

// Time returns the deadline; zero if none was set.
func (d *Deadline) Time() time.Time {
	if at := d.at.Load(); at != nil {
		return *at
	}
	return time.Time{}
}
