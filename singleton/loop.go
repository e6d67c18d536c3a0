package singleton

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/conduct"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/singleton/handover"
)

// now is the machine's clock: monotonic, since Start.
func (m *Manager) now() time.Duration { return time.Since(m.origin) }

// loop drives the machine until nothing can happen any more.
func (m *Manager) loop(closeTopics func()) {
	defer m.end()
	timer := time.NewTimer(0)
	defer timer.Stop()
	downed, left := m.cluster.Downed(), m.cluster.Left()
	for !m.machine.Finished() {
		timer.Reset(m.wait())
		select {
		case <-downed:
			downed = nil
			m.step(handover.Downed{Why: "its resolver has decided so"})
		case <-left:
			left = nil
			m.step(handover.Resign{})
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
		m.carry(m.machine.Tick(m.now()))
		m.remind()
		m.publish()
	}
	m.publish()
	closeTopics() // whoever asks from now on is told that nothing of it is here
	for _, f := range m.inbox.Take() {
		f() // who has asked before is answered, before the tags are changed
	}
	m.withdraw()
}

// wait is how long the loop may sleep.
func (m *Manager) wait() time.Duration {
	const long = time.Hour
	d := long
	if at, ok := m.machine.NextDeadline(); ok {
		d = at - m.now()
	}
	if _, ok := m.machine.Until(); ok {
		d = min(d, m.trust/4) // the deadline moves as long as the member is sure: renew it in time
	}
	if m.run != nil && !m.stopAt.IsZero() {
		d = min(d, time.Until(m.stopAt))
	}
	return max(d, 0)
}

func (m *Manager) step(e handover.Event) { m.carry(m.machine.Step(m.now(), e)) }

// look tells the machine how the cluster is.
func (m *Manager) look() {
	p := m.cluster.Peers()
	v := handover.View{Armed: p.Self != "" && p.State != sbr.StateArming && p.State != sbr.StateDown, Verdict: p.Verdict, Sure: -1, Peers: make([]handover.Peer, len(p.List))}
	if !p.Sure.IsZero() {
		v.Sure = max(m.now()-conduct.Since(p.Sure), 0)
	}
	for i := range p.List {
		q := &p.List[i]
		v.Peers[i] = handover.Peer{ID: q.ID, Born: q.Born, Candidate: slices.Contains(q.Serves, m.topic), Unreachable: q.Unreachable,
			Leaving: q.Status == sbr.Leaving || q.Status == sbr.Exiting, Down: q.Status == sbr.Down}
	}
	m.step(handover.Viewed{View: v})
	m.trustUntil()
}

// withdraw takes the singleton out of this member's tag, as far as there still is a node.
func (m *Manager) withdraw() {
	ctx, cancel := context.WithTimeout(m.ctx, m.cfg.StopTimeout)
	defer cancel()
	if conduct.Closed(m.cluster.Downed()) || conduct.Closed(m.cluster.Left()) {
		return
	}
	if err := m.cluster.Offer(ctx, m.topic, false); err != nil {
		m.cfg.Logger.Debug("sbr: a singleton was not withdrawn", "singleton", m.cfg.Name, "error", err)
	}
}

// asked takes in a question of another member. It is called on a goroutine of the provider.
func (m *Manager) asked(q downing.Question) {
	msg, err := handover.Decode(q.Payload)
	if err != nil {
		m.cfg.Logger.Debug("sbr: a question was not understood", "singleton", m.cfg.Name, "from", downing.NameOf(q.From), "error", err)
		return
	}
	m.inbox.Post(func() { m.step(handover.Asked{Ref: m.refs.Keep(q.Answer), From: q.From, Message: msg}) })
}

// remind says again and again that a run does not end.
func (m *Manager) remind() {
	if m.run == nil || m.stopAt.IsZero() || time.Now().Before(m.stopAt) {
		return
	}
	m.stopAt = time.Now().Add(m.cfg.StopTimeout)
	m.cfg.Logger.Error("sbr: the run of a singleton does not end: nothing can start it elsewhere meanwhile", "singleton", m.cfg.Name, "run", m.run.Number,
		"told", fmt.Sprint(m.run.Cause()))
}
