package handover

import "github.com/serf-sbr/serf-sbr/sbr"

// tryLease asks for the lease when it is time to.
func (m *Machine) tryLease() {
	switch {
	case !m.mine():
		m.yield("an older candidate is there")
	case m.newcomers():
		// Whoever has come since everybody agreed has to agree as well.
		m.emit(ReleaseLease{Attempt: m.attempt})
		m.inFlight = false
		m.take()
	case !m.inFlight && m.now >= m.leaseAt:
		m.attempt++
		m.inFlight = true
		m.emit(AcquireLease{Attempt: m.attempt})
	}
}

// newcomers reports whether there is a member that was not asked in this round.
func (m *Machine) newcomers() bool {
	for _, p := range m.others() {
		if a := m.answerOf(p.ID); a.what == 0 && a.tries == 0 {
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
	if e.Outcome != sbr.Granted {
		m.leaseAt = m.now + m.cfg.LeaseRetryInterval
		m.explain(TopicLease, "the lease was not granted: %s; asking again in %v", e.Why, m.cfg.LeaseRetryInterval)
		return
	}
	m.held = true
	if !m.mine() {
		m.yield("an older candidate is there")
		return
	}
	m.start(e.Token)
}

// leaseLost stops what runs under the lease; once that has ended the lease is asked for again.
func (m *Machine) leaseLost(why string) {
	m.held = false
	switch m.phase {
	case Active:
		m.stop(CauseLeaseLost, "the lease is lost: "+why, waiting{})
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
		m.handedOver(w.ref, w.round)
	}
	m.waiting = m.waiting[:0]
	if m.resigned && !m.down {
		m.ask("", Resigned)
	}
}

// handedOver tells a successor that nothing runs here any more, and what the last run has left if it was the newest.
func (m *Machine) handedOver(ref, round uint64) {
	a := Message{Kind: HandedOver, Round: round, Token: max(m.token, m.maxToken)}
	if m.token >= m.maxToken {
		a.State = m.left
	}
	m.emit(Answer{Ref: ref, Message: a})
}
