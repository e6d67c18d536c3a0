package sharding

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/conduct"
	"github.com/serf-sbr/serf-sbr/internal/inbox"
	"github.com/serf-sbr/serf-sbr/internal/leasing"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding/allocation"
	"github.com/serf-sbr/serf-sbr/sharding/coordinator"
	"github.com/serf-sbr/serf-sbr/sharding/host"
	"github.com/serf-sbr/serf-sbr/sharding/message"
	"github.com/serf-sbr/serf-sbr/sharding/places"
	"github.com/serf-sbr/serf-sbr/singleton"
	"github.com/serf-sbr/serf-sbr/singleton/handover"
)

// Errors of a Manager.
var (
	// ErrStarted is returned by Start when it is called a second time.
	ErrStarted = errors.New("sharding: a manager is started once")
	// ErrLease is wrapped by the error of Start when a lease cannot be opened.
	ErrLease = errors.New("sharding: the leases cannot be used")
)

// Manager runs shards on this member as the coordinator orders, and the coordinator itself when it is this member's turn. All methods are safe for
// concurrent use.
type Manager struct {
	cfg     Config
	cluster singleton.Cluster
	topic   string
	digest  uint64
	trust   time.Duration
	alloc   *allocation.Allocator
	single  *singleton.Manager

	inbox   *inbox.Inbox
	ctx     context.Context // ends when everything is over
	cancel  context.CancelFunc
	workers sync.WaitGroup
	looped  chan struct{} // the loop has ended
	over    chan struct{} // and nothing is left
	begun   atomic.Bool

	// Owned by the loop.
	origin    time.Time
	self      sbr.ID
	ids       map[message.Key]sbr.ID // of the members, for places
	host      *host.Machine
	hosts     bool                 // this member has the role: it offers to run shards
	coord     *coordinator.Machine // nil where none runs
	coordEnd  func(newer uint64)   // ends its run, because of a term
	hostRefs  conduct.Questions[message.Message]
	coordRefs conduct.Questions[message.Message]
	table     *places.Table
	leases    []*shardLease
	runs      []*conduct.Run // by shard; nil: none
	published uint64

	// until is when runs without leases are over.
	until conduct.Deadline

	mu      sync.Mutex
	owners  []Owner
	listing Listing
	changed chan struct{}
}

// shardLease is the lease of one shard.
type shardLease struct {
	*leasing.Leasing
	store lease.Store
}

// New returns a manager that does nothing yet. The error is everything that Config.Validate finds.
func New(c singleton.Cluster, cfg Config) (*Manager, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p := c.Config()
	cfg = cfg.withDefaults(p)
	alloc, err := allocation.New(cfg.Type, cfg.Shards, cfg.allocation())
	if err != nil {
		return nil, err
	}
	n := len(cfg.Shards)
	m := &Manager{cfg: cfg, cluster: c, topic: topic(cfg.Type), digest: message.Digest(cfg.Type, cfg.Shards, cfg.usesLease()),
		trust: handover.TrustFor(p.Resolver.StableAfter, cfg.RemovalMargin), alloc: alloc, inbox: inbox.New(), looped: make(chan struct{}), over: make(chan struct{}),
		leases: make([]*shardLease, n), runs: make([]*conduct.Run, n), owners: make([]Owner, n), changed: make(chan struct{})}
	m.table = places.New(n, m.digest)
	for i, name := range cfg.Shards {
		m.owners[i].Shard = name
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	single, err := m.coordinatorConfig()
	if err != nil {
		return nil, err
	}
	m.single, err = singleton.New(c, single)
	return m, err
}

// Start begins to take part. The provider must have been started. ctx bounds the start alone. A member that lacks Config.Role runs nothing and knows who
// does. Errors: ErrStarted, ErrLease, and those of singleton.Manager's Start.
func (m *Manager) Start(ctx context.Context) error {
	if !m.begun.CompareAndSwap(false, true) {
		return ErrStarted
	}
	self, err := conduct.Self(ctx, m.cluster)
	if err != nil {
		m.end()
		return fmt.Errorf("shards of %s: start them after the provider: %w", m.cfg.Type, err)
	}
	m.origin, m.self = time.Now(), self.ID
	if err := m.prepare(self); err != nil {
		m.end()
		return err
	}
	stopServing, err := m.cluster.Serve(m.topic, m.asked)
	if err != nil {
		m.end()
		return fmt.Errorf("shards of %s: %w", m.cfg.Type, err)
	}
	m.cluster.OnDown(func(string) { <-m.over })
	stopFollowing := m.cluster.Follow(func() { m.inbox.Post(func() {}) })
	go m.loop(func() {
		stopFollowing()
		stopServing()
	})
	if err := m.join(ctx); err != nil {
		m.inbox.Post(func() { m.tellHost(host.Leave{}) })
		return err
	}
	return nil
}

// prepare makes what the loop drives.
func (m *Manager) prepare(self *downing.Peer) error {
	m.hosts = self.HasRole(m.cfg.Role) // without it the host answers that nothing runs here
	h, err := host.New(host.Config{Self: self.ID, Shards: len(m.cfg.Shards), Digest: m.digest, Known: remembered(self.ID, m.digest),
		HandOverRetryInterval: m.cfg.HandOverRetryInterval, NumberOfRetries: m.cfg.NumberOfRetries, Margin: m.cfg.RemovalMargin, Trust: m.trust,
		UseLease: m.cfg.usesLease(), LeaseRetryInterval: m.cfg.LeaseRetryInterval, Gone: conduct.Margins(m.cluster.Peers(), m.topic, m.cfg.RemovalMargin)}, 0)
	if err != nil {
		return fmt.Errorf("shards of %s: %w", m.cfg.Type, err)
	}
	m.host = h
	if !m.hosts || !m.cfg.usesLease() {
		return nil
	}
	for s := range min(2, len(m.cfg.Shards)) { // if these two have records of their own, and the coordinator has, all have
		if _, err := m.lease(s); err != nil {
			return err
		}
	}
	return nil
}

// join makes this member one that runs shards, and that may coordinate.
func (m *Manager) join(ctx context.Context) error {
	if !m.hosts {
		return nil
	}
	if err := m.cluster.Offer(ctx, m.topic, true); err != nil {
		return fmt.Errorf("shards of %s: %w", m.cfg.Type, err)
	}
	if err := m.single.Start(ctx); err != nil {
		return fmt.Errorf("shards of %s: the coordinator: %w", m.cfg.Type, err)
	}
	return nil
}

// Stop hands all shards over that run here, and the coordinator's part, and waits until nothing of them is left. Call it before the member leaves its cluster. If ctx ends
// first all contexts are cancelled at once and an error that wraps ctx's is returned; what is left ends by itself once the functions have returned.
func (m *Manager) Stop(ctx context.Context) error {
	if m.begun.CompareAndSwap(false, true) {
		m.end()
		return nil
	}
	m.inbox.Post(func() {
		m.tellHost(host.Leave{Patience: time.Duration(m.cfg.NumberOfRetries) * m.cfg.HandOverRetryInterval})
	})
	select {
	case <-m.over:
		return nil
	case <-ctx.Done():
		m.inbox.Post(func() { m.tellHost(host.Leave{}) })
		return fmt.Errorf("shards of %s: still stopping: %w", m.cfg.Type, ctx.Err())
	}
}

// Done is closed once nothing of the manager runs any more: after Stop, and after the member was downed.
func (m *Manager) Done() <-chan struct{} { return m.over }

// end closes everything that Start has opened.
func (m *Manager) end() {
	m.inbox.Close()
	for _, l := range m.leases {
		if l != nil {
			l.Close()
			m.closeStore(l.store)
		}
	}
	m.cancel()
	m.workers.Wait()
	close(m.over)
}

// known is what hosts of this process have known: a manager that follows another one of the same member refuses what that one has refused.
var known sync.Map // of memory to host.Known

type memory struct {
	self   sbr.ID
	digest uint64
}

func remembered(self sbr.ID, digest uint64) host.Known {
	k, _ := known.Load(memory{self, digest})
	h, _ := k.(host.Known)
	return h
}
