package singleton

import (
	"context"
	"errors"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/conduct"
	"github.com/serf-sbr/serf-sbr/internal/leasing"
	"github.com/serf-sbr/serf-sbr/lease/fence"
	"github.com/serf-sbr/serf-sbr/singleton/handover"
)

// carry carries out what the machine wants. Loop only.
func (m *Manager) carry(effects []handover.Effect) {
	for _, e := range append([]handover.Effect(nil), effects...) {
		switch e := e.(type) {
		case handover.Ask:
			m.ask(e)
		case handover.Answer:
			if err := m.refs.Answer(e.Ref, handover.AppendMessage(nil, e.Message)); err != nil {
				m.cfg.Logger.Debug("sbr: an answer was not sent", "singleton", m.cfg.Name, "error", err)
			}
		case handover.AcquireLease:
			m.acquire(e.Attempt)
		case handover.ReleaseLease:
			m.leasing.Release(func() { m.step(handover.LeaseReleased(e)) })
		case handover.Start:
			m.start(e)
		case handover.Stop:
			m.stop(e)
		case handover.Explain:
			m.explain(e)
		}
	}
}

func (m *Manager) acquire(attempt uint64) {
	m.leasing.Acquire(func(a leasing.Answer) {
		m.step(handover.LeaseAnswer{Attempt: attempt, Outcome: a.Outcome, Token: a.Token, Why: a.Why})
	}, func(why string) {
		m.step(handover.LeaseLost{Attempt: attempt, Why: why})
	})
}

// ask sends a question, and takes in answers for as long as it is open: longer than until it is repeated, so that one is always open.
func (m *Manager) ask(e handover.Ask) {
	payload := handover.AppendMessage(nil, e.Message)
	timeout := 3 * m.cfg.HandOverRetryInterval
	m.workers.Go(func() {
		answers, err := m.cluster.Ask(m.topic, e.To, payload, timeout)
		if err != nil {
			m.cfg.Logger.Debug("sbr: a question was not sent", "singleton", m.cfg.Name, "kind", e.Message.Kind, "error", err)
			return
		}
		for {
			select {
			case a, open := <-answers:
				if !open {
					return
				}
				m.heard(e.Message.Round, a)
			case <-m.ctx.Done():
				return
			}
		}
	})
}

func (m *Manager) heard(round uint64, a downing.Answer) {
	if a.Unserved {
		m.inbox.Post(func() {
			m.step(handover.Answered{From: a.From, Unserved: true, Message: handover.Message{Round: round}})
		})
		return
	}
	msg, err := handover.Decode(a.Payload)
	if err != nil {
		m.cfg.Logger.Debug("sbr: an answer was not understood", "singleton", m.cfg.Name, "from", downing.NameOf(a.From), "error", err)
		return
	}
	m.inbox.Post(func() { m.step(handover.Answered{From: a.From, Message: msg}) })
}

// start starts the function.
func (m *Manager) start(e handover.Start) {
	m.trustUntil()
	r := &started{Run: &conduct.Run{Of: "singleton " + m.cfg.Name, Number: e.Run, Token: e.Token, State: e.State, From: downing.NameOf(e.From), Until: &m.until}}
	if m.leasing != nil {
		r.Holding = m.leasing.Lease()
	}
	if err := r.Begin(m.ctx); err != nil {
		m.notStarted(e, err)
		return
	}
	m.run, m.stopAt, r.begun = r, time.Time{}, time.Now()
	m.cfg.Logger.Info("sbr: a singleton starts", "singleton", m.cfg.Name, "run", e.Run, "token", e.Token, "from", r.From)
	m.observe(OccurredStarted, "the function starts", e.Run, e.Token)
	m.locator.Load().told(m.self, whereabouts{what: newsRuns, token: e.Token, endpoint: m.cfg.Endpoint})
	run := &Run{r.Run}
	r.Start(func(ctx context.Context) error {
		return m.cfg.Run(context.WithValue(fence.WithToken(ctx, e.Token), runKey{}, run), run)
	}, func(err error) {
		m.inbox.Post(func() { m.ended(r, err) })
	})
}

// notStarted tells the machine that nothing came of a run: this process stood still since it was decided on.
func (m *Manager) notStarted(e handover.Start, why error) {
	m.cfg.Logger.Warn("sbr: a singleton does not start", "singleton", m.cfg.Name, "run", e.Run, "token", e.Token, "because", why)
	if m.leasing != nil {
		m.leasing.Doubt(why.Error())
	}
	m.inbox.Post(func() {
		m.step(handover.RunEnded{Run: e.Run, State: e.State, Again: true, Rest: m.cfg.RestartAfter, Why: why.Error()})
	})
}

// trustUntil renews how long a run without a lease is trusted.
func (m *Manager) trustUntil() {
	if at, ok := m.machine.Until(); ok {
		m.until.Set(m.origin.Add(at))
	}
}

// stop asks the function to end.
func (m *Manager) stop(e handover.Stop) {
	if m.run == nil || m.run.Number != e.Run {
		return
	}
	m.run.Stop(causes[e.Cause], e.Why)
	m.stopAt = time.Now().Add(m.cfg.StopTimeout)
	m.observe(OccurredStop, e.Why, e.Run, m.machine.Token())
	m.locator.Load().told(m.self, whereabouts{what: newsEnded, token: m.machine.Token()})
}

// ended takes in that the function has returned.
func (m *Manager) ended(r *started, err error) {
	took := time.Since(r.begun)
	if m.stopAt.IsZero() {
		m.locator.Load().told(m.self, whereabouts{what: newsEnded, token: r.Token})
	}
	m.run, m.stopAt = nil, time.Time{}
	e := handover.RunEnded{Run: r.Number, State: r.Left(), Again: !errors.Is(err, ErrDone)}
	if took >= m.cfg.RestartAtMost {
		m.backoff.Reset()
	}
	e.Rest = m.backoff.NextBackOff()
	if s, ok := errors.AsType[*Superseded](err); ok {
		e.Newer = s.Token
	}
	if err != nil {
		e.Why = err.Error()
		m.cfg.Logger.Warn("sbr: the run of a singleton has ended", append(conduct.Attributes(err), "singleton", m.cfg.Name, "run", r.Number)...)
	}
	m.observe(OccurredEnded, "the function has returned", r.Number, r.Token)
	m.step(e)
}

func (m *Manager) explain(e handover.Explain) {
	level := m.cfg.Logger.Info
	if e.Topic == handover.TopicStuck {
		level = m.cfg.Logger.Warn
	}
	m.last = e.Text
	level("sbr: "+e.Text, "singleton", m.cfg.Name, "topic", string(e.Topic))
	m.observe(string(e.Topic), e.Text, 0, 0)
}

func (m *Manager) observe(kind, text string, run, token uint64) {
	if m.cfg.Observe != nil {
		m.cfg.Observe(Occurrence{At: time.Now(), Kind: kind, Text: text, Run: run, Token: token})
	}
}
