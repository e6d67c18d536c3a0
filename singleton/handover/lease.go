package handover

import "github.com/serf-sbr/serf-sbr/sbr"

// tryLease asks for the lease when it is time to.
func (m *Machine) tryLease() {
	switch {
	case !m.goesOn():
		m.yield("", "an older candidate is there")
	case m.newcomers():
		// Whoever has come since everybody agreed has to agree as well.
		m.emit(ReleaseLease{Attempt: m.attempt})
		m.inFlight = false
		m.take()
	case m.answeredAfterAll():
		m.emit(ReleaseLease{Attempt: m.attempt})
		m.inFlight = false
		m.phase = Taking
		m.pursue()
	default:
		if m.passedOverSome() && m.now >= m.askAt {
			m.repeat()
		}
		if !m.inFlight && m.now >= m.leaseAt {
			m.attempt++
			m.inFlight, m.lost = true, false
			m.emit(AcquireLease{Attempt: m.attempt})
		}
	}
}

// answeredAfterAll reports whether a member that was passed over has said that it runs the slot, or that it is its turn: it will not give the lease up unasked.
func (m *Machine) answeredAfterAll() bool {
	for _, p := range m.others() {
		if a := m.known(p.ID); a.what == Running || a.what == Refuse {
			return true
		}
	}
	return false
}

// passedOverSome reports whether the lease is asked for without the consent of a member, which is asked on.
func (m *Machine) passedOverSome() bool {
	for _, p := range m.others() {
		if a := m.known(p.ID); a.what != Clear && !p.Unreachable {
			return true
		}
	}
	return false
}

// newcomers reports whether there is a member that was not asked in this round.
func (m *Machine) newcomers() bool {
	for _, p := range m.others() {
		if a := m.known(p.ID); a.what == 0 && a.tries == 0 {
			return true
		}
	}
	return false
}

func (m *Machine) leaseAnswered(e LeaseAnswer) {
	if e.Attempt != m.attempt || !m.inFlight || m.phase != Acquiring {
		return // given up, and given back, meanwhile
	}
	m.inFlight = false
	m.leaseAt = m.now + m.cfg.LeaseRetryInterval
	switch {
	case e.Outcome != sbr.Granted:
		m.explain(TopicLease, "the lease was not granted: %s; asking again in %v", e.Why, m.cfg.LeaseRetryInterval)
		return
	case m.lost:
		m.explain(TopicLease, "the lease was granted and is lost already; asking again in %v", m.cfg.LeaseRetryInterval)
		return
	case e.Token <= m.token || e.Token > maxToken:
		m.emit(ReleaseLease{Attempt: m.attempt})
		m.explain(TopicStuck, "nothing starts: the lease's token %d is not between that of the last run here, %d, and %d; its store has forgotten or was changed by hand; "+
			"asking again in %v", e.Token, m.token, uint64(maxToken), m.cfg.LeaseRetryInterval)
		return
	}
	m.held = true
	if !m.goesOn() {
		m.yield("", "an older candidate is there")
		return
	}
	m.start(e.Token)
}

// leaseLost stops what runs under the lease; once that has ended the lease is asked for again.
func (m *Machine) leaseLost(why string) {
	if !m.held {
		m.lost = m.inFlight // the loss may be heard of before the grant
		return
	}
	m.held = false
	switch m.phase {
	case Active:
		m.stop(CauseLeaseLost, "the lease is lost: "+why, "")
	case Resting:
		m.release()
	}
}

// release gives the lease back after a run, or goes on at once where there is none.
func (m *Machine) release() {
	if !m.cfg.UseLease {
		m.settle()
		return
	}
	m.phase = Releasing
	m.held = false
	m.emit(ReleaseLease{Attempt: m.attempt})
}

// settle comes after a run's end and the release of its lease: whoever waits for the slot may have it now.
func (m *Machine) settle() {
	m.phase = Idle
	for _, w := range m.waiting {
		m.handedOver(w)
	}
	m.waiting = m.waiting[:0]
	if m.resigned && !m.down {
		m.ask("", Resigned)
	}
}

// handedOver tells a successor that nothing runs here any more, and what the last run has left.
func (m *Machine) handedOver(w waiting) {
	a := Message{Kind: HandedOver, Round: w.round, Token: max(m.token, m.maxToken)}
	a.State = m.lend(w.from)
	m.emit(Answer{Ref: w.ref, Message: a})
}

// lend lets another member through and returns what it is to have of the last run: nil where a newer run is known of, or may have been. Whoever was let
// through before may have run the slot.
func (m *Machine) lend(to sbr.ID) []byte {
	if m.lent != "" && m.lent != to || m.estate.token < m.maxToken {
		m.estate = estate{}
	}
	m.lent = to
	return m.estate.state
}
