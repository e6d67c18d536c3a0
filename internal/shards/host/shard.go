package host

import (
	"slices"

	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// told is a phase as it is reported to others.
func told(p slot.Phase) slot.Phase {
	switch p {
	case slot.Resting:
		return slot.Active
	case slot.Releasing:
		return slot.Stopping
	default:
		return p
	}
}

// shard is one shard on this member.
type shard struct {
	slot.Slot
	// seen is the number of the newest order on the shard; number is that of the order by which it is held.
	seen, number uint64
	// from is the member that has to hand over first; Nobody: there is none.
	from message.Key
	// handed is the state that the last run on the member handedBy has left; handedToken is its token, with a
	// lease.
	handed      []byte
	handedBy    sbr.ID
	handedToken uint64
	left        []byte // the state that the last run here has left
	given       uint64 // the order by which left was handed over; for another order it is stale; 0: none
	// again: once the shard has stopped its lease is requested again.
	again bool
	// toldIn is the number of the State that reported the present phase; 0: none has.
	toldIn uint64
}

// Entered follows a change of a shard's phase.
func (m *Machine) Entered(s *slot.Slot, before slot.Phase) {
	if told(before) != told(s.Phase) {
		m.toBeTold(s.Shard)
	}
	i, found := slices.BinarySearch(m.held, s.Shard)
	switch {
	case s.Phase != slot.Idle && !found:
		m.held = slices.Insert(m.held, i, s.Shard)
	case s.Phase == slot.Idle && found:
		m.held = slices.Delete(m.held, i, i+1)
	}
	if s.Phase == slot.Idle {
		sl := &m.shards[s.Shard]
		sl.number, sl.from, sl.handed, sl.handedBy, sl.handedToken = 0, message.Nobody, nil, "", 0
		sl.again = false
	}
}

// take begins to take a shard by an order.
func (m *Machine) take(s int, number uint64, from message.Key) {
	sl := &m.shards[s]
	sl.number, sl.from = number, from
	if from == m.self {
		sl.from = message.Nobody
	} else {
		sl.left = nil // another member may have run it since
	}
	sl.Enter(m, slot.Taking)
	if sl.from != message.Nobody {
		m.askSoon(sl.from)
	}
}

// progress moves a shard on where nothing prevents it.
func (m *Machine) progress(s int) {
	switch sl := &m.shards[s]; sl.Phase {
	case slot.Taking:
		switch {
		case sl.from != message.Nobody || !m.able():
		case m.cfg.UseLease:
			sl.Acquire(m, m.Now)
			sl.TryLease(m)
		default:
			m.start(s, sl.number)
		}
	case slot.Acquiring:
		sl.TryLease(m)
	case slot.Active:
		if sl.Guard(m) && m.leaving && (m.Now >= m.patience || !m.successor()) {
			sl.Stop(m, slot.CauseResigned, "this member leaves and nobody has asked for the shard", "")
		}
	case slot.Resting:
		if !m.Trusted() {
			m.release(s)
		} else if m.Now >= sl.RestAt {
			m.start(s, sl.Token)
		}
	}
}

// start starts a run. Nothing else runs the shard, or the lease is held.
func (m *Machine) start(s int, token uint64) {
	sl := &m.shards[s]
	state, from, last := sl.handed, sl.handedBy, sl.handedToken
	if from == "" {
		state, last = sl.left, sl.Token
	}
	if m.cfg.UseLease && last > 0 && token > last+1 {
		state, from = nil, "" // the lease counts its grants: there may have been a run in between
	}
	sl.left, sl.given, sl.handed, sl.handedBy, sl.handedToken = nil, 0, nil, "", 0
	sl.Start(m, token, state, from)
}

// successor reports whether shards can be handed over to another member.
func (m *Machine) successor() bool {
	return slices.ContainsFunc(m.View.Peers, func(p slot.Peer) bool {
		_, goes := m.goes(p.ID)
		return p.ID != m.cfg.Self && p.Candidate && !p.Unreachable && !p.Leaving && !p.Down && !goes
	})
}

// giveUp ends what this member does with a shard.
func (m *Machine) giveUp(s int, c slot.Cause, why string) {
	switch sl := &m.shards[s]; sl.Phase {
	case slot.Taking, slot.Acquiring:
		m.ExplainShard(TopicGivenUp, s, "not taken: %s", why)
		m.release(s)
	case slot.Active:
		sl.Stop(m, c, why, "")
	case slot.Resting:
		m.release(s)
	case slot.Stopping, slot.Releasing:
		sl.again = false
	}
}

// ofSlot passes a shard an event of its run or its lease.
func (m *Machine) ofSlot(e slot.Event) {
	switch e := e.(type) {
	case slot.LeaseAnswer:
		// No state in state.go tells tokens apart for this: in the walks no store forgets.
		if sl := &m.shards[e.Shard]; sl.Answered(m, e, max(sl.Token, sl.handedToken)) {
			m.start(e.Shard, e.Token)
		}
	case slot.LeaseLost:
		if sl := &m.shards[e.Shard]; sl.LeaseLost(m, e) {
			sl.again = true
			if sl.Phase == slot.Resting {
				m.release(e.Shard)
			}
		}
	case slot.LeaseReleased:
		if m.shards[e.Shard].Released(e) {
			m.settle(e.Shard)
		}
	case slot.RunEnded:
		m.runEnded(&m.shards[e.Shard], e)
	}
}

func (m *Machine) runEnded(sl *shard, e slot.RunEnded) {
	state, present := sl.Ended(m, e)
	if !present {
		return
	}
	sl.left = state
	if sl.Phase == slot.Active && !m.over() {
		sl.Rest(m, e.Rest)
		return
	}
	m.release(e.Shard)
}

// release releases the lease; without one it settles at once. Nothing runs.
func (m *Machine) release(s int) {
	if m.shards[s].Release(m) {
		m.settle(s)
	}
}

// settle is called once nothing of a shard is left here, its lease included.
func (m *Machine) settle(s int) {
	sl := &m.shards[s]
	if m.over() || !sl.again {
		sl.Enter(m, slot.Idle)
		return
	}
	sl.again = false
	sl.Acquire(m, m.Now+m.cfg.LeaseRetryInterval)
}
