package sharding

import (
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/internal/slot/drive"
	"github.com/serf-sbr/serf-sbr/singleton"
)

// ErrNotRunning is wrapped by Shard.Check when the run may not work any more.
var ErrNotRunning = drive.ErrNotRunning

// The causes for which a run's context ends: context.Cause wraps one of them. Package singleton has the same
// values.
var (
	// ErrHandOver: another member takes over.
	ErrHandOver error = slot.CauseHandOver
	// ErrOrdered: the coordinator has given the shard to another member, or does not know that it is here.
	ErrOrdered error = slot.CauseOrdered
	// ErrResigned: this member leaves, or its Manager was stopped.
	ErrResigned error = slot.CauseResigned
	// ErrLeaseLost: the shard's lease is lost.
	ErrLeaseLost error = slot.CauseLeaseLost
	// ErrUnsure: without leases, membership was not confirmed for too long.
	ErrUnsure error = slot.CauseUnsure
	// ErrDowned: this member was downed.
	ErrDowned error = slot.CauseDown
)

// Shard is one run of one shard: a singleton.Run with a name. Its Token is larger than those of former
// owners; a run that is started again in place keeps it. All methods are safe for concurrent use.
type Shard struct {
	*singleton.Run
	name string
}

// Name is the name of the shard.
func (s *Shard) Name() string { return s.name }
