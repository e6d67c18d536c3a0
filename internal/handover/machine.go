package handover

import (
	"cmp"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Config are the rules of one slot. All members must use the same, apart from Self, Gone and Born.
// They are valid (Rules.Validate); CounterBits is at most 62.
type Config struct {
	slot.Rules
	// Born is this member's birth (see Peer).
	Born int64
	// FirstRound is where the member's rounds begin. It must exceed every round of an earlier machine of this
	// incarnation: a late answer to the earlier machine would count.
	FirstRound uint64
	// After: without a lease, tokens are larger than this.
	After uint64
	// Floor is the wall clock when the machine began, see FloorAt: tokens of runs without a lease begin beyond
	// the moment at which they start, under each verdict. It orders the tokens of members that never heard of
	// each other's: where all that know one have ended without a verdict, no member remembers it. Zero:
	// tokens begin with 1.
	Floor uint64
	// CounterBits are those of a token without a lease that count the runs under one verdict, from Floor on.
	// The rest is left to verdicts. Zero: 40.
	CounterBits int
}

// other is what the machine knows of one other member.
type other struct {
	id sbr.ID
	// answer is the member's answer in the present round; 0: none yet. HandOver: it was asked to hand over;
	// HandedOver counts as Clear. tries is how often it was asked.
	answer Kind
	tries  int
	// asks: the member has asked for the slot, the last time in the round asked: it has a manager, even if
	// its tags do not show it yet.
	asks  bool
	asked uint64
	// goes: the member has announced that it resigns. done: nothing of it runs. Until late, its requests of a
	// round up to went are old.
	goes, done bool
	went       uint64
	late       time.Duration
	// kept is its request to take the slot, until it is repeated: it is answered once this member, too, knows
	// no older candidate.
	kept      *slot.Asked[Message]
	keptUntil time.Duration
}

// returns notes that a member that had resigned has a new manager.
func (o *other) returns() { o.goes, o.done, o.went, o.late = false, false, 0, 0 }

// Machine is the state of one slot on one member. It is not safe for concurrent use.
type Machine struct {
	slot.Base
	cfg  Config
	slot slot.Slot
	// began is when the machine began, by the driver's clock.
	began time.Duration

	resigned bool // never again
	down     bool
	// patience is until when a successor may ask for the run of a member that resigns; zero: not resigning,
	// or nothing runs.
	patience time.Duration

	round uint64
	heard []other // by ID
	askAt time.Duration
	// bound: this member has asked a run to end, or asks for the lease. It goes on until it runs the slot,
	// and hands over then, so that no member has to ask all others while nothing runs.
	bound bool
	// After this member has yielded to gaveWay, which its view may not show as a candidate yet, taking may
	// not begin again before notBefore.
	notBefore time.Duration
	gaveWay   sbr.ID
	// waitUntil is when the margins that other members reported end.
	waitUntil time.Duration
	maxToken  uint64
	estate    estate
	// lent is the last member that was allowed to start: it may have run the slot since estate was recorded.
	lent sbr.ID
	// waiting are the requests that are answered once the run has ended.
	waiting []waiting
}

// estate is the state left by the newest known run, and the member that handed it over; empty: this member.
type estate struct {
	token uint64
	state []byte
	from  sbr.ID
}

type waiting struct {
	ref  uint64
	from sbr.ID
	// round is the asker's.
	round uint64
}

// New returns the machine of a member on which nothing runs. now is the driver's clock.
func New(cfg Config, now time.Duration) *Machine {
	cfg.CounterBits = cmp.Or(cfg.CounterBits, DefaultCounterBits)
	m := &Machine{Base: slot.NewBase(cfg.Rules, now), cfg: cfg, began: now, round: cfg.FirstRound}
	m.hear(cfg.After)
	return m
}

// Phase returns what the machine is doing.
func (m *Machine) Phase() slot.Phase { return m.slot.Phase }

// Finished reports whether nothing runs here and nothing ever will: the member resigned or is down.
func (m *Machine) Finished() bool { return (m.resigned || m.down) && m.slot.Phase == slot.Idle }

// Token returns the present run's token; zero while nothing runs.
func (m *Machine) Token() uint64 {
	if m.slot.Runs() {
		return m.slot.Token
	}
	return 0
}

// Round returns the number of the newest round. Answers to earlier ones do not count.
func (m *Machine) Round() uint64 { return m.round }

// Until returns the moment, on the driver's clock, at which a run without a lease is over unless membership
// is confirmed meanwhile. ok is false where a lease decides, or nothing runs.
func (m *Machine) Until() (at time.Duration, ok bool) {
	if m.cfg.UseLease || m.slot.Phase != slot.Active {
		return 0, false
	}
	return m.View.Sure + m.cfg.Trust, true
}

// Step takes in one event at the time now and returns what is to be done. The slice is valid until the next
// call.
func (m *Machine) Step(now time.Duration, e slot.Event) []slot.Effect {
	m.Begin(now)
	switch e := e.(type) {
	case slot.Viewed:
		m.viewed(e.View)
	case slot.Asked[Message]:
		m.asked(e)
	case slot.Answered[Message]:
		m.answered(e)
	case slot.LeaseAnswer:
		m.leaseAnswered(e)
	case slot.LeaseLost:
		if m.slot.LeaseLost(m, e) && m.slot.Phase == slot.Resting {
			m.release()
		}
	case slot.LeaseReleased:
		if m.slot.Released(e) {
			m.settle()
		}
	case slot.RunEnded:
		m.runEnded(e)
	case slot.Resign:
		m.resign(e.Patience)
	case slot.Downed:
		m.downed(e.Why)
	}
	m.advance()
	return m.Effects()
}

func (m *Machine) explain(t slot.Topic, format string, args ...any) {
	m.ExplainShard(t, 0, format, args...)
}

// advance does what time and the newest facts make due.
func (m *Machine) advance() {
	m.Expire()
	m.answerKept()
	if m.leaving() && m.slot.Phase != slot.Active && !m.over() {
		m.resign(m.cfg.NodePatience())
	}
	switch m.slot.Phase {
	case slot.Idle:
		if m.mine() && m.Now >= m.notBefore && m.Trusted() {
			m.take()
		}
	case slot.Taking:
		m.pursue()
	case slot.Acquiring:
		m.tryLease()
	case slot.Active:
		m.guard()
	case slot.Resting:
		m.rest()
	}
}

// NextDeadline returns when a Tick is due, unless an event comes first. ok is false when nothing is pending.
func (m *Machine) NextDeadline() (at time.Duration, ok bool) {
	due := func(t time.Duration) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	switch m.slot.Phase {
	case slot.Idle:
		if m.mine() && m.Now < m.notBefore {
			due(m.notBefore)
		}
	case slot.Taking:
		due(m.askAt)
		if m.patience > 0 {
			due(m.patience)
		}
		for _, d := range m.Departed {
			due(d.Until)
		}
		if m.waitUntil > m.Now {
			due(m.waitUntil)
		}
	case slot.Acquiring:
		if m.patience > 0 {
			due(m.patience)
		}
		if m.passedOverSome() {
			due(m.askAt)
		}
	case slot.Active:
		if at, ok := m.Until(); ok {
			due(at)
		}
		if m.patience > 0 {
			due(min(m.patience, m.askAt))
		}
		if m.claims() {
			due(m.askAt)
		}
	}
	if at, ok := m.slot.Due(); ok {
		due(at)
	}
	return at, ok
}

// anyOther reports whether f is true of a member that has to answer.
func (m *Machine) anyOther(f func(p *slot.Peer, o other) bool) bool {
	return slices.ContainsFunc(m.others(), func(p *slot.Peer) bool { return f(p, m.known(p.ID)) })
}
