package singleton

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/internal/slot/drive"
)

// ErrDone is returned by Config.Run when this member must not run the function again. The member hands over
// to another one.
var ErrDone = errors.New("singleton: done")

// Superseded is returned by Config.Run when a resource has refused the token of this run: Token is that of
// the newer run. The function is run again after RestartAfter, here or elsewhere, under a token larger than
// Token; with a lease under the next one of the lease, which is smaller only if its store has lost the record.
type Superseded struct{ Token uint64 }

// Error names the token.
func (s *Superseded) Error() string {
	return fmt.Sprintf("singleton: there was a run with token %d", s.Token)
}

// ErrNotRunning is wrapped by Run.Check when the run may not work any more.
var ErrNotRunning = drive.ErrNotRunning

// The causes for which a run's context ends: context.Cause wraps one of them. Package sharding has the same.
var (
	// ErrHandOver: an older member takes over.
	ErrHandOver error = slot.CauseHandOver
	// ErrResigned: this member leaves, or its Manager was stopped.
	ErrResigned error = slot.CauseResigned
	// ErrLeaseLost: the lease is lost.
	ErrLeaseLost error = slot.CauseLeaseLost
	// ErrUnsure: without a lease, membership was not confirmed for too long.
	ErrUnsure error = slot.CauseUnsure
	// ErrDowned: this member was downed.
	ErrDowned error = slot.CauseDown
)

// Run is one execution of the function. All methods are safe for concurrent use.
type Run struct{ run *drive.Run }

// RunOf is for package sharding.
func RunOf(r *drive.Run) *Run { return &Run{r} }

// Token is the fencing token: send it with every request that must not take effect twice, and let the
// resource refuse smaller tokens.
func (r *Run) Token() uint64 { return r.run.Token }

// State is the state that the last run handed over: nil at the first start, after a crash, or if that run
// left none. Do not change it.
func (r *Run) State() []byte { return r.run.State }

// From is the name of the member that handed over; empty if no member did.
func (r *Run) From() string { return r.run.From }

// HandOver sets the state for the next run, at most MaxState bytes; the last call before the function returns
// counts. A crash loses the state. If the state is too large the error names its size.
func (r *Run) HandOver(state []byte) error { return r.run.HandOver(state) }

// Check returns nil while this run certainly may work. It sends nothing and never blocks. After a pause of
// the process its result is right at once, before the context has ended. The error wraps ErrNotRunning.
func (r *Run) Check() error { return r.run.Check() }

// Until is the moment at which Check fails unless the lease was renewed, or membership confirmed again,
// meanwhile; zero: never. ok is false when Check fails already. It is for work that takes time: end the work
// before that moment. Until never blocks.
func (r *Run) Until() (at time.Time, ok bool) { return r.run.ValidUntil() }

type runKey struct{}

// FromContext returns the run to which a context belongs.
func FromContext(ctx context.Context) (r *Run, ok bool) {
	r, ok = ctx.Value(runKey{}).(*Run)
	return r, ok
}
