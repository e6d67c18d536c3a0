package singleton

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/handover"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/internal/slot/drive"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Errors of a Manager.
var (
	// ErrStarted is returned by Start when it is called a second time.
	ErrStarted = drive.ErrStarted
	// ErrLease is wrapped by the error of Start when the lease cannot be opened.
	ErrLease = errors.New("singleton: the lease cannot be used")
)

// Cluster is a member's view of its cluster: its standing, the other members, and how members exchange
// messages. *downing.Provider is one.
type Cluster = drive.Cluster

// Roster lists the members: Peers and Follow of a *downing.Provider.
type Roster = drive.Roster

var _ Cluster = (*downing.Provider)(nil)

// Manager runs a singleton on this member when it is this member's turn. All methods are safe for concurrent
// use.
type Manager struct {
	cfg     Config
	cluster Cluster
	driver  *drive.Driver[handover.Message]
	locator atomic.Pointer[Locator]

	// Owned by the driver's goroutine.
	machine *handover.Machine
	backoff *backoff.ExponentialBackOff
	last    string

	status drive.Told[Status]
}

// New returns a manager that does nothing yet. The error is everything that Config.Validate finds.
func New(c Cluster, cfg Config) (*Manager, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p := c.Config()
	cfg = cfg.withDefaults(p)
	m := &Manager{cfg: cfg, cluster: c}
	m.tell(Status{Name: cfg.Name, Phase: slot.Idle.String()})
	m.backoff = backoff.NewExponentialBackOff()
	m.backoff.InitialInterval, m.backoff.MaxInterval, m.backoff.RandomizationFactor = cfg.RestartAfter,
		cfg.RestartAtMost, 0
	m.driver = drive.New(drive.Options[handover.Message]{
		Cluster: c, Topic: managerTopic(cfg.Name), Name: "singleton " + cfg.Name, What: "the run of a singleton",
		Kind: "singleton", Instance: cfg.Name,
		Log: cfg.Logger.With("singleton", cfg.Name), Pause: cfg.Pause, Rules: cfg.settings().Rules(p),
		Encode: handover.AppendMessage, Decode: handover.Decode,
		Asked: func(from sbr.ID, msg handover.Message, answer func(handover.Message) error) {
			m.driver.Question(m.machine, from, msg, answer)
		},
		Explained: m.explained, Settled: m.publish, Closed: m.closed,
		Slots: 1, Function: m.function, Happened: m.happened, Ended: m.ended, Rest: cfg.RestartAfter,
		StopTimeout: cfg.StopTimeout,
		Lease: drive.LeaseOptions{Key: cfg.UseLease, Decode: cfg.LeaseDecode, Store: cfg.openStore(),
			Settings: cfg.Lease, Log: cfg.Logger,
			Name: func(int) string { return cfg.LeaseName }, Use: func(int) string {
				return fmt.Sprintf("the singleton %s of %s", cfg.Name, p.System)
			}},
	})
	return m, nil
}

// Start begins to take part. The provider must have been started. ctx bounds the start alone. On a member
// that lacks Config.Role it does nothing: the singleton never runs there. Errors: ErrStarted, ErrLease, and
// those of downing.Provider's Serve and Offer.
func (m *Manager) Start(ctx context.Context) error {
	runs := false
	err := m.driver.Begin(ctx, func(ctx context.Context, self *downing.Peer) error {
		runs = self.HasRole(m.cfg.Role)
		return m.prepare(ctx, self)
	})
	switch {
	case err != nil:
		return err
	case runs:
		return m.driver.Go(ctx, true)
	}
	m.driver.StandBy() // the locator works, nothing else
	return nil
}

// prepare makes what the driver drives.
func (m *Manager) prepare(ctx context.Context, self *downing.Peer) error {
	locator, err := newLocator(m.cluster, m.cfg.Name, m.cfg.Endpoint, m.cfg.Logger)
	if err != nil {
		return err
	}
	m.locator.Store(locator)
	d, bits := m.driver, m.cfg.counterBits()
	m.machine = handover.New(handover.Config{
		Rules: d.Rules, Born: self.Born, FirstRound: uint64(d.Origin.UnixMicro()),
		CounterBits: bits, After: m.cfg.After, Floor: handover.FloorAt(d.Origin.Unix()),
	}, 0)
	d.Machine = m.machine
	if m.driver.Rules.UseLease {
		if err := d.OpenLease(ctx, 0); err != nil {
			return fmt.Errorf("%w: singleton %w", ErrLease, err)
		}
	}
	return nil
}

// Stop hands the singleton over, if it runs here, and waits until nothing of it is left. Call it before the
// member leaves its cluster. If ctx ends first the run's context is cancelled at once and an error that wraps
// ctx's is returned; the rest ends by itself once the function has returned.
func (m *Manager) Stop(ctx context.Context) error { return m.driver.Stop(ctx) }

// Locator returns the locator of the singleton, on every member that has a Manager. It exists from Start on;
// nil before.
func (m *Manager) Locator() *Locator { return m.locator.Load() }

// Done is closed once nothing of the manager runs any more: after Stop, after the member was downed, after
// ErrDone.
func (m *Manager) Done() <-chan struct{} { return m.driver.Over() }

// Ready says why this member should get no requests for the singleton, for a readiness probe: the manager is
// not started or is stopped, the member is not up, or no run is known yet. nil: it may get requests, also
// while the singleton moves.
func (m *Manager) Ready() error {
	l := m.locator.Load()
	return m.driver.Ready(l != nil && l.at.Heard())
}

func (m *Manager) closed() {
	if m.machine != nil {
		m.publish()
	}
	if l := m.locator.Load(); l != nil {
		l.Close()
	}
}

// function is what a run calls.
func (m *Manager) function(r *drive.Run) func(context.Context) error {
	r.Of = "singleton " + m.cfg.Name
	run := RunOf(r)
	return func(ctx context.Context) error { return m.cfg.Run(context.WithValue(ctx, runKey{}, run), run) }
}

// happened reports the progress of a run to the log and to the locators.
func (m *Manager) happened(what drive.Moment, r *drive.Run, why string) {
	log := m.cfg.Logger.With("singleton", m.cfg.Name, "run", r.Number)
	switch what {
	case drive.Started:
		log.Info("sbr: a singleton starts", "token", r.Token, "from", r.From)
		m.locator.Load().at.Started(m.driver.Self, 0, r.Token)
	case drive.NotStarted:
		log.Warn("sbr: a singleton does not start", "token", r.Token, "because", why)
	case drive.Stopping, drive.Ended:
		m.locator.Load().at.Ended(m.driver.Self, 0, r.Token)
	}
}

// ended decides what follows the return of the function.
func (m *Manager) ended(r *drive.Run, err error, took time.Duration) slot.RunEnded {
	if took >= m.cfg.RestartAtMost {
		m.backoff.Reset()
	}
	e := slot.RunEnded{Again: !errors.Is(err, ErrDone), Rest: m.backoff.NextBackOff()}
	if s, ok := errors.AsType[*Superseded](err); ok {
		e.Newer = s.Token
	}
	if err != nil {
		m.cfg.Logger.Warn("sbr: the run of a singleton has ended",
			append(drive.Attributes(err), "singleton", m.cfg.Name, "run", r.Number)...)
	}
	return e
}

// explained keeps the machine's explanation for Status.
func (m *Manager) explained(e slot.Explain) []any {
	m.last = e.Text
	return nil
}

// Status is what a Manager does.
type Status struct {
	Name string `json:"name"`
	// Phase is that of package handover: idle, taking, acquiring, active, resting, stopping, releasing.
	Phase string `json:"phase"`
	// Token is the token of the present run; zero while nothing runs here.
	Token uint64 `json:"token"`
	// WaitingFor are the members whose consent is missing, by name.
	WaitingFor []string `json:"waiting-for,omitempty"`
	// LeaseHolder is the holder of the lease that the manager waits for. Empty: it waits for none, or the
	// holder is unknown.
	LeaseHolder string `json:"lease-holder,omitempty"`
	// Margin is the rest of the removal margin that the manager waits for.
	Margin time.Duration `json:"margin,omitempty"`
	// Resigned: the singleton is never run here again.
	Resigned bool `json:"resigned,omitempty"`
	// Last is the newest sentence of explanation.
	Last string `json:"last,omitempty"`
}

// Status returns what the manager does. It is safe for concurrent use.
func (m *Manager) Status() Status {
	s, _ := m.status.Get()
	s.WaitingFor = append([]string(nil), s.WaitingFor...)
	return s
}

// publish updates the value of Status.
func (m *Manager) publish() {
	s := m.machine.Status()
	next := Status{Name: m.cfg.Name, Resigned: s.Resigned, Last: m.last, LeaseHolder: m.driver.LeaseHolder(0)}
	next.Phase, next.Token = m.machine.Phase().String(), m.machine.Token()
	for _, id := range s.Asked {
		next.WaitingFor = append(next.WaitingFor, downing.NameOf(id))
	}
	if s.Until > 0 {
		next.Margin = max(s.Until-m.driver.Now(), 0).Round(time.Millisecond)
	}
	m.tell(next)
}

func (m *Manager) tell(s Status) { m.status.Update(func(Status) (Status, bool) { return s, true }) }
