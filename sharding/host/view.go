package host

import (
	"cmp"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding/membership"
	"github.com/serf-sbr/serf-sbr/sharding/message"
)

// viewed takes in a new view of the cluster.
func (m *Machine) viewed(v membership.View) {
	old := m.view
	m.view = v
	ids := make(map[message.Key]sbr.ID, len(v.Peers))
	for i := range v.Peers {
		ids[message.KeyOf(v.Peers[i].ID)] = v.Peers[i].ID
	}
	m.ids = ids
	for i := range old.Peers {
		p := &old.Peers[i]
		if now := v.Peer(p.ID); !p.Down && (now == nil || now.Down) {
			m.departed(p)
		}
	}
	for i := range v.Peers {
		p := &v.Peers[i]
		if p.Down && old.Peer(p.ID) == nil {
			m.departed(p)
		}
		if !p.Down {
			m.gone = slices.DeleteFunc(m.gone, func(d departure) bool { return d.id == p.ID })
		}
	}
	m.quit = slices.DeleteFunc(m.quit, func(id sbr.ID) bool { return v.Peer(id) == nil })
	if me := v.Peer(m.cfg.Self); me != nil && me.Down {
		m.downed("its cluster says so")
	} else if me != nil && me.Leaving {
		m.leave(m.nodePatience())
	}
}

// nodePatience is how long others may ask for what runs here when this member's node leaves. Once it has left they take it for gone, and without leases nothing but the
// margin keeps them from starting.
func (m *Machine) nodePatience() time.Duration {
	patience := time.Duration(m.cfg.NumberOfRetries) * m.cfg.HandOverRetryInterval
	if !m.cfg.UseLease {
		patience = min(patience, m.cfg.Margin/2)
	}
	return patience
}

// departed begins the margin of a candidate that is gone, or was downed, unless it has said that nothing of it runs.
func (m *Machine) departed(p *membership.Peer) {
	if _, quit := slices.BinarySearch(m.quit, p.ID); quit || !p.Candidate || p.ID == m.cfg.Self {
		return
	}
	i, found := slices.BinarySearchFunc(m.gone, p.ID, func(d departure, id sbr.ID) int { return cmp.Compare(d.id, id) })
	if !found {
		m.gone = slices.Insert(m.gone, i, departure{id: p.ID})
	}
	m.gone[i].until = m.now + m.cfg.Margin
}

// quits notes that nothing of a member runs, nor will.
func (m *Machine) quits(id sbr.ID) {
	if i, found := slices.BinarySearch(m.quit, id); !found {
		m.quit = slices.Insert(m.quit, i, id)
	}
	m.gone = slices.DeleteFunc(m.gone, func(d departure) bool { return d.id == id })
}

// returned notes that a member that had resigned has a new manager.
func (m *Machine) returned(id sbr.ID) {
	if i, found := slices.BinarySearch(m.quit, id); found {
		m.quit = slices.Delete(m.quit, i, i+1)
	}
}

// leave takes nothing any more, and waits for others to ask for what runs.
func (m *Machine) leave(patience time.Duration) {
	switch {
	case m.down:
	case m.leaving:
		m.patience = min(m.patience, m.now+patience)
	default:
		m.leaving = true
		m.patience = m.now + patience
		for _, s := range slices.Clone(m.held) {
			if m.slots[s].phase == Active {
				m.toBeTold(s) // that it leaves
			} else {
				m.giveUp(s, CauseResigned, "this member leaves")
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
	m.duties, m.begs = nil, nil // who is down says nothing any more
	for _, s := range slices.Clone(m.held) {
		m.giveUp(s, CauseDown, "this member is down: "+why)
	}
}
