package coordinator

import (
	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// State is what becomes of one shard.
type State string

// The states.
const (
	// Unowned: nobody runs it.
	Unowned State = "unowned"
	// Running: its owner runs it.
	Running State = "running"
	// Moving: it is on its way to To.
	Moving State = "moving"
	// Waiting: for a removal margin, for a lease, or for a member that does not answer or does not stop.
	Waiting State = "waiting"
)

// ShardStatus is where one shard is, for people.
type ShardStatus struct {
	Shard string
	State State
	// To is the member that it is on its way to.
	To sbr.ID
}

// Status is what a coordinator knows and waits for.
type Status struct {
	// Recovered says that it has once known what all members run.
	Recovered bool
	Shards    []ShardStatus // by name
	// Running, Moving, Waiting and Unowned count them.
	Running, Moving, Waiting, Unowned int
	// Silent are members that have not said what they run; Strangers have another list of shards. By ID.
	Silent, Strangers []sbr.ID
}

// Revision grows with each change of the shards in Status.
func (m *Machine) Revision() uint64 { return m.revision }

// Status returns what is known. It shares nothing with the machine.
func (m *Machine) Status() Status {
	st := Status{Recovered: m.recovered, Shards: make([]ShardStatus, 0, len(m.shards))}
	count := map[State]*int{Unowned: &st.Unowned, Running: &st.Running, Moving: &st.Moving, Waiting: &st.Waiting}
	for s := range m.shards {
		h := &m.shards[s]
		x := ShardStatus{Shard: m.names[s], State: m.stateOf(h), To: h.order.to}
		*count[x.State]++
		st.Shards = append(st.Shards, x)
	}
	for i := range m.members {
		switch w := &m.members[i]; {
		case w.foreign:
			st.Strangers = append(st.Strangers, w.peer.ID)
		case !w.known || w.passed:
			st.Silent = append(st.Silent, w.peer.ID)
		}
	}
	return st
}

func (m *Machine) stateOf(h *shard) State {
	switch {
	case len(h.claims) == 0:
		return Unowned
	case h.order.number > 0 && !h.order.loud && !h.acquires():
		return Moving
	case len(h.claims) == 1 && h.order.number == 0 && h.claims[0].phase == slot.Active && !m.gone(h.claims[0].id):
		return Running
	default:
		return Waiting
	}
}

// acquires reports whether the member that a shard is on its way to asks for its lease, which somebody else
// may hold.
func (h *shard) acquires() bool {
	c := h.claim(h.order.to)
	return c != nil && c.phase == slot.Acquiring
}

// tellSoon has all members told who owns what.
func (m *Machine) tellSoon() {
	if m.telling >= len(m.shards) {
		m.tellAt = m.Now + m.cfg.HandOverRetryInterval
	}
	m.telling = 0
}

// tell tells all members who owns what, one part after the other, once that is known.
func (m *Machine) tell() {
	if m.telling >= len(m.shards) || m.Now < m.tellAt || m.over {
		return
	}
	m.tellAt = m.Now + tellPause
	if !m.recovered {
		m.tellAt = m.Now + m.cfg.HandOverRetryInterval
		return
	}
	q := message.Message{Kind: message.Places, Digest: m.cfg.Digest, Term: m.cfg.Term, Number: m.next(), First: m.telling}
	if q.Number == 0 {
		return
	}
	for s := m.telling; s < min(len(m.shards), m.telling+message.MaxSize); s++ {
		q.Owners = append(q.Owners, message.KeyOf(m.shards[s].goesTo()))
	}
	q.Owners = q.Owners[:message.Fit(&q)]
	m.telling += len(q.Owners)
	m.ask("", q)
}

// goesTo is the member that a caller is sent to.
func (h *shard) goesTo() sbr.ID {
	if h.order.to != "" {
		return h.order.to
	}
	if len(h.claims) == 0 {
		return ""
	}
	return h.claims[h.keeper()].id
}
