package coordinator

import (
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// State is the state of one shard.
type State string

// The states.
const (
	// Unowned: no member runs it.
	Unowned State = "unowned"
	// Running: its owner runs it.
	Running State = "running"
	// Moving: it moves to To.
	Moving State = "moving"
	// Waiting: for a removal margin, for a lease, or for a member that does not answer or does not stop.
	Waiting State = "waiting"
)

// ShardStatus is where one shard is, for people.
type ShardStatus struct {
	Shard string
	State State
	// To is the member that it moves to.
	To sbr.ID
}

// Status is what a coordinator knows and waits for.
type Status struct {
	// Recovered says that the coordinator has known once what all members run.
	Recovered bool
	Shards    []ShardStatus // by name
	Count     map[State]int // of them; it has all states
	// Silent are members that have not reported what they run; Strangers have another list of shards. By ID.
	Silent, Strangers []sbr.ID
}

// Revision grows with each change of the shards in Status.
func (m *Machine) Revision() uint64 { return m.revision }

// Status returns what is known. It shares nothing with the machine.
func (m *Machine) Status() Status {
	st := Status{
		Recovered: m.recovered, Shards: make([]ShardStatus, 0, len(m.shards)),
		Count: map[State]int{Unowned: 0, Running: 0, Moving: 0, Waiting: 0},
	}
	for s := range m.shards {
		h := &m.shards[s]
		x := ShardStatus{Shard: m.names[s], State: m.stateOf(h), To: h.order.to}
		st.Count[x.State]++
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
	case len(h.claims) == 1 && h.order.number == 0 && h.claims[0].phase == slot.Active &&
		!m.gone(h.claims[0].id):
		return Running
	default:
		return Waiting
	}
}

// acquires reports whether the member that a shard moves to has requested its lease, which another process
// may hold.
func (h *shard) acquires() bool {
	c := h.claim(h.order.to)
	return c != nil && c.phase == slot.Acquiring
}
