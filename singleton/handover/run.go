package handover

import (
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// start starts a run. Everybody has agreed, or the lease is held.
func (m *Machine) start(token uint64) {
	last := m.estate
	if m.lent != "" || last.token < m.maxToken || m.cfg.UseLease && token > last.token+1 {
		last = estate{} // there was a newer run, or may have been: the lease counts its grants
	}
	m.estate, m.lent = estate{}, ""
	m.phase, m.bound = Active, false
	m.run++
	m.token, m.maxToken = token, max(m.maxToken, token)
	for i := range m.answers {
		m.answers[i].tries = 0
	}
	m.emit(Start{Run: m.run, Token: token, State: last.state, From: last.from})
	if !m.cfg.UseLease && len(m.others()) > 0 {
		m.ask("", Started) // after a crash without a verdict nothing else would tell the next one
	}
	if last.from != "" {
		m.explain(TopicStarted, "run %d starts with token %d, handed over by %s", m.run, token, last.from)
	} else {
		m.explain(TopicStarted, "run %d starts with token %d", m.run, token)
	}
}

// guard looks after the run that is active.
func (m *Machine) guard() {
	if !m.trusted() {
		m.stop(CauseUnsure, "this member has not been sure of its place for "+m.cfg.Trust.String(), "")
		return
	}
	if m.leaving() && !m.resigned {
		m.resign(m.usualPatience())
		return
	}
	if m.patience > 0 && (m.now >= m.patience || !m.successor()) {
		m.stop(CauseResigned, "this member resigns and nobody has asked for the slot", "")
		return
	}
	if m.patience > 0 && m.now >= m.askAt {
		m.askAt = m.now + m.cfg.HandOverRetryInterval
		m.ask("", Resigning)
	}
	m.claim()
}

// successor reports whether there is somebody to whom the slot can be handed over.
func (m *Machine) successor() bool {
	for i := range m.view.Peers {
		if p := &m.view.Peers[i]; p.ID != m.cfg.Self && p.Candidate && !p.Unreachable && m.stays(p) {
			return true
		}
	}
	return false
}

// claim asks members that were not there when the run began: they may run the slot as well, in a cluster that has just become one with
// this. The older of the two goes on.
func (m *Machine) claim() {
	if m.resigned || !m.claims() {
		return
	}
	fresh := false
	for _, p := range m.others() {
		a := m.known(p.ID)
		fresh = fresh || m.unclaimed(p, a) && a.what == 0 && a.tries == 0
	}
	if !fresh && m.now < m.askAt {
		return
	}
	m.askAt = m.now + m.cfg.HandOverRetryInterval
	for _, p := range m.others() {
		if !m.unclaimed(p, m.known(p.ID)) {
			continue
		}
		a := m.answerOf(p.ID)
		a.tries++
		if a.what == HandOver {
			m.ask(p.ID, HandOver)
		} else {
			m.ask(p.ID, Take)
		}
	}
}

// unclaimed reports whether a member has yet to answer while this one runs the slot. One that never does is left alone: it will ask before it starts. One
// that is known to run it is not.
func (m *Machine) unclaimed(p *Peer, a answer) bool {
	return a.what != Clear && a.what != Refuse && !p.Unreachable && (a.tries < m.cfg.NumberOfRetries || a.what == HandOver)
}

func (m *Machine) claims() bool {
	if m.resigned {
		return false
	}
	for _, p := range m.others() {
		if m.unclaimed(p, m.known(p.ID)) {
			return true
		}
	}
	return false
}

// stop asks the run to end.
func (m *Machine) stop(c Cause, why string, to sbr.ID) {
	m.phase = Stopping
	m.patience = 0
	m.emit(Stop{Run: m.run, Cause: c, Why: why, To: to})
	m.explain(TopicStopping, "run %d has to end: %s", m.run, why)
}

func (m *Machine) runEnded(e RunEnded) {
	if e.Run != m.run || m.phase != Active && m.phase != Stopping {
		return
	}
	if len(e.State) > MaxState {
		m.explain(TopicEnded, "run %d has left %d bytes of state, more than the %d that can be handed over: they are lost", e.Run, len(e.State), MaxState)
		e.State = nil
	}
	m.estate, m.lent = estate{token: m.token, state: e.State}, ""
	m.explain(TopicEnded, "run %d has ended%s", e.Run, because(e.Why))
	switch {
	case m.phase == Stopping:
		m.release()
	case e.Newer > m.token && e.Again && !m.resigned && !m.leaving():
		m.hear(e.Newer)
		m.gaveWay, m.notBefore = "", m.now+e.Rest
		m.release() // and take it anew: a lease has another token then
	case e.Again && !m.resigned && !m.leaving():
		m.phase = Resting
		m.restAt = m.now + e.Rest
	default:
		m.resigned = true
		m.release()
	}
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// rest starts the next run where the last one ended by itself. As with a run, an older candidate has to ask for the slot.
func (m *Machine) rest() {
	switch {
	case m.over() || m.leaving() || !m.trusted():
		m.release()
	case m.now >= m.restAt && m.cfg.UseLease:
		m.start(m.token)
	case m.now >= m.restAt:
		m.startNext()
	}
}

// resign hands the slot over, if there is anything to hand over, and never takes it again.
func (m *Machine) resign(patience time.Duration) {
	if m.over() {
		if patience <= 0 {
			m.leaveAtOnce()
		}
		return
	}
	m.resigned = true
	switch m.phase {
	case Idle:
		m.ask("", Resigned)
	case Taking, Acquiring:
		if m.bound && patience > 0 && m.successor() {
			m.patience = m.now + patience
			m.ask("", Resigning)
			return
		}
		m.yield("", "this member resigns")
	case Resting:
		m.release()
	case Active:
		if patience <= 0 || !m.successor() {
			m.stop(CauseResigned, "this member resigns", "")
			return
		}
		m.patience, m.askAt = m.now+patience, m.now+m.cfg.HandOverRetryInterval
		m.ask("", Resigning)
	}
}

// leaveAtOnce ends the patience of a member that resigns.
func (m *Machine) leaveAtOnce() {
	switch m.phase {
	case Active:
		m.stop(CauseResigned, "this member has to leave at once", "")
	case Taking, Acquiring:
		m.yield("", "this member has to leave at once")
	}
}

// downed stops everything, for good.
func (m *Machine) downed(why string) {
	if m.down {
		return
	}
	m.down, m.kept = true, nil
	switch m.phase {
	case Active:
		m.stop(CauseDown, "this member is down: "+why, "")
	case Taking, Acquiring:
		m.yield("", "this member is down: "+why)
	case Resting:
		m.release()
	}
}
