package coordinator

import (
	"time"

	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding/allocation"
)

// AuditInterval is Config.AuditInterval for all but tests.
const AuditInterval = time.Minute

// Config are the rules of one type's shards.
type Config struct {
	// Rules are the rules of the hosts. UseLease: where a member stays silent, the lease of a shard decides.
	slot.Rules
	// Term is the fencing token of the singleton's run of this machine. Required, at most message.MaxTerm.
	Term uint64
	// Allocator decides which member each shard belongs to, and how many move at once. Required; its shards
	// are the type's.
	Allocator Allocator
	// Digest is message.Digest of the list of shards.
	Digest uint64
	// AuditInterval is the pause between two requests to all members what they run, in case that a report was
	// missed.
	AuditInterval time.Duration
}

// Allocator decides which member each shard belongs to, as *allocation.Allocator does. It is deterministic.
type Allocator interface {
	// Shards returns the names of the shards, in order.
	Shards() []string
	// Next returns the moves that may begin now; see allocation.Allocator.Next.
	Next(members []allocation.Member, current map[string]allocation.Placement) []allocation.Move
}

// planPause is between two plans: members answer one after the other.
const planPause = 20 * time.Millisecond

// Machine is the coordinator of one type's shards, for one run of its singleton. It is not safe for
// concurrent use.
type Machine struct {
	slot.Base
	cfg   Config
	names []string
	index map[string]int

	counter   uint64
	over      bool // resigned
	recovered bool // it has known once what all members run
	revision  uint64

	members []member // by ID
	shards  []shard
	// waitUntil is when the margins that hosts reported end.
	waitUntil time.Duration

	dirty    bool // plan anew
	planAt   time.Duration
	repeatAt time.Duration
	auditAt  time.Duration
	fresh    []int // shards whose orders were not sent yet
}

// shard is what the coordinator knows of one shard.
type shard struct {
	claims []claim // by ID
	order  order   // number 0: none
}

// order is an order on a shard. With an empty to the shard is only stopped at from.
type order struct {
	number   uint64
	from, to sbr.ID
	// origin had the shard before it began to move: it counts against the limits.
	origin sbr.ID
	since  time.Duration
	loud   bool
}

// claim says that a member has a shard, or may have it.
type claim struct {
	id sbr.ID
	// phase is the phase that the member reported; Idle if it was only ordered to take the shard.
	phase slot.Phase
	// number is the order by which the member has the shard.
	number uint64
	// ordered is the newest order that the member may not have seen yet; 0: it has seen all.
	ordered uint64
}

// newest is the newest order by which a member has a shard, or may get it.
func (c *claim) newest() uint64 { return max(c.number, c.ordered) }

// New returns the machine of a run that has just begun. now is the driver's clock.
func New(cfg Config, now time.Duration) *Machine {
	m := &Machine{Base: slot.NewBase(cfg.Rules, now), cfg: cfg, names: cfg.Allocator.Shards(),
		index: make(map[string]int)}
	m.shards = make([]shard, len(m.names))
	for i, name := range m.names {
		m.index[name] = i
	}
	m.auditAt = now + cfg.AuditInterval
	return m
}

// Step takes in one event at the time now and returns what is to be done. The slice is valid until the next
// call.
func (m *Machine) Step(now time.Duration, e slot.Event) []slot.Effect {
	m.Begin(now)
	if m.over {
		return nil
	}
	switch e := e.(type) {
	case slot.Viewed:
		m.viewed(e.View)
	case slot.Asked[message.Message]:
		m.asked(e)
	case slot.Answered[message.Message]:
		m.answered(e)
	}
	m.advance()
	return m.Effects()
}

// advance does what time and the newest facts make due.
func (m *Machine) advance() {
	if m.View.Peers == nil {
		return // the members are not known yet
	}
	m.expire()
	m.askReports()
	m.recover()
	if m.dirty && m.Now >= m.planAt {
		m.dirty = false
		m.planAt = m.Now + planPause
		m.mend()
		m.plan()
		m.revision++
	}
	if m.Now >= m.repeatAt {
		m.repeat()
	}
	m.sendFresh()
	m.audit()
}

// recover notes when it is first known what all members run.
func (m *Machine) recover() {
	if m.recovered || !m.clear() {
		return
	}
	m.recovered, m.dirty = true, true
	m.ExplainShard(TopicRecovering, -1, "it is known what runs on all %d members", len(m.members))
}

// next returns the next number; 0 when there is none left, and the run is over.
func (m *Machine) next() uint64 {
	if m.counter >= message.MaxCounter {
		m.resign(m.cfg.Term, "all numbers of this term are spent")
		return 0
	}
	m.counter++
	return message.Number(m.cfg.Term, m.counter)
}

func (m *Machine) resign(term uint64, why string) {
	if !m.over {
		m.over = true
		m.Emit(slot.GiveUp{Term: term, Why: why})
	}
}

// NextDeadline returns when a Tick is due, unless an event comes first. ok is false when nothing is pending.
func (m *Machine) NextDeadline() (at time.Duration, ok bool) {
	if m.over || m.View.Peers == nil {
		return 0, false
	}
	at = m.auditAt
	due := func(t time.Duration) { at = min(at, t) }
	if m.dirty {
		due(m.planAt)
	}
	if m.waitUntil > m.Now {
		due(m.waitUntil)
	}
	for i := range m.members {
		switch w := &m.members[i]; {
		case w.gone():
			due(w.until)
		case w.unableUntil > m.Now:
			due(w.unableUntil)
		}
		if m.members[i].toAsk() {
			due(m.members[i].askAt)
		}
	}
	for i := range m.shards {
		if m.shards[i].order.number > 0 {
			due(m.repeatAt)
			break
		}
	}
	return at, true
}

// The topics that only a coordinator has.
const (
	// TopicRecovering: the coordinator finds out what runs where.
	TopicRecovering slot.Topic = "recovering"
	// TopicMember: a member cannot get shards, or can again.
	TopicMember slot.Topic = "member"
	// TopicMove: a shard moves.
	TopicMove slot.Topic = "move"
	// TopicConflict: two members report the same shard.
	TopicConflict slot.Topic = "conflict"
)
