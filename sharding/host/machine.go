package host

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding/membership"
	"github.com/serf-sbr/serf-sbr/sharding/message"
)

// Config are the rules of one type's shards on one member. All members must use the same, apart from Self and Known. Start from DefaultConfig.
type Config struct {
	// Self is this member's incarnation. Required.
	Self sbr.ID
	// Shards is how many there are, at most message.MaxShards. Required.
	Shards int
	// Digest is message.Digest of their list.
	Digest uint64
	// Known is Machine.Known of the machine that this one follows in the same incarnation: what that one refused, this one has to refuse.
	Known Known
	// HandOverRetryInterval is the pause between two tries to ask others.
	HandOverRetryInterval time.Duration
	// NumberOfRetries times HandOverRetryInterval is the patience of a member whose node leaves.
	NumberOfRetries int
	// Margin is the removal margin: how long after a candidate was downed, or was gone without a word, nothing of it starts elsewhere.
	Margin time.Duration
	// Trust is how long runs without leases go on after the member was last sure of its place (handover.TrustFor). Margin must cover the rest.
	Trust time.Duration
	// Gone are the members that were downed, or were gone without a word, before this machine began, and when their margin is over, on the driver's clock.
	Gone map[sbr.ID]time.Duration
	// UseLease says that each shard runs only with its lease.
	UseLease bool
	// LeaseRetryInterval is the pause between two attempts to get a lease.
	LeaseRetryInterval time.Duration
}

// DefaultConfig returns the defaults for a resolver with the default stable-after of 20 s.
func DefaultConfig() Config {
	return Config{HandOverRetryInterval: time.Second, NumberOfRetries: 15, Margin: 20 * time.Second, Trust: 26250 * time.Millisecond,
		LeaseRetryInterval: 5 * time.Second}
}

// Validate reports every problem at once, one line each.
func (c Config) Validate() error {
	var errs []error
	if c.Self == "" {
		errs = append(errs, errors.New("shard host: Self is required"))
	}
	if c.Shards < 1 || c.Shards > message.MaxShards {
		errs = append(errs, fmt.Errorf("shard host: Shards is %d: it must be from 1 to %d", c.Shards, message.MaxShards))
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
			errs = append(errs, fmt.Errorf("shard host: %s is %v: at least %v is needed", d.name, d.value, d.least))
		}
	}
	if c.NumberOfRetries < 1 {
		errs = append(errs, fmt.Errorf("shard host: NumberOfRetries is %d: at least 1 is needed", c.NumberOfRetries))
	}
	if !c.UseLease && c.Trust <= 0 {
		errs = append(errs, fmt.Errorf("shard host: Trust is %v: without leases it must be positive", c.Trust))
	}
	return errors.Join(errs...)
}

// gather is how long what belongs into one message is waited for.
const gather = 50 * time.Millisecond

// Known is whose orders a host follows.
type Known struct {
	// Term is the largest that it has heard of.
	Term uint64
	// Coordinator is the member that runs under it. Empty: not known yet.
	Coordinator sbr.ID
	// Seq is the number of the last State.
	Seq uint64
}

// Machine is the state of the shards of one type on one member. It is not safe for concurrent use.
type Machine struct {
	cfg  Config
	self message.Key
	now  time.Duration
	view membership.View
	ids  map[message.Key]sbr.ID // of the view; replaced, never changed

	known Known
	// floor: orders with this number or a smaller one are not for this machine. It is that of the first question for a report that it has answered under
	// the term; 0: none yet, and no orders to take a shard are followed.
	floor uint64
	// foreign: the coordinator has another list of shards.
	foreign bool

	down     bool
	leaving  bool
	resigned bool          // everybody was told that nothing runs here
	patience time.Duration // until when others may ask, while leaving

	slots  []slot
	held   []int // the shards that are not idle, in order
	asks   []asking
	duties []duty
	begs   []begging
	// news are shards of which the coordinator may not know what it should; newsAt is when it is told.
	news   []int
	newsAt time.Duration
	gone   []departure // by ID
	quit   []sbr.ID    // members that run nothing and will not; sorted

	out []Effect
}

// departure is a candidate that is gone without a word.
type departure struct {
	id    sbr.ID
	until time.Duration
}

// New returns the machine of a member on which nothing runs. now is the driver's clock.
func New(cfg Config, now time.Duration) (*Machine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	m := &Machine{cfg: cfg, self: message.KeyOf(cfg.Self), now: now, view: membership.View{Sure: -1}, known: cfg.Known, slots: make([]slot, cfg.Shards)}
	m.known.Coordinator = "" // a machine follows whoever has its report
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

// Known returns whose orders the machine follows.
func (m *Machine) Known() Known { return m.known }

// Finished reports whether nothing runs here and nothing ever will: the member leaves or is down.
func (m *Machine) Finished() bool { return m.over() && len(m.held) == 0 }

// Until returns the moment, on the driver's clock, at which all runs without a lease are over unless the member is sure of its place
// meanwhile. ok is false where leases decide, or nothing runs.
func (m *Machine) Until() (at time.Duration, ok bool) {
	if m.cfg.UseLease {
		return 0, false
	}
	for _, s := range m.held {
		if p := m.slots[s].phase; p == Active || p == Resting {
			return m.view.Sure + m.cfg.Trust, true
		}
	}
	return 0, false
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
		m.leaseLost(e)
	case LeaseReleased:
		m.leaseReleased(e)
	case RunEnded:
		m.runEnded(e)
	case Leave:
		m.leave(e.Patience)
	case Downed:
		m.downed(e.Why)
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

func (m *Machine) explain(t Topic, shard int, format string, args ...any) {
	m.emit(Explain{Topic: t, Shard: shard, Text: fmt.Sprintf(format, args...)})
}

// advance does what time and the newest facts make due.
func (m *Machine) advance() {
	m.gone = slices.DeleteFunc(m.gone, func(d departure) bool { return d.until <= m.now })
	for _, s := range slices.Clone(m.held) {
		m.progress(s)
	}
	m.fulfil()
	m.askFormer()
	m.hand()
	m.tell()
	if m.leaving && !m.down && !m.resigned && len(m.held) == 0 {
		m.resigned = true
		m.known.Seq++
		m.emit(Ask{Message: message.Message{Kind: message.Resigned, Digest: m.cfg.Digest, Term: m.known.Term, Seq: m.known.Seq}})
	}
}

// NextDeadline returns when Tick must be called next, unless an event comes first. ok is false when nothing is pending.
func (m *Machine) NextDeadline() (at time.Duration, ok bool) {
	due := func(t time.Duration) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	for _, s := range m.held {
		switch sl := &m.slots[s]; {
		case sl.phase == Acquiring && !sl.inFlight:
			due(sl.leaseAt)
		case sl.phase == Resting:
			due(sl.restAt)
		case sl.phase == Active && m.leaving:
			due(m.patience)
		}
	}
	if until, runs := m.Until(); runs {
		due(until)
	}
	for _, a := range m.asks {
		if m.ids[a.of] != "" && m.able() {
			due(a.at)
		}
	}
	for i := range m.begs {
		if b := &m.begs[i]; b.at > 0 {
			due(b.at)
		}
	}
	if len(m.news) > 0 && m.reachesCoordinator() && len(m.untold()) > 0 {
		due(m.newsAt)
	}
	return at, ok
}

// over reports whether this member takes nothing any more.
func (m *Machine) over() bool { return m.leaving || m.down }

// able reports whether this member may run anything that it does not run yet.
func (m *Machine) able() bool { return m.view.Armed && m.trusted() }

// trusted reports whether, without a lease, this member may run anything at this moment.
func (m *Machine) trusted() bool {
	return m.cfg.UseLease || m.view.Sure >= 0 && m.now < m.view.Sure+m.cfg.Trust
}
