package host

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding/message"
)

// Phase is what a machine does with one shard.
type Phase uint8

// The phases.
const (
	// Idle: the shard is somebody else's, or nobody's.
	Idle Phase = iota
	// Taking: it waits for the member that has the shard to hand over, or to be sure of its own place.
	Taking
	// Acquiring: it asks for the lease.
	Acquiring
	// Active: a run was started.
	Active
	// Resting: the run ended by itself, and another one is about to start here.
	Resting
	// Stopping: the run was asked to end.
	Stopping
	// Releasing: nothing runs, the lease is given back.
	Releasing
)

var phaseNames = [...]string{"idle", "taking", "acquiring", "active", "resting", "stopping", "releasing"}

// String returns the phase in lower case.
func (p Phase) String() string { return phaseNames[min(int(p), len(phaseNames)-1)] }

// told is the phase as others are told.
func (p Phase) told() message.Phase {
	return [...]message.Phase{message.Idle, message.Taking, message.Acquiring, message.Running, message.Running, message.Stopping, message.Stopping}[p]
}

// slot is one shard on this member.
type slot struct {
	phase Phase
	since time.Duration
	// seen is the newest order on the shard; number is the one by which it is held.
	seen, number uint64
	// from has to hand over before it is taken; Nobody: nothing is in the way.
	from message.Key
	// handed is what the run before has left, of the member handedBy.
	handed   []byte
	handedBy sbr.ID
	// handedToken is that of the run before, with a lease.
	handedToken uint64
	run         uint64
	token       uint64 // of the run; kept after its end
	left        []byte // what the last run here has left
	given       uint64 // the order by which that was handed over: for another one it is out of date; 0: none yet
	// again: once it has stopped it is taken again; with next, by that order and from this member.
	again    bool
	next     uint64
	nextFrom message.Key

	attempt  uint64
	inFlight bool // an AcquireLease is unanswered
	leased   bool
	leaseAt  time.Duration
	restAt   time.Duration
	// toldIn is the State that has told the coordinator of the present phase; 0: none has.
	toldIn uint64
}

// enter changes a shard's phase.
func (m *Machine) enter(s int, p Phase) {
	sl := &m.slots[s]
	if sl.phase.told() != p.told() {
		m.toBeTold(s)
	}
	i, found := slices.BinarySearch(m.held, s)
	switch {
	case p == Idle && found:
		m.held = slices.Delete(m.held, i, i+1)
	case p != Idle && !found:
		m.held = slices.Insert(m.held, i, s)
	}
	if p == Idle {
		sl.number, sl.from, sl.handed, sl.handedBy, sl.handedToken = 0, message.Nobody, nil, "", 0
		sl.again, sl.next = false, 0
	}
	sl.phase, sl.since = p, m.now
}

// take begins to take a shard by an order.
func (m *Machine) take(s int, number uint64, from message.Key) {
	sl := &m.slots[s]
	sl.number, sl.from = number, from
	if from == m.self {
		sl.from = message.Nobody
	} else {
		sl.left = nil // somebody else may have run it since
	}
	m.enter(s, Taking)
	if sl.from != message.Nobody {
		m.askSoon(sl.from)
	}
}

// progress goes on with a shard where nothing is in the way.
func (m *Machine) progress(s int) {
	switch sl := &m.slots[s]; sl.phase {
	case Taking:
		if sl.from != message.Nobody || !m.able() {
			return
		}
		if !m.cfg.UseLease {
			m.start(s, sl.number)
			return
		}
		m.enter(s, Acquiring)
		sl.leaseAt = m.now
		m.tryLease(s)
	case Acquiring:
		m.tryLease(s)
	case Active:
		m.guard(s)
	case Resting:
		if !m.trusted() {
			m.release(s)
		} else if m.now >= sl.restAt {
			m.start(s, sl.token)
		}
	}
}

// start starts a run. Nothing else runs the shard, or the lease is held.
func (m *Machine) start(s int, token uint64) {
	sl := &m.slots[s]
	state, from, last := sl.handed, sl.handedBy, sl.handedToken
	if from == "" {
		state, last = sl.left, sl.token
	}
	if m.cfg.UseLease && last > 0 && token > last+1 {
		state, from = nil, "" // the lease counts its grants: there may have been a run in between
	}
	sl.run++
	sl.token = token
	sl.left, sl.given, sl.handed, sl.handedBy, sl.handedToken = nil, 0, nil, "", 0
	m.enter(s, Active)
	m.emit(Start{Shard: s, Run: sl.run, Token: token, State: state, From: from})
	if from != "" {
		m.explain(TopicStarted, s, "run %d starts with token %d, handed over by %s", sl.run, token, from)
	} else {
		m.explain(TopicStarted, s, "run %d starts with token %d", sl.run, token)
	}
}

// guard looks after a run that is active.
func (m *Machine) guard(s int) {
	switch {
	case !m.trusted():
		m.stop(s, CauseUnsure, "this member has not been sure of its place for "+m.cfg.Trust.String(), "")
	case m.leaving && (m.now >= m.patience || !m.successor()):
		m.stop(s, CauseResigned, "this member leaves and nobody has asked for the shard", "")
	}
}

// successor reports whether there is somebody to whom shards can be handed over.
func (m *Machine) successor() bool {
	for i := range m.view.Peers {
		p := &m.view.Peers[i]
		if _, quit := slices.BinarySearch(m.quit, p.ID); p.ID != m.cfg.Self && p.Candidate && !p.Unreachable && !p.Leaving && !p.Down && !quit {
			return true
		}
	}
	return false
}

// stop asks a run to end.
func (m *Machine) stop(s int, c Cause, why string, to sbr.ID) {
	m.enter(s, Stopping)
	m.emit(Stop{Shard: s, Run: m.slots[s].run, Cause: c, Why: why, To: to})
	m.explain(TopicStopping, s, "run %d has to end: %s", m.slots[s].run, why)
}

// giveUp ends whatever this member does with a shard.
func (m *Machine) giveUp(s int, c Cause, why string) {
	sl := &m.slots[s]
	switch sl.phase {
	case Taking, Acquiring:
		m.explain(TopicGivenUp, s, "not taken: %s", why)
		m.release(s)
	case Active:
		m.stop(s, c, why, "")
	case Resting:
		m.release(s)
	case Stopping, Releasing:
		sl.again, sl.next = false, 0
	}
}

func (m *Machine) runEnded(e RunEnded) {
	if e.Shard < 0 || e.Shard >= len(m.slots) {
		return
	}
	sl := &m.slots[e.Shard]
	if e.Run != sl.run || sl.phase != Active && sl.phase != Stopping {
		return
	}
	if len(e.State) > message.MaxState {
		m.explain(TopicEnded, e.Shard, "run %d has left %d bytes of state, more than the %d that can be handed over: they are lost", e.Run, len(e.State),
			message.MaxState)
		e.State = nil
	}
	sl.left = e.State
	why := ""
	if e.Why != "" {
		why = ": " + e.Why
	}
	m.explain(TopicEnded, e.Shard, "run %d has ended%s", e.Run, why)
	if sl.phase == Active && !m.over() {
		m.enter(e.Shard, Resting)
		sl.restAt = m.now + e.Rest
		return
	}
	m.release(e.Shard)
}

// settle comes once nothing of a shard is left here, its lease included.
func (m *Machine) settle(s int) {
	sl := &m.slots[s]
	switch again, next, from := sl.again, sl.next, sl.nextFrom; {
	case m.over() || !again:
		m.enter(s, Idle)
	case next > 0:
		m.enter(s, Idle)
		m.take(s, next, from)
	default:
		sl.again = false
		m.enter(s, Acquiring)
		sl.leaseAt = m.now + m.cfg.LeaseRetryInterval
	}
}
