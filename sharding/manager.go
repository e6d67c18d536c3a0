package sharding

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/locate"
	"github.com/serf-sbr/serf-sbr/internal/shards/coordinator"
	"github.com/serf-sbr/serf-sbr/internal/shards/host"
	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/internal/slot/drive"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding/allocation"
	"github.com/serf-sbr/serf-sbr/singleton"
)

// Errors of a Manager.
var (
	// ErrStarted is returned by Start when it is called a second time.
	ErrStarted = drive.ErrStarted
	// ErrLease is wrapped by the error of Start when a lease cannot be opened.
	ErrLease = errors.New("sharding: the leases cannot be used")
)

// Manager runs shards on this member as the coordinator orders, and the coordinator itself when it is this
// member's turn. All methods are safe for concurrent use.
type Manager struct {
	cfg     Config
	cluster singleton.Cluster
	digest  uint64
	alloc   *allocation.Allocator
	single  *singleton.Manager
	driver  *drive.Driver[message.Message]
	looped  chan struct{} // the driver drives nothing any more
	hosts   bool          // this member has the role and a function: it offers to run shards
	locator *locate.Locator
	started atomic.Bool // the locator takes part
	shown   metric.Registration

	// Owned by the driver's goroutine.
	host      *host.Machine
	coord     *coordinator.Machine // nil where none runs
	coordEnd  func(newer uint64)   // ends its run, because of a term
	published uint64

	// known is what the coordinator knows; nil: none runs here. It is replaced, never changed.
	known drive.Told[*coordinator.Status]
}

// New returns a manager that does nothing yet. The error is everything that Config.Validate finds.
func New(c singleton.Cluster, cfg Config) (*Manager, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p := c.Config()
	cfg = cfg.withDefaults(p)
	rules := cfg.settings().Rules(p)
	alloc, err := allocation.New(cfg.Type, cfg.Shards, cfg.allocation())
	if err != nil {
		return nil, err
	}
	n := len(cfg.Shards)
	m := &Manager{cfg: cfg, cluster: c, digest: message.Digest(cfg.Type, cfg.Shards, rules.UseLease),
		alloc: alloc, looped: make(chan struct{})}
	m.locator = locate.New(locate.Options{
		Cluster: c, Topic: locatorTopic(cfg.Type, cfg.Shards), What: "shards of " + cfg.Type, Slots: n,
		Endpoint: cfg.Endpoint, Log: cfg.Logger,
	})
	m.driver = drive.New(drive.Options[message.Message]{
		Cluster: c, Topic: topic(cfg.Type), Name: "shards of " + cfg.Type, What: "the run of a shard",
		Kind: "shards", Instance: cfg.Type,
		Log: cfg.Logger.With("type", cfg.Type), Pause: cfg.Pause, Rules: rules,
		Encode: func(b []byte, msg message.Message) []byte {
			return message.Append(b, &msg)
		}, Decode: message.Decode,
		Asked: m.asked, AsksItself: true, Explained: m.explained, GaveUp: m.gaveUp, Settled: m.publish,
		Looped: func() { close(m.looped) }, Closed: m.closed,
		Slots: n, Function: m.function, Happened: m.happened, Ended: m.ended, Rest: cfg.RestartAfter,
		Lease: drive.LeaseOptions{Key: cfg.UseLease, Decode: cfg.LeaseDecode, Store: cfg.Store, Settings: cfg.Lease,
			Log:  cfg.Logger,
			Name: func(s int) string { return fmt.Sprintf("%s-shard-%s-%s", p.System, cfg.Type, cfg.Shards[s]) },
			Use: func(s int) string {
				return fmt.Sprintf("the shard %s of %s of %s", cfg.Shards[s], cfg.Type, p.System)
			}},
	})
	single, err := m.coordinatorConfig()
	if err != nil {
		return nil, err
	}
	m.single, err = singleton.New(c, single)
	return m, err
}

// Start begins to take part. The provider must have been started. ctx bounds the start alone. A member that
// lacks Config.Role or Config.Run runs no shards but knows their owners. Errors: ErrStarted, ErrLease, and
// those of singleton.Manager's Start.
func (m *Manager) Start(ctx context.Context) error {
	if err := m.driver.Begin(ctx, m.prepare); err != nil {
		return err
	}
	if err := m.driver.Go(ctx, m.hosts); err != nil || !m.hosts {
		return err
	}
	if err := m.single.Start(ctx); err != nil {
		m.driver.StopAtOnce()
		return fmt.Errorf("shards of %s: the coordinator: %w", m.cfg.Type, err)
	}
	return nil
}

// prepare makes what the driver drives.
func (m *Manager) prepare(ctx context.Context, self *downing.Peer) error {
	m.hosts = m.cfg.Run != nil && self.HasRole(m.cfg.Role) // otherwise the host answers that nothing runs here
	if err := m.locator.Start(); err != nil {
		return err
	}
	m.started.Store(true)
	if err := m.measure(); err != nil {
		return err
	}
	m.host = host.New(host.Config{Rules: m.driver.Rules, Shards: len(m.cfg.Shards), Digest: m.digest,
		Known: remembered(self.ID, m.cfg.Type)}, 0)
	m.driver.Machine = m.host
	if !m.hosts || !m.driver.Rules.UseLease {
		return nil
	}
	// if these two have records of their own, and the coordinator has, all have
	for s := range min(2, len(m.cfg.Shards)) {
		if err := m.driver.OpenLease(ctx, s); err != nil {
			return fmt.Errorf("%w: %w", ErrLease, err)
		}
	}
	return nil
}

// Stop hands over all shards that run here, and the coordinator if it runs here, and waits until they have
// ended. Call it before the member leaves its cluster. If ctx ends first all contexts are cancelled at once
// and an error that wraps ctx's is returned; the rest ends by itself once the functions have returned.
func (m *Manager) Stop(ctx context.Context) error {
	return m.driver.Stop(ctx)
}

// Done is closed once nothing of the manager runs any more: after Stop, and after the member was downed.
func (m *Manager) Done() <-chan struct{} { return m.driver.Over() }

// Ready says why this member should get no requests for shards, for a readiness probe: the manager is not
// started or is stopped, the member is not up, or no run is known yet. nil: it may get requests, also while
// shards move.
func (m *Manager) Ready() error { return m.driver.Ready(m.locator.Heard()) }

// closed hands the coordinator over, if it runs here, once no shard is left.
func (m *Manager) closed() {
	defer m.locator.Close()
	if m.shown != nil {
		_ = m.shown.Unregister()
	}
	if m.host != nil {
		memories.Store(memory{m.driver.Self, m.cfg.Type}, m.host.Known())
	}
	ctx, cancel := context.WithTimeout(context.Background(), partTimeout)
	defer cancel()
	if err := m.single.Stop(ctx); err != nil {
		m.cfg.Logger.Warn("sbr: the coordinator of shards did not stop in time", "type", m.cfg.Type, "error", err)
	}
}

// partTimeout bounds the hand-over of the coordinator.
const partTimeout = 10 * time.Second

// asked passes a request to the machine that handles it.
func (m *Manager) asked(from sbr.ID, msg message.Message, answer func(message.Message) error) {
	switch msg.Kind {
	case message.Report, message.Orders, message.HandOver:
		m.driver.Question(m.host, from, msg, answer)
	case message.State, message.Resigned:
		m.driver.Question(m.driver.Second, from, msg, answer)
		m.driver.Step(m.host, slot.Asked[message.Message]{From: from, Message: msg}) // the sender leaves
	}
}

// explained returns the log attribute of the shard that an explanation is about.
func (m *Manager) explained(e slot.Explain) []any {
	if e.Shard < 0 {
		return nil
	}
	return []any{"shard", m.cfg.Shards[e.Shard]}
}

// gaveUp ends the run of a coordinator.
func (m *Manager) gaveUp(e slot.GiveUp) {
	m.cfg.Logger.Warn("sbr: the coordinator of shards resigns", "type", m.cfg.Type, "reason", e.Why)
	m.coordEnd(e.Term)
}

// function is what a run of a shard calls.
func (m *Manager) function(r *drive.Run) func(context.Context) error {
	s := &Shard{name: m.cfg.Shards[r.Shard], Run: singleton.RunOf(r)}
	r.Of = "shard " + s.name
	return func(ctx context.Context) error { return m.cfg.Run(ctx, s) }
}

// happened reports the progress of a run to the log and to callers.
func (m *Manager) happened(what drive.Moment, r *drive.Run, why string) {
	log := m.cfg.Logger.With("type", m.cfg.Type, "shard", m.cfg.Shards[r.Shard], "token", r.Token)
	switch what {
	case drive.Started:
		log.Debug("sbr: a shard starts", "from", r.From)
		m.locator.Started(m.driver.Self, r.Shard, r.Token)
	case drive.NotStarted:
		log.Warn("sbr: a shard does not start", "because", why)
	case drive.Stopping, drive.Ended:
		m.locator.Ended(m.driver.Self, r.Shard, r.Token)
	}
}

// ended decides what follows the return of a shard's function.
func (m *Manager) ended(r *drive.Run, err error, _ time.Duration) slot.RunEnded {
	if err != nil {
		m.cfg.Logger.Warn("sbr: the run of a shard has ended",
			append(drive.Attributes(err), "type", m.cfg.Type, "shard", m.cfg.Shards[r.Shard])...)
	}
	return slot.RunEnded{Again: true, Rest: m.cfg.RestartAfter}
}

// memories keep what hosts of this process knew: a manager that follows another manager of the same member
// refuses what its predecessor refused, and its reports are newer, whatever their lists of shards.
var memories sync.Map // of memory to host.Known

type memory struct {
	self sbr.ID
	kind string
}

func remembered(self sbr.ID, kind string) host.Known {
	k, _ := memories.Load(memory{self, kind})
	h, _ := k.(host.Known)
	return h
}

// coordinatorConfig is the singleton that the coordinator runs as.
func (m *Manager) coordinatorConfig() (singleton.Config, error) {
	c := singleton.DefaultConfig()
	c.Name, c.Role, c.Run = coordinatorName(m.cfg.Type), m.cfg.Role, m.coordinate
	c.HandOverRetryInterval, c.NumberOfRetries, c.RemovalMargin = m.cfg.HandOverRetryInterval,
		m.cfg.NumberOfRetries, m.cfg.RemovalMargin
	c.UseLease, c.LeaseDecode, c.Lease, c.LeaseRetryInterval = m.cfg.UseLease, m.cfg.LeaseDecode, m.cfg.Lease,
		m.cfg.LeaseRetryInterval
	c.LeaseName = m.cluster.Config().System + "-shards-" + m.cfg.Type
	c.Logger, c.Pause, c.CompactTokens = m.cfg.Logger, m.cfg.Pause, true
	if m.cfg.Store == nil {
		return c, nil
	}
	var err error
	c.Store, err = m.cfg.Store(c.LeaseName)
	if err != nil {
		return c, fmt.Errorf("%w: %s: %w", ErrLease, c.LeaseName, err)
	}
	return c, nil
}

// coordinate is the singleton's function: it lets the loop drive a coordinator until ctx ends. It never
// begins twice under one token: numbers of orders would repeat.
func (m *Manager) coordinate(ctx context.Context, r *singleton.Run) error {
	resigned := make(chan error, 1)
	gone := make(chan struct{})
	d := m.driver
	if r.Token() < 1 || r.Token() > message.MaxTerm {
		m.cfg.Logger.Error("sbr: the coordinator of shards cannot start: its token is no term",
			"type", m.cfg.Type, "token", r.Token())
		return singleton.ErrDone
	}
	d.Inbox.Post(func() {
		c := coordinator.New(coordinator.Config{Rules: d.Rules, Term: r.Token(), Allocator: m.alloc,
			Digest:        m.digest,
			AuditInterval: coordinator.AuditInterval}, d.Now())
		m.coord, d.Second, m.coordEnd = c, c, func(newer uint64) { resigned <- &singleton.Superseded{Token: newer} }
		m.published = 0
		d.Look()
	})
	var why error
	select {
	case <-ctx.Done():
	case <-m.looped:
	case why = <-resigned: // the next coordinator has a larger token
	}
	d.Inbox.Post(func() {
		m.coord, d.Second, m.coordEnd = nil, nil, nil
		close(gone)
	})
	select {
	case <-gone:
	case <-m.looped:
	}
	return why
}
