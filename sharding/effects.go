package sharding

import (
	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding/coordinator"
	"github.com/serf-sbr/serf-sbr/sharding/host"
	"github.com/serf-sbr/serf-sbr/sharding/message"
)

// carryHost carries out what the host wants. Loop only.
func (m *Manager) carryHost(effects []host.Effect) {
	for _, e := range append([]host.Effect(nil), effects...) {
		switch e := e.(type) {
		case host.Ask:
			m.ask(e.To, e.Message, func(from sbr.ID, a message.Message, unserved bool) {
				m.tellHost(host.Answered{From: from, Message: a, Unserved: unserved})
			})
		case host.Answer:
			m.debug(m.hostRefs.Answer(e.Ref, e.Message))
		case host.AcquireLease:
			m.acquire(e)
		case host.ReleaseLease:
			m.release(e)
		case host.Start:
			m.start(e)
		case host.Stop:
			m.stop(e)
		case host.Explain:
			m.explain(e.Text, string(e.Topic), e.Shard)
		}
	}
}

// carryCoordinator carries out what the coordinator wants. Loop only.
func (m *Manager) carryCoordinator(effects []coordinator.Effect) {
	for _, e := range append([]coordinator.Effect(nil), effects...) {
		switch e := e.(type) {
		case coordinator.Ask:
			m.ask(e.To, e.Message, func(from sbr.ID, a message.Message, unserved bool) {
				m.tellCoordinator(coordinator.Answered{From: from, Message: a, Unserved: unserved})
			})
		case coordinator.Answer:
			m.debug(m.coordRefs.Answer(e.Ref, e.Message))
		case coordinator.Resign:
			m.cfg.Logger.Warn("sbr: the coordinator of shards resigns", "type", m.cfg.Type, "reason", e.Why)
			m.coordEnd(e.Term)
		case coordinator.Explain:
			m.explain(e.Text, string(e.Topic), e.Shard)
		}
	}
}

func (m *Manager) debug(err error) {
	if err != nil {
		m.cfg.Logger.Debug("sbr: an answer was not sent", "type", m.cfg.Type, "error", err)
	}
}

func (m *Manager) explain(text, topic string, shard int) {
	attrs := []any{"type", m.cfg.Type, "topic", topic}
	if shard >= 0 {
		attrs = append(attrs, "shard", m.cfg.Shards[shard])
	}
	level := m.cfg.Logger.Info
	if topic == string(host.TopicStuck) { // the coordinator's has the same name
		level = m.cfg.Logger.Warn
	}
	level("sbr: "+text, attrs...)
}

// ask sends a question to another member, to this member's own machines, or to everybody. Answers come to the loop for as long as the question is open.
func (m *Manager) ask(to sbr.ID, msg message.Message, answered func(from sbr.ID, a message.Message, unserved bool)) {
	if to == "" || to == m.self {
		m.inbox.Post(func() {
			m.question(m.self, msg, func(a message.Message) error {
				m.inbox.Post(func() { answered(m.self, a, false) })
				return nil
			})
		})
	}
	if to == m.self {
		return
	}
	payload := message.Append(nil, &msg)
	m.workers.Go(func() {
		answers, err := m.cluster.Ask(m.topic, to, payload, 3*m.cfg.HandOverRetryInterval)
		if err != nil {
			m.cfg.Logger.Debug("sbr: a question was not sent", "type", m.cfg.Type, "kind", msg.Kind, "error", err)
			return
		}
		for {
			select {
			case a, open := <-answers:
				if !open {
					return
				}
				m.heard(a, msg, answered)
			case <-m.ctx.Done():
				return
			}
		}
	})
}

// heard takes in an answer; of a member that serves no shards the question itself stands for it.
func (m *Manager) heard(a downing.Answer, question message.Message, answered func(sbr.ID, message.Message, bool)) {
	msg := question
	if !a.Unserved {
		var err error
		if msg, err = message.Decode(a.Payload); err != nil {
			m.cfg.Logger.Debug("sbr: an answer was not understood", "type", m.cfg.Type, "from", downing.NameOf(a.From), "error", err)
			return
		}
	}
	m.inbox.Post(func() { answered(a.From, msg, a.Unserved) })
}
