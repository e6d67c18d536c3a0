package host

import (
	"cmp"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// viewed handles a new view of the cluster.
func (m *Machine) viewed(v slot.View) {
	ids := make(map[message.Key]sbr.ID, len(v.Peers))
	for i := range v.Peers {
		if p := &v.Peers[i]; !p.Down {
			ids[message.KeyOf(p.ID)] = p.ID
		}
	}
	m.ids = ids
	for _, p := range m.Look(v) {
		m.departed(&p)
	}
	m.going = slices.DeleteFunc(m.going, func(g going) bool { return v.Peer(g.id) == nil })
	if me := v.Peer(m.cfg.Self); me != nil && me.Down {
		m.downed("its cluster says so")
	} else if me != nil && me.Leaving {
		m.leave(m.cfg.NodePatience())
	}
}

// departed begins the margin of a candidate that is gone, or was downed, unless it has reported that nothing
// of it runs.
func (m *Machine) departed(p *slot.Peer) {
	if i, found := m.goes(p.ID); (!found || !m.going[i].done) && p.Candidate && p.ID != m.cfg.Self {
		m.Depart(p.ID)
	}
}

// going is a member that takes nothing any more. done: nothing of it runs either.
type going struct {
	id   sbr.ID
	done bool
}

// goes finds a member in going.
func (m *Machine) goes(id sbr.ID) (i int, found bool) {
	return slices.BinarySearchFunc(m.going, id, func(g going, id sbr.ID) int { return cmp.Compare(g.id, id) })
}

// quits notes that a member takes nothing any more. done: nothing of it runs.
func (m *Machine) quits(id sbr.ID, done bool) {
	i, found := m.goes(id)
	if !found {
		m.going = slices.Insert(m.going, i, going{id: id})
	}
	if done {
		m.going[i].done = true
		m.Forget(id)
	}
}

// returned notes that a member that had resigned has a new manager.
func (m *Machine) returned(id sbr.ID) {
	if i, found := m.goes(id); found {
		m.going = slices.Delete(m.going, i, i+1)
	}
}

// leave makes this member take nothing any more, and wait for others to ask for its runs.
func (m *Machine) leave(patience time.Duration) {
	switch {
	case m.down:
	case m.leaving:
		m.patience = min(m.patience, m.Now+patience)
	default:
		m.leaving = true
		m.patience, m.bidAt = m.Now+patience, m.Now
		for _, s := range slices.Clone(m.held) {
			if m.shards[s].Phase != slot.Active {
				m.giveUp(s, slot.CauseResigned, "this member leaves")
			}
		}
	}
}

// downed stops everything, for good.
func (m *Machine) downed(why string) {
	if m.down {
		return
	}
	m.down = true
	m.duties, m.begs = nil, nil // a downed member sends nothing any more
	for _, s := range slices.Clone(m.held) {
		m.giveUp(s, slot.CauseDown, "this member is down: "+why)
	}
}
