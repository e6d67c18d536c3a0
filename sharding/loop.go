package sharding

import (
	"context"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/conduct"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding/coordinator"
	"github.com/serf-sbr/serf-sbr/sharding/host"
	"github.com/serf-sbr/serf-sbr/sharding/membership"
	"github.com/serf-sbr/serf-sbr/sharding/message"
)

// now is the machines' clock: monotonic, since Start.
func (m *Manager) now() time.Duration { return time.Since(m.origin) }

// loop drives the machines until nothing can happen any more.
func (m *Manager) loop(closeTopic func()) {
	defer m.end()
	defer m.partFromCoordinator()
	defer close(m.looped)
	timer := time.NewTimer(0)
	defer timer.Stop()
	downed, left := m.cluster.Downed(), m.cluster.Left()
	for !m.host.Finished() {
		timer.Reset(m.wait())
		select {
		case <-downed:
			downed = nil
			m.tellHost(host.Downed{Why: "its resolver has decided so"})
		case <-left:
			left = nil
			m.tellHost(host.Leave{})
		case <-m.inbox.Wake():
		case <-timer.C:
		}
		if m.cfg.Pause != nil {
			m.cfg.Pause()
		}
		if downed != nil && conduct.Closed(downed) {
			continue // nothing comes before that
		}
		m.look()
		for _, f := range m.inbox.Take() {
			f()
		}
		m.tick()
		m.publish()
	}
	closeTopic() // whoever asks from now on is told that nothing runs here
	for _, f := range m.inbox.Take() {
		f() // who has asked before is answered, before the tags are changed
	}
	m.withdraw()
}

// wait is how long the loop may sleep.
func (m *Manager) wait() time.Duration {
	d := time.Hour
	if at, ok := m.host.NextDeadline(); ok {
		d = at - m.now()
	}
	if _, ok := m.host.Until(); ok {
		d = min(d, m.trust/4) // the deadline moves as long as the member is sure: renew it in time
	}
	if m.coord != nil {
		if at, ok := m.coord.NextDeadline(); ok {
			d = min(d, at-m.now())
		}
	}
	return max(d, 0)
}

func (m *Manager) tellHost(e host.Event) {
	m.carryHost(m.host.Step(m.now(), e))
}

func (m *Manager) tellCoordinator(e coordinator.Event) {
	if m.coord != nil {
		m.carryCoordinator(m.coord.Step(m.now(), e))
	}
}

func (m *Manager) tick() {
	m.carryHost(m.host.Tick(m.now()))
	if m.coord != nil {
		m.carryCoordinator(m.coord.Tick(m.now()))
	}
}

// look tells the machines how the cluster is.
func (m *Manager) look() {
	p := m.cluster.Peers()
	v := membership.View{Armed: p.Self != "" && p.State != sbr.StateArming && p.State != sbr.StateDown, Sure: -1, Peers: make([]membership.Peer, len(p.List))}
	if !p.Sure.IsZero() {
		v.Sure = max(m.now()-conduct.Since(p.Sure), 0)
	}
	ids := make(map[message.Key]sbr.ID, len(p.List))
	for i := range p.List {
		q := &p.List[i]
		v.Peers[i] = membership.Peer{ID: q.ID, Name: q.Name, Candidate: slices.Contains(q.Serves, m.topic), Unreachable: q.Unreachable,
			Leaving: q.Status == sbr.Leaving || q.Status == sbr.Exiting, Down: q.Status == sbr.Down}
		if q.Status != sbr.Down {
			ids[message.KeyOf(q.ID)] = q.ID
		}
	}
	m.ids = ids
	m.tellHost(host.Viewed{View: v})
	v.Peers = slices.Clone(v.Peers)
	m.tellCoordinator(coordinator.Viewed{View: v})
	m.trustUntil()
}

// trustUntil renews how long runs without leases are trusted.
func (m *Manager) trustUntil() {
	if at, ok := m.host.Until(); ok {
		m.until.Set(m.origin.Add(at))
	}
}

// withdraw takes the topic out of this member's tag, as far as there still is a node.
func (m *Manager) withdraw() {
	if !m.hosts || conduct.Closed(m.cluster.Downed()) || conduct.Closed(m.cluster.Left()) {
		return
	}
	known.Store(memory{m.self, m.digest}, m.host.Known())
	ctx, cancel := context.WithTimeout(m.ctx, withdrawTimeout)
	defer cancel()
	if err := m.cluster.Offer(ctx, m.topic, false); err != nil {
		m.cfg.Logger.Debug("sbr: shards were not withdrawn", "type", m.cfg.Type, "error", err)
	}
}

// withdrawTimeout bounds the change of a tag.
const withdrawTimeout = 10 * time.Second

// asked takes in a question of another member. It is called on a goroutine of the provider.
func (m *Manager) asked(q downing.Question) {
	msg, err := message.Decode(q.Payload)
	if err != nil {
		m.cfg.Logger.Debug("sbr: a question was not understood", "type", m.cfg.Type, "from", downing.NameOf(q.From), "error", err)
		return
	}
	m.inbox.Post(func() {
		m.question(q.From, msg, func(a message.Message) error { return q.Answer(message.Append(nil, &a)) })
	})
}

// question hands a question to the machine that it is for.
func (m *Manager) question(from sbr.ID, msg message.Message, answer func(message.Message) error) {
	m.learn(from, &msg)
	switch msg.Kind {
	case message.Report, message.Orders, message.HandOver:
		m.tellHost(host.Asked{Ref: m.hostRefs.Keep(answer), From: from, Message: msg})
	case message.State:
		m.tellCoordinator(coordinator.Asked{Ref: m.coordRefs.Keep(answer), From: from, Message: msg})
	case message.Resigned:
		m.tellHost(host.Asked{From: from, Message: msg})
		m.tellCoordinator(coordinator.Asked{From: from, Message: msg})
	}
}
