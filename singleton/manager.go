package singleton

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/conduct"
	"github.com/serf-sbr/serf-sbr/internal/inbox"
	"github.com/serf-sbr/serf-sbr/internal/leasing"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/singleton/handover"
)

// Errors of a Manager.
var (
	// ErrStarted is returned by Start when it is called a second time.
	ErrStarted = errors.New("singleton: a manager is started once")
	// ErrLease is wrapped by the error of Start when the lease cannot be opened.
	ErrLease = errors.New("singleton: the lease cannot be used")
)

// Member is a member's fate. *downing.Provider has it.
type Member interface {
	Config() downing.Config
	Downed() <-chan struct{}
	OnDown(f func(reason string))
	Left() <-chan struct{}
}

// Roster is who else is there. *downing.Provider has it.
type Roster interface {
	Peers() downing.Peers
	Follow(f func()) (stop func())
}

// Talk is how members talk to each other. *downing.Provider has it.
type Talk interface {
	Offer(ctx context.Context, topic string, on bool) error
	Serve(topic string, f func(downing.Question)) (stop func(), err error)
	Ask(topic string, to sbr.ID, payload []byte, timeout time.Duration) (<-chan downing.Answer, error)
}

// Cluster is a member's place in its cluster. *downing.Provider is one.
type Cluster interface {
	Member
	Roster
	Talk
}

var _ Cluster = (*downing.Provider)(nil)

// Manager runs a singleton on this member when it is this member's turn. All methods are safe for concurrent use.
type Manager struct {
	cfg     Config
	cluster Cluster
	topic   string
	trust   time.Duration

	inbox   *inbox.Inbox
	ctx     context.Context // ends when everything is over
	cancel  context.CancelFunc
	workers sync.WaitGroup
	over    chan struct{} // the loop has ended
	begun   atomic.Bool
	// stopping is closed by the first Stop.
	stopping chan struct{}
	stopOnce sync.Once
	locator  atomic.Pointer[Locator]

	// Owned by the loop.
	origin  time.Time
	machine *handover.Machine
	refs    conduct.Questions[[]byte]
	leasing *leasing.Leasing // nil without a lease
	self    sbr.ID
	opened  lease.Store
	run     *started
	backoff *backoff.ExponentialBackOff
	stopAt  time.Time // when it is said again that the run does not end
	last    string

	// until is when a run without a lease is over.
	until conduct.Deadline

	mu     sync.Mutex
	status Status
}

// New returns a manager that does nothing yet. The error is everything that Config.Validate finds.
func New(c Cluster, cfg Config) (*Manager, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p := c.Config()
	cfg = cfg.withDefaults(p)
	m := &Manager{cfg: cfg, cluster: c, topic: managerTopic(cfg.Name), trust: handover.TrustFor(p.Resolver.StableAfter, cfg.RemovalMargin), inbox: inbox.New(),
		over: make(chan struct{}), stopping: make(chan struct{}), status: Status{Name: cfg.Name, Phase: handover.Idle.String()}}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.backoff = backoff.NewExponentialBackOff()
	m.backoff.InitialInterval, m.backoff.MaxInterval, m.backoff.RandomizationFactor = cfg.RestartAfter, cfg.RestartAtMost, 0
	return m, nil
}

// Start begins to take part. The provider must have been started. ctx bounds the start alone. On a member that lacks Config.Role it does nothing: the
// singleton never runs there. Errors: ErrStarted, ErrLease, and those of downing.Provider's Serve and Offer.
func (m *Manager) Start(ctx context.Context) error {
	if !m.begun.CompareAndSwap(false, true) {
		return ErrStarted
	}
	self, err := conduct.Self(ctx, m.cluster)
	if err != nil {
		m.end()
		return fmt.Errorf("singleton %s: start it after the provider: %w", m.cfg.Name, err)
	}
	if err := m.prepare(ctx, self); err != nil {
		m.end()
		return err
	}
	if !self.HasRole(m.cfg.Role) {
		go m.standBy()
		return nil
	}
	stopServing, err := m.cluster.Serve(m.topic, m.asked)
	if err != nil {
		m.end()
		return fmt.Errorf("singleton %s: %w", m.cfg.Name, err)
	}
	m.cluster.OnDown(func(string) { <-m.over }) // the process lives on, within its grace, until the run has ended and its lease is given back
	stopFollowing := m.cluster.Follow(func() { m.inbox.Post(func() {}) })
	go m.loop(func() {
		stopFollowing()
		stopServing()
	})
	if err := m.cluster.Offer(ctx, m.topic, true); err != nil {
		m.inbox.Post(func() { m.step(handover.Resign{}) })
		return fmt.Errorf("singleton %s: %w", m.cfg.Name, err)
	}
	return nil
}

// standBy is the loop of a member that lacks the role: its locator works, nothing else.
func (m *Manager) standBy() {
	defer m.end()
	select {
	case <-m.stopping:
	case <-m.cluster.Downed():
	case <-m.cluster.Left():
	}
}

// prepare makes what the loop drives.
func (m *Manager) prepare(ctx context.Context, self *downing.Peer) error {
	locator, err := NewLocator(m.cluster, m.cfg.Name, m.cfg.Logger)
	if err != nil {
		return err
	}
	m.locator.Store(locator)
	m.origin = time.Now()
	machine, err := handover.New(handover.Config{
		Self: self.ID, Born: self.Born, FirstRound: uint64(m.origin.UnixMicro()), CounterBits: m.cfg.counterBits(), Floor: handover.FloorAt(m.origin.Unix(), m.cfg.counterBits()), HandOverRetryInterval: m.cfg.HandOverRetryInterval,
		NumberOfRetries: m.cfg.NumberOfRetries, Margin: m.cfg.RemovalMargin, Trust: m.trust, UseLease: m.cfg.usesLease(),
		LeaseRetryInterval: m.cfg.LeaseRetryInterval, Gone: conduct.Margins(m.cluster.Peers(), m.topic, m.cfg.RemovalMargin),
	}, 0)
	if err != nil {
		return fmt.Errorf("singleton %s: %w", m.cfg.Name, err)
	}
	m.machine, m.self = machine, self.ID
	machine.Step(0, handover.Heard{Token: m.cfg.After})
	if m.cfg.usesLease() {
		return m.openLease(ctx, self)
	}
	return nil
}

func (m *Manager) openLease(ctx context.Context, self *downing.Peer) error {
	store := m.cfg.Store
	owner := fmt.Sprintf("%s/%d", self.ID, m.origin.UnixMicro()) // one life of one manager
	if store == nil {
		opened, err := lease.Open(ctx, m.cfg.UseLease, lease.Spec{System: m.cluster.Config().System, Name: m.cfg.LeaseName, Owner: owner, Settings: m.cfg.Lease,
			Logger: m.cfg.Logger, Decode: m.cfg.LeaseDecode})
		if err != nil {
			return fmt.Errorf("%w: singleton %s: %w", ErrLease, m.cfg.Name, err)
		}
		store, m.opened = opened, opened
	}
	use := fmt.Sprintf("the singleton %s of %s", m.cfg.Name, m.cluster.Config().System)
	l, err := lease.New(store, owner, m.cfg.Lease, lease.Options{Use: use, Logger: m.cfg.Logger})
	if err != nil {
		m.closeStore()
		return fmt.Errorf("%w: singleton %s: %w", ErrLease, m.cfg.Name, err)
	}
	m.leasing = leasing.New(l, m.inbox)
	return nil
}

func (m *Manager) closeStore() {
	if c, ok := m.opened.(io.Closer); ok {
		_ = c.Close() // nothing waits for it any more
	}
}

// Stop hands the singleton over, if it runs here, and waits until nothing of it is left. Call it before the member leaves its cluster. If ctx ends first the
// run's context is cancelled at once and an error that wraps ctx's is returned; what is left ends by itself once the function has returned.
func (m *Manager) Stop(ctx context.Context) error {
	if m.begun.CompareAndSwap(false, true) {
		m.end()
		return nil
	}
	m.stopOnce.Do(func() { close(m.stopping) })
	patience := time.Duration(m.cfg.NumberOfRetries) * m.cfg.HandOverRetryInterval
	m.inbox.Post(func() { m.step(handover.Resign{Patience: patience}) })
	select {
	case <-m.over:
		return nil
	case <-ctx.Done():
		m.inbox.Post(func() { m.step(handover.Resign{}) })
		return fmt.Errorf("singleton %s: still stopping: %w", m.cfg.Name, ctx.Err())
	}
}

// Locator tells where the singleton runs, on every member that has a Manager. It lives as long as the Manager, from Start on; nil before.
func (m *Manager) Locator() *Locator { return m.locator.Load() }

// Done is closed once nothing of the manager runs any more: after Stop, after the member was downed, after ErrDone.
func (m *Manager) Done() <-chan struct{} { return m.over }

// end closes everything that Start has opened.
func (m *Manager) end() {
	m.inbox.Close()
	if m.leasing != nil {
		m.leasing.Close()
	}
	m.cancel()
	m.workers.Wait()
	m.closeStore()
	if l := m.locator.Load(); l != nil {
		l.Close()
	}
	close(m.over)
}
