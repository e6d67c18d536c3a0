package sharding

import (
	"context"

	"github.com/serf-sbr/serf-sbr/internal/conduct"
	"github.com/serf-sbr/serf-sbr/sharding/host"
)

// ErrNotRunning is wrapped by Shard.Check when the run may not work any more.
var ErrNotRunning = conduct.ErrNotRunning

// The causes for which a run's context ends: context.Cause wraps one of them. Those that package singleton has are the same there.
var (
	// ErrHandOver: another member takes over.
	ErrHandOver = conduct.ErrHandOver
	// ErrOrdered: the coordinator has given the shard to another member, or does not know that it is here.
	ErrOrdered = conduct.ErrOrdered
	// ErrResigned: this member leaves, or its Manager was stopped.
	ErrResigned = conduct.ErrResigned
	// ErrLeaseLost: the shard's lease is lost.
	ErrLeaseLost = conduct.ErrLeaseLost
	// ErrUnsure: without leases, this member has not been sure of its place for too long.
	ErrUnsure = conduct.ErrUnsure
	// ErrDowned: this member was downed.
	ErrDowned = conduct.ErrDowned
)

var causes = map[host.Cause]error{
	host.CauseHandOver: ErrHandOver, host.CauseOrdered: ErrOrdered, host.CauseResigned: ErrResigned, host.CauseLeaseLost: ErrLeaseLost,
	host.CauseUnsure: ErrUnsure, host.CauseDown: ErrDowned,
}

// Shard is one run of one shard. All methods are safe for concurrent use.
type Shard struct {
	name string
	run  *conduct.Run
}

// Name is the shard's.
func (s *Shard) Name() string { return s.name }

// Token is the fencing token: send it with everything that must not happen twice, and let the resource refuse smaller ones.
func (s *Shard) Token() uint64 { return s.run.Token }

// State is what the run before has handed over: nil at the first start, after a crash, or if it left nothing. Do not change it.
func (s *Shard) State() []byte { return s.run.State }

// From is the name of the member that handed over; empty if none did.
func (s *Shard) From() string { return s.run.From }

// HandOver sets what the next run gets, at most MaxState bytes; the last call before the function returns counts. It is lost in a crash. It returns an
// error that names the size if there is too much of it.
func (s *Shard) HandOver(state []byte) error { return s.run.HandOver(state, MaxState) }

// Check returns nil while this run certainly may work. It asks nobody and never blocks. After a pause of the process it is right at once, before the
// context has ended. The error wraps ErrNotRunning.
func (s *Shard) Check() error { return s.run.Check() }

type shardKey struct{}

// FromContext returns the run to which a context belongs.
func FromContext(ctx context.Context) (s *Shard, ok bool) {
	s, ok = ctx.Value(shardKey{}).(*Shard)
	return s, ok
}
