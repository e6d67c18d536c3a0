package singleton

import (
	"context"
	"errors"
	"fmt"
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
	ctx, cancel := context.WithCancelCause(m.ctx)
	m.run = &started{number: e.Run, ctx: ctx, cancel: cancel, begun: time.Now()}
	m.stopAt = time.Time{}
	if at, ok := m.machine.Until(); ok {
		m.until.Set(m.origin.Add(at))
	}
	r := &Run{name: m.cfg.Name, number: e.Run, token: e.Token, state: e.State, from: nameOf(e.From), check: func() error { return m.mayWork(ctx, e.Token) }, until: m.validUntil}
	ctx = context.WithValue(fence.WithToken(ctx, e.Token), runKey{}, r)
	m.cfg.Logger.Info("sbr: a singleton starts", "singleton", m.cfg.Name, "run", e.Run, "token", e.Token, "from", r.from)
	m.observe(OccurredStarted, "the function starts", e.Run, e.Token)
	m.locator.Load().told(m.self, whereabouts{what: newsRuns, token: e.Token, endpoint: m.cfg.Endpoint})
	conduct.Go(func() error { return m.cfg.Run(ctx, r) }, func(err error) {
		cancel(nil)
		m.inbox.Post(func() { m.ended(r, err) })
	})
}

// mayWork says why a run may not work any more; nil while it may.
func (m *Manager) mayWork(ctx context.Context, token uint64) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case m.leasing != nil && m.leasing.Lease().Token() != token:
		return ErrLeaseLost
	case m.leasing == nil && m.until.Passed():
		return ErrUnsure
	default:
		return nil
	}
}

// validUntil is when mayWork fails unless something is renewed before.
func (m *Manager) validUntil() (at time.Time, ok bool) {
	if m.leasing != nil {
		return m.leasing.Lease().ValidUntil()
	}
	return m.until.Time(), true
}

// stop asks the function to end.
func (m *Manager) stop(e handover.Stop) {
	if m.run == nil || m.run.number != e.Run {
		return
	}
	m.run.cancel(fmt.Errorf("%w: %s", causes[e.Cause], e.Why))
	m.stopAt = time.Now().Add(m.cfg.StopTimeout)
	m.observe(OccurredStop, e.Why, e.Run, m.machine.Token())
	m.locator.Load().told(m.self, whereabouts{what: newsEnded, token: m.machine.Token()})
}

// ended takes in that the function has returned.
func (m *Manager) ended(r *Run, err error) {
	took := time.Since(m.run.begun)
	if m.stopAt.IsZero() {
		m.locator.Load().told(m.self, whereabouts{what: newsEnded, token: r.token})
	}
	m.run, m.stopAt = nil, time.Time{}
	e := handover.RunEnded{Run: r.number, State: r.handedOver(), Again: !errors.Is(err, ErrDone)}
	if took >= m.cfg.RestartAtMost {
		m.backoff.Reset()
	}
	e.Rest = m.backoff.NextBackOff()
	if err != nil {
		e.Why = err.Error()
		m.cfg.Logger.Warn("sbr: the run of a singleton has ended", append(conduct.Attributes(err), "singleton", m.cfg.Name, "run", r.number)...)
	}
	m.observe(OccurredEnded, "the function has returned", r.number, r.token)
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
