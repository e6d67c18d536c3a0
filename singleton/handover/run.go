package handover

import "time"

// start starts a run. Everybody has agreed, or the lease is held.
func (m *Machine) start(token uint64) {
	state := m.handed
	if m.from == "" && m.token >= m.maxToken {
		state = m.left // nobody else has run it since
	}
	m.phase = Active
	m.run++
	m.token, m.maxToken = token, max(m.maxToken, token)
	m.patience = 0
	for i := range m.answers {
		m.answers[i].tries = 0
	}
	m.emit(Start{Run: m.run, Token: token, State: state, From: m.from})
	if m.from != "" {
		m.explain(TopicStarted, "run %d starts with token %d, handed over by %s", m.run, token, m.from)
	} else {
		m.explain(TopicStarted, "run %d starts with token %d", m.run, token)
	}
	m.left, m.handed, m.from = nil, nil, ""
}

// guard looks after the run that is active.
func (m *Machine) guard() {
	if !m.trusted() {
		m.stop(CauseUnsure, "this member has not been sure of its place for "+m.cfg.Trust.String(), waiting{})
		return
	}
	if m.leaving() && !m.resigned {
		m.resign(time.Duration(m.cfg.NumberOfRetries) * m.cfg.HandOverRetryInterval)
		return
	}
	if m.patience > 0 && (m.now >= m.patience || !m.successor()) {
		m.stop(CauseResigned, "this member resigns and nobody has asked for the slot", waiting{})
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
		fresh = fresh || m.answerOf(p.ID).what == 0 && m.answerOf(p.ID).tries == 0
	}
	if !fresh && m.now < m.askAt {
		return
	}
	m.askAt = m.now + m.cfg.HandOverRetryInterval
	for _, p := range m.others() {
		a := m.answerOf(p.ID)
		if !m.unclaimed(p, a) {
			continue
		}
		a.tries++
		if a.what == HandOver {
			m.ask(p.ID, HandOver)
		} else {
			m.ask(p.ID, Take)
		}
	}
}

// unclaimed reports whether a member has yet to answer while this one runs the slot. One that never does is left alone: it will ask before it starts.
func (m *Machine) unclaimed(p *Peer, a *answer) bool {
	return a.what != Clear && a.what != Refuse && !p.Unreachable && a.tries < m.cfg.NumberOfRetries
}

func (m *Machine) claims() bool {
	if m.resigned {
		return false
	}
	for _, p := range m.others() {
		if m.unclaimed(p, m.answerOf(p.ID)) {
			return true
		}
	}
	return false
}

// stop asks the run to end.
func (m *Machine) stop(c Cause, why string, to waiting) {
	m.phase = Stopping
	m.patience = 0
	m.emit(Stop{Run: m.run, Cause: c, Why: why, To: to.from})
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
	m.left = e.State
	m.explain(TopicEnded, "run %d has ended%s", e.Run, because(e.Why))
	switch {
	case m.phase == Stopping:
		m.release()
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

// rest starts the next run where the last one ended by itself.
func (m *Machine) rest() {
	switch {
	case !m.mine() || !m.trusted():
		m.release()
	case m.now >= m.restAt && m.cfg.UseLease:
		m.start(m.token)
	case m.now >= m.restAt:
		m.start(m.nextToken())
	}
}

// resign hands the slot over, if there is anything to hand over, and never takes it again.
func (m *Machine) resign(patience time.Duration) {
	if m.over() {
		if m.phase == Active && patience <= 0 {
			m.stop(CauseResigned, "this member has to leave at once", waiting{})
		}
		return
	}
	m.resigned = true
	switch m.phase {
	case Idle:
		m.ask("", Resigned)
	case Taking, Acquiring:
		m.yield("this member resigns")
		m.ask("", Resigned)
	case Resting:
		m.release()
	case Active:
		if patience <= 0 || !m.successor() {
			m.stop(CauseResigned, "this member resigns", waiting{})
			return
		}
		m.patience, m.askAt = m.now+patience, m.now+m.cfg.HandOverRetryInterval
		m.ask("", Resigning)
	}
}

// downed stops everything, for good.
func (m *Machine) downed(why string) {
	if m.down {
		return
	}
	m.down = true
	switch m.phase {
	case Active:
		m.stop(CauseDown, "this member is down: "+why, waiting{})
	case Taking, Acquiring:
		m.yield("this member is down: " + why)
	case Resting:
		m.release()
	}
}
