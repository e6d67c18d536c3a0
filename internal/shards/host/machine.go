package host

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Config are the rules of one type's shards on one member. All members must use the same, apart from
// Self, Gone and Known.
type Config struct {
	slot.Rules
	// Shards is the number of shards, at most message.MaxShards. Required.
	Shards int
	// Digest is message.Digest of the list of shards.
	Digest uint64
	// Known is Machine.Known of an earlier machine of the same incarnation: this machine has to refuse what
	// its predecessor refused.
	Known Known
}

// gather is how long changes are collected for one message.
const gather = 50 * time.Millisecond

// Known names the coordinator whose orders a host follows.
type Known struct {
	// Term is the largest known term.
	Term uint64
	// Coordinator is the member that runs the coordinator of Term. Empty: not known yet.
	Coordinator sbr.ID
	// Seq is the number of the last State.
	Seq uint64
}

// Machine is the state of the shards of one type on one member. It is not safe for concurrent use.
type Machine struct {
	slot.Base
	cfg  Config
	self message.Key
	ids  map[message.Key]sbr.ID // of those in the view that are not down; replaced, never changed

	known Known
	// floor: orders with this number or a smaller one are not for this machine. It is the number of the first
	// request for a report that it answered under the term; 0: none yet, and no orders to take a shard are
	// followed.
	floor uint64
	// foreign: the coordinator has another list of shards.
	foreign bool

	down     bool
	leaving  bool
	resigned bool          // Resigned was sent: nothing runs here
	patience time.Duration // until when others may ask, while leaving
	bidAt    time.Duration // when all members are told again that this member leaves

	shards []shard
	held   []int // the shards that are not idle, in order
	asks   []asking
	duties []duty
	begs   []begging
	// news are shards that changed since the coordinator was last told; newsAt is when the next report is
	// due.
	news   []int
	newsAt time.Duration
	going  []going // members that take nothing any more, by ID
}

// New returns the machine of a member on which nothing runs. now is the driver's clock.
func New(cfg Config, now time.Duration) *Machine {
	m := &Machine{Base: slot.NewBase(cfg.Rules, now), cfg: cfg, self: message.KeyOf(cfg.Self), known: cfg.Known,
		shards: make([]shard, cfg.Shards)}
	m.known.Coordinator = "" // a machine follows the coordinator that has its report
	for s := range m.shards {
		m.shards[s].Shard = s
	}
	return m
}

// Known returns the coordinator whose orders the machine follows.
func (m *Machine) Known() Known { return m.known }

// Shard returns the phase of a shard, and the number of the order by which this member has it; 0: the shard
// is idle.
func (m *Machine) Shard(s int) (p slot.Phase, number uint64) {
	return m.shards[s].Phase, m.shards[s].number
}

// Finished reports whether nothing runs here and nothing ever will: the member leaves or is down.
func (m *Machine) Finished() bool { return m.over() && len(m.held) == 0 }

// Until returns the moment, on the driver's clock, at which all runs without a lease are over unless
// membership is confirmed meanwhile. ok is false where leases decide, or nothing runs.
func (m *Machine) Until() (at time.Duration, ok bool) {
	if m.cfg.UseLease {
		return 0, false
	}
	for _, s := range m.held {
		if p := m.shards[s].Phase; p == slot.Active || p == slot.Resting {
			return m.View.Sure + m.cfg.Trust, true
		}
	}
	return 0, false
}

// Step takes in one event at the time now and returns what is to be done. The slice is valid until the next
// call.
func (m *Machine) Step(now time.Duration, e slot.Event) []slot.Effect {
	m.Begin(now)
	switch e := e.(type) {
	case slot.Viewed:
		m.viewed(e.View)
	case slot.Asked[message.Message]:
		m.asked(e)
	case slot.Answered[message.Message]:
		m.answered(e)
	case slot.LeaseAnswer, slot.LeaseLost, slot.LeaseReleased, slot.RunEnded:
		m.ofSlot(e)
	case slot.Resign:
		m.leave(e.Patience)
	case slot.Downed:
		m.downed(e.Why)
	}
	m.advance()
	return m.Effects()
}

// advance does what time and the newest facts make due.
func (m *Machine) advance() {
	m.Expire()
	for _, s := range slices.Clone(m.held) {
		m.progress(s)
	}
	m.fulfil()
	m.askFormer()
	m.hand()
	m.tell()
	m.bid()
	if m.leaving && !m.down && !m.resigned && len(m.held) == 0 {
		m.resigned = true
		m.known.Seq++
		m.Emit(slot.Ask[message.Message]{Message: message.Message{
			Kind: message.Resigned, Digest: m.cfg.Digest, Term: m.known.Term, Seq: m.known.Seq,
		}})
	}
}

// NextDeadline returns when a Tick is due, unless an event comes first. ok is false when nothing is pending.
func (m *Machine) NextDeadline() (at time.Duration, ok bool) {
	due := func(t time.Duration) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	for _, s := range m.held {
		sl := &m.shards[s]
		if at, ok := sl.Due(); ok {
			due(at)
		}
	}
	if m.waits() {
		due(min(m.patience, m.bidAt))
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
func (m *Machine) able() bool { return m.View.Armed && m.Trusted() }

// The topics that only shards have.
const (
	TopicCoordinator slot.Topic = "coordinator"
	TopicGivenUp     slot.Topic = "given-up"
)
