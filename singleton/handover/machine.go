package handover

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Config are the rules of one slot. All members must use the same, apart from Self and Born. Start from DefaultConfig.
type Config struct {
	// Self is this member's incarnation, Born its birth (see Peer). Required.
	Self sbr.ID
	Born int64
	// FirstRound is where the member's rounds begin. A machine that follows another one of the same incarnation must begin beyond its rounds: a
	// late answer would count.
	FirstRound uint64
	// Floor is beyond which the tokens of runs without a lease begin, under each verdict. It orders lives of a cluster that know nothing of each other: when
	// all members have gone down together without a verdict, nobody remembers a token. FloorAt makes it of the wall clock; zero: they begin with 1.
	Floor uint64
	// CounterBits are those of a token without a lease that count the runs under one verdict, from Floor on. The rest is left to verdicts. Zero: 40.
	CounterBits int
	// HandOverRetryInterval is the pause between two tries to ask the others.
	HandOverRetryInterval time.Duration
	// NumberOfRetries is how often a silent member is asked before that is said loudly. With a lease the lease decides from then on; without one
	// it is asked on.
	NumberOfRetries int
	// Margin is the removal margin: how long after a candidate was downed, or was gone without a word, nothing starts.
	Margin time.Duration
	// Trust is how long a run without a lease goes on after the member was last sure of its place. Margin must cover the rest.
	Trust time.Duration
	// Gone are the members that were downed, or were gone without a word, before this machine began, and when their margin is over, on the driver's clock.
	Gone map[sbr.ID]time.Duration
	// UseLease says that the slot runs only with its lease.
	UseLease bool
	// LeaseRetryInterval is the pause between two attempts to get the lease.
	LeaseRetryInterval time.Duration
}

// DefaultConfig returns the reference's defaults for a resolver with the default stable-after of 20 s.
func DefaultConfig() Config {
	return Config{HandOverRetryInterval: time.Second, NumberOfRetries: 15, Margin: 20 * time.Second, Trust: TrustFor(20*time.Second, 20*time.Second),
		LeaseRetryInterval: 5 * time.Second}
}

// TrustFor returns Config.Trust for a resolver's stable-after and a removal margin. Others start stable-after and the margin after they lost contact, at
// the earliest; half of the margin is for this member to notice, and an eighth of all is for clocks that run at different rates.
func TrustFor(stableAfter, margin time.Duration) time.Duration {
	return (stableAfter + margin/2) / 8 * 7
}

// Validate reports every problem at once, one line each.
func (c Config) Validate() error {
	var errs []error
	if c.Self == "" {
		errs = append(errs, errors.New("handover: Self is required"))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
		least time.Duration
	}{
		{"HandOverRetryInterval", c.HandOverRetryInterval, time.Millisecond},
		{"Margin", c.Margin, 0},
		{"LeaseRetryInterval", c.LeaseRetryInterval, time.Millisecond},
	} {
		if d.value < d.least {
			errs = append(errs, fmt.Errorf("handover: %s is %v: at least %v is needed", d.name, d.value, d.least))
		}
	}
	if c.CounterBits < 0 || c.CounterBits > 62 {
		errs = append(errs, fmt.Errorf("handover: CounterBits is %d: it must be from 0 to 62", c.CounterBits))
	}
	if c.NumberOfRetries < 1 {
		errs = append(errs, fmt.Errorf("handover: NumberOfRetries is %d: at least 1 is needed", c.NumberOfRetries))
	}
	if !c.UseLease && c.Trust <= 0 {
		errs = append(errs, fmt.Errorf("handover: Trust is %v: without a lease it must be positive", c.Trust))
	}
	return errors.Join(errs...)
}

// Phase is what a machine is doing.
type Phase uint8

// The phases.
const (
	// Idle: the slot is somebody else's.
	Idle Phase = iota
	// Taking: it asks the others, or waits for a margin.
	Taking
	// Acquiring: it asks for the lease.
	Acquiring
	// Active: a run was started.
	Active
	// Resting: the run ended by itself, and another one is about to start here.
	Resting
	// Stopping: the run was asked to end.
	Stopping
	// Releasing: the run has ended, the lease is given back.
	Releasing
)

var phaseNames = [...]string{"idle", "taking", "acquiring", "active", "resting", "stopping", "releasing"}

// String returns the phase in lower case.
func (p Phase) String() string { return phaseNames[min(int(p), len(phaseNames)-1)] }

// answer is what the machine has of one other member in the present round.
type answer struct {
	id    sbr.ID
	what  Kind // 0: nothing yet; Clear, Running, Refuse, HandOver (asked to), HandedOver counts as Clear
	tries int
}

// Machine is the state of one slot on one member. It is not safe for concurrent use.
type Machine struct {
	cfg  Config
	now  time.Duration
	view View

	phase    Phase
	resigned bool // never again
	down     bool
	// patience is until when a successor may ask for the run of a member that resigns; zero: not resigning, or nothing runs.
	patience time.Duration

	round   uint64
	answers []answer // by ID
	askAt   time.Duration
	// bound: this member has asked a run to end, or asks for the lease. It goes on until it runs the slot, and hands over then, so that nobody has to ask
	// everybody while nothing runs.
	bound bool
	// notBefore is when taking may begin again after this member has given way to one, gaveWay, that its view does not show as a candidate yet.
	notBefore time.Duration
	gaveWay   sbr.ID
	// waitUntil is the end of margins that others know of.
	waitUntil time.Duration
	gone      []departure // by ID
	// quitters are members that hand over or have said that they run nothing, and go.
	quitters []quitter // by ID
	askers   []asker   // by ID

	maxToken uint64
	run      uint64
	token    uint64 // of the run; kept after its end
	estate   estate
	// lent is the last member that was let through: it may have run the slot since estate was left.
	lent   sbr.ID
	restAt time.Duration
	// waiting are the questions that are answered once the run has ended.
	waiting []waiting
	// kept are those that are answered once this member, too, knows of no older candidate than the one that asks.
	kept []kept

	attempt  uint64
	inFlight bool // an AcquireLease is unanswered
	held     bool
	lost     bool // the lease was lost before its grant was heard of
	leaseAt  time.Duration

	out []Effect
}

// estate is what the newest run that is known of has left, and the member that has handed it over; empty: this one.
type estate struct {
	token uint64
	state []byte
	from  sbr.ID
}

// departure is a candidate that is gone without a word.
type departure struct {
	id    sbr.ID
	until time.Duration
}

// quitter is a member that has said that it resigns. done: nothing of it runs. What comes until late of no later a round is what it had said before.
type quitter struct {
	id    sbr.ID
	done  bool
	round uint64
	late  time.Duration
}

// asker is a member that has asked for the slot, in this round at the latest: it has a manager, whether its tags say so by now or not.
type asker struct {
	id    sbr.ID
	round uint64
}

// kept is a question to take the slot, and until when it is kept: it is repeated by then.
type kept struct {
	Asked
	until time.Duration
}

type waiting struct {
	ref  uint64
	from sbr.ID
	// round is the asker's.
	round uint64
}

// New returns the machine of a member on which nothing runs. now is the driver's clock.
func New(cfg Config, now time.Duration) (*Machine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.CounterBits == 0 {
		cfg.CounterBits = DefaultCounterBits
	}
	m := &Machine{cfg: cfg, now: now, round: cfg.FirstRound, view: View{Sure: -1}}
	for _, id := range slices.Sorted(maps.Keys(cfg.Gone)) {
		m.gone = append(m.gone, departure{id, cfg.Gone[id]})
	}
	return m, nil
}

// Gone returns the members for whose margin the machine waits, for Config.Gone of the one that follows it.
func (m *Machine) Gone() map[sbr.ID]time.Duration {
	gone := make(map[sbr.ID]time.Duration, len(m.gone))
	for _, d := range m.gone {
		gone[d.id] = d.until
	}
	return gone
}

// Phase returns what the machine is doing.
func (m *Machine) Phase() Phase { return m.phase }

// Finished reports whether nothing runs here and nothing ever will: the member resigned or is down.
func (m *Machine) Finished() bool { return (m.resigned || m.down) && m.phase == Idle }

// Token returns the present run's token; zero while nothing runs.
func (m *Machine) Token() uint64 {
	if m.phase != Active && m.phase != Stopping {
		return 0
	}
	return m.token
}

// Round returns the number of the newest round. Answers to earlier ones do not count.
func (m *Machine) Round() uint64 { return m.round }

// Until returns the moment, on the driver's clock, at which a run without a lease is over unless the member is sure of its place meanwhile.
// ok is false where a lease decides, or nothing runs.
func (m *Machine) Until() (at time.Duration, ok bool) {
	if m.cfg.UseLease || m.phase != Active {
		return 0, false
	}
	return m.view.Sure + m.cfg.Trust, true
}

// Step takes in one event at the time now and returns what is to be done. The slice is valid until the next call.
func (m *Machine) Step(now time.Duration, e Event) []Effect {
	m.begin(now)
	switch e := e.(type) {
	case Viewed:
		m.viewed(e.View)
	case Asked:
		m.asked(e)
	case Answered:
		m.answered(e)
	case LeaseAnswer:
		m.leaseAnswered(e)
	case LeaseLost:
		if e.Attempt == m.attempt {
			m.leaseLost(e.Why)
		}
	case LeaseReleased:
		if m.phase == Releasing && e.Attempt == m.attempt {
			m.settle()
		}
	case RunEnded:
		m.runEnded(e)
	case Resign:
		m.resign(e.Patience)
	case Downed:
		m.downed(e.Why)
	case Heard:
		m.hear(e.Token)
	}
	m.advance()
	return m.out
}

// Tick lets time pass. Call it when the deadline of NextDeadline has come, after a Viewed with the newest view.
func (m *Machine) Tick(now time.Duration) []Effect {
	m.begin(now)
	m.advance()
	return m.out
}

func (m *Machine) begin(now time.Duration) {
	m.now = max(m.now, now)
	m.out = m.out[:0]
}

func (m *Machine) emit(e Effect) { m.out = append(m.out, e) }

func (m *Machine) explain(t Topic, format string, args ...any) {
	m.emit(Explain{Topic: t, Text: fmt.Sprintf(format, args...)})
}

// advance does what time and the newest facts make due.
func (m *Machine) advance() {
	m.gone = slices.DeleteFunc(m.gone, func(d departure) bool { return d.until <= m.now })
	m.answerKept()
	if m.leaving() && m.phase != Active && !m.over() {
		m.resign(m.usualPatience())
	}
	switch m.phase {
	case Idle:
		if m.mine() && m.now >= m.notBefore && m.trusted() {
			m.take()
		}
	case Taking:
		m.pursue()
	case Acquiring:
		m.tryLease()
	case Active:
		m.guard()
	case Resting:
		m.rest()
	}
}

// NextDeadline returns when Tick must be called next, unless an event comes first. ok is false when nothing is pending.
func (m *Machine) NextDeadline() (at time.Duration, ok bool) {
	due := func(t time.Duration) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	switch m.phase {
	case Idle:
		if m.mine() && m.now < m.notBefore {
			due(m.notBefore)
		}
	case Taking:
		due(m.askAt)
		if m.patience > 0 {
			due(m.patience)
		}
		for _, d := range m.gone {
			due(d.until)
		}
		if m.waitUntil > m.now {
			due(m.waitUntil)
		}
	case Acquiring:
		if !m.inFlight {
			due(m.leaseAt)
		}
		if m.patience > 0 {
			due(m.patience)
		}
		if m.passedOverSome() {
			due(m.askAt)
		}
	case Active:
		if at, ok := m.Until(); ok {
			due(at)
		}
		if m.patience > 0 {
			due(min(m.patience, m.askAt))
		}
		if m.claims() {
			due(m.askAt)
		}
	case Resting:
		due(m.restAt)
	}
	return at, ok
}
