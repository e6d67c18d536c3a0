package sharding

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/serf-sbr/serf-sbr/sharding/host"
)

// ErrNotRunning is wrapped by Shard.Check when the run may not work any more.
var ErrNotRunning = errors.New("sharding: this run may not work any more")

// The causes for which a run's context ends: context.Cause wraps one of them.
var (
	// ErrHandOver: another member takes over.
	ErrHandOver = errors.New("sharding: handing over")
	// ErrOrdered: the coordinator has given the shard to another member, or does not know that it is here.
	ErrOrdered = errors.New("sharding: ordered to stop")
	// ErrResigned: this member leaves, or its Manager was stopped.
	ErrResigned = errors.New("sharding: resigned")
	// ErrLeaseLost: the shard's lease is lost.
	ErrLeaseLost = errors.New("sharding: the lease is lost")
	// ErrUnsure: without leases, this member has not been sure of its place for too long.
	ErrUnsure = errors.New("sharding: not sure to be a member")
	// ErrDowned: this member was downed.
	ErrDowned = errors.New("sharding: downed")
)

var causes = map[host.Cause]error{
	host.CauseHandOver: ErrHandOver, host.CauseOrdered: ErrOrdered, host.CauseResigned: ErrResigned, host.CauseLeaseLost: ErrLeaseLost,
	host.CauseUnsure: ErrUnsure, host.CauseDown: ErrDowned,
}

// Shard is one run of one shard. All methods are safe for concurrent use.
type Shard struct {
	name   string
	number uint64
	token  uint64
	state  []byte
	from   string
	check  func() error

	mu   sync.Mutex
	left []byte
}

// Name is the shard's.
func (s *Shard) Name() string { return s.name }

// Token is the fencing token: send it with everything that must not happen twice, and let the resource refuse smaller ones.
func (s *Shard) Token() uint64 { return s.token }

// State is what the run before has handed over: nil at the first start, after a crash, or if it left nothing. Do not change it.
func (s *Shard) State() []byte { return s.state }

// From is the name of the member that handed over; empty if none did.
func (s *Shard) From() string { return s.from }

// HandOver sets what the next run gets, at most MaxState bytes; the last call before the function returns counts. It is lost in a crash. It returns an
// error that names the size if there is too much of it.
func (s *Shard) HandOver(state []byte) error {
	if len(state) > MaxState {
		return fmt.Errorf("shard %s: %d bytes of state cannot be handed over, only %d: keep them in a store, under the token", s.name, len(state), MaxState)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = append([]byte(nil), state...)
	return nil
}

// Check returns nil while this run certainly may work. It asks nobody and never blocks. After a pause of the process it is right at once, before the
// context has ended. The error wraps ErrNotRunning.
func (s *Shard) Check() error {
	if err := s.check(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	return nil
}

func (s *Shard) handedOver() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}

type shardKey struct{}

// FromContext returns the run to which a context belongs.
func FromContext(ctx context.Context) (s *Shard, ok bool) {
	s, ok = ctx.Value(shardKey{}).(*Shard)
	return s, ok
}
