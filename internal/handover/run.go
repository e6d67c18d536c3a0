package handover

import (
	"time"

	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// tryLease requests the lease when it is due.
func (m *Machine) tryLease() {
	switch {
	case !m.goesOn():
		m.yield("", "an older candidate is there")
	case m.newcomers():
		m.slot.Abandon(m)
		m.take() // members that have joined since have to consent as well
	case m.answeredAfterAll():
		m.slot.Abandon(m)
		m.slot.Enter(m, slot.Taking)
		m.pursue()
	default:
		if m.passedOverSome() && m.Now >= m.askAt {
			m.repeat()
		}
		m.slot.TryLease(m)
	}
}

// answeredAfterAll reports whether a member that was passed over has said that it runs the slot, or that the
// slot is its: it does not release the lease unasked.
func (m *Machine) answeredAfterAll() bool {
	return m.anyOther(func(_ *slot.Peer, a other) bool { return a.answer == Running || a.answer == Refuse })
}

// passedOverSome reports whether the lease is requested without the consent of a member, which is still
// asked.
func (m *Machine) passedOverSome() bool {
	return m.anyOther(func(p *slot.Peer, a other) bool { return a.answer != Clear && !p.Unreachable })
}

// newcomers reports whether there is a member that was not asked in this round.
func (m *Machine) newcomers() bool {
	return m.anyOther(func(_ *slot.Peer, a other) bool { return a.answer == 0 && a.tries == 0 })
}

func (m *Machine) leaseAnswered(e slot.LeaseAnswer) {
	switch {
	case !m.slot.Answered(m, e, m.slot.Token):
	case m.goesOn():
		m.start(e.Token)
	default:
		m.yield("", "an older candidate is there")
	}
}

// start starts a run. All members have consented, or the lease is held.
func (m *Machine) start(token uint64) {
	last := m.estate
	if m.lent != "" || last.token < m.maxToken || m.cfg.UseLease && token > last.token+1 {
		last = estate{} // there may have been a newer run: the lease counts its grants
	}
	m.estate, m.lent = estate{}, ""
	m.bound, m.maxToken = false, max(m.maxToken, token)
	for i := range m.heard {
		m.heard[i].tries = 0
	}
	m.slot.Start(m, token, last.state, last.from)
	if !m.cfg.UseLease && len(m.others()) > 0 {
		m.ask("", Started) // after a crash without a verdict the next run learns the token only so
	}
}

// Entered ends the patience of a resigning member when its run is stopped.
func (m *Machine) Entered(s *slot.Slot, _ slot.Phase) {
	if s.Phase == slot.Stopping {
		m.patience = 0
	}
}

// guard checks the active run.
func (m *Machine) guard() {
	switch {
	case !m.slot.Guard(m):
	case m.leaving() && !m.resigned:
		m.resign(m.cfg.NodePatience())
	case m.patience > 0 && (m.Now >= m.patience || !m.successor()):
		m.slot.Stop(m, slot.CauseResigned, "this member resigns and nobody has asked for the slot", "")
	default:
		if m.patience > 0 && m.Now >= m.askAt {
			m.askAt = m.Now + m.cfg.HandOverRetryInterval
			m.ask("", Resigning)
		}
		m.claim()
	}
}

// successor reports whether the slot can be handed over to another member.
func (m *Machine) successor() bool {
	return m.anyOther(func(p *slot.Peer, _ other) bool { return p.Candidate && !p.Unreachable && m.stays(p) })
}

// claim asks members that were not there when the run began: after two clusters have merged, they may run the
// slot as well. The older of the two goes on.
func (m *Machine) claim() {
	if !m.claims() {
		return
	}
	fresh := m.anyOther(func(p *slot.Peer, a other) bool {
		return m.unclaimed(p, a) && a.answer == 0 && a.tries == 0
	})
	if !fresh && m.Now < m.askAt {
		return
	}
	m.askAt = m.Now + m.cfg.HandOverRetryInterval
	for _, p := range m.others() {
		if !m.unclaimed(p, m.known(p.ID)) {
			continue
		}
		a := m.other(p.ID)
		a.tries++
		if a.answer == HandOver {
			m.ask(p.ID, HandOver)
		} else {
			m.ask(p.ID, Take)
		}
	}
}

// unclaimed reports whether a member has yet to answer while this one runs the slot. After NumberOfRetries a
// silent member is left alone until it asks, unless it is known to run the slot.
func (m *Machine) unclaimed(p *slot.Peer, a other) bool {
	return a.answer != Clear && a.answer != Refuse && !p.Unreachable &&
		(a.tries < m.cfg.NumberOfRetries || a.answer == HandOver)
}

func (m *Machine) claims() bool { return !m.resigned && m.anyOther(m.unclaimed) }

func (m *Machine) runEnded(e slot.RunEnded) {
	state, present := m.slot.Ended(m, e)
	if !present {
		return
	}
	m.estate, m.lent = estate{token: m.slot.Token, state: state}, ""
	again := e.Again && !m.resigned && !m.leaving()
	switch {
	case m.slot.Phase == slot.Stopping:
		m.release()
	case again && e.Newer > 0 && e.Newer >= m.slot.Token: // equal: all numbers under it are spent
		m.hear(e.Newer)
		m.gaveWay, m.notBefore = "", m.Now+e.Rest
		m.release() // and take the slot again: a lease has another token then
	case again:
		m.slot.Rest(m, e.Rest)
	default:
		m.resigned = true
		m.release()
	}
}

// rest starts the next run where the last one ended by itself. As with a run, an older candidate has to ask
// for the slot. Without a lease, members that came during the run have to consent first: they may run it.
func (m *Machine) rest() {
	switch {
	case m.over() || m.leaving() || !m.Trusted():
		m.release()
	case m.Now >= m.slot.RestAt && m.cfg.UseLease:
		m.start(m.slot.Token)
	case m.Now >= m.slot.RestAt && m.anyOther(func(_ *slot.Peer, a other) bool { return a.answer != Clear }):
		m.take()
	case m.Now >= m.slot.RestAt:
		m.startNext()
	}
}

// release releases the lease after a run; without a lease it settles at once.
func (m *Machine) release() {
	if m.slot.Release(m) {
		m.settle()
	}
}

// settle follows a run's end and the release of its lease: members that wait for the slot may have it now.
func (m *Machine) settle() {
	m.slot.Enter(m, slot.Idle)
	for _, w := range m.waiting {
		m.handedOver(w)
	}
	m.waiting = m.waiting[:0]
	if m.resigned && !m.down {
		m.ask("", Resigned)
	}
}

// handedOver answers a successor: nothing runs here any more, and the last run has left this state.
func (m *Machine) handedOver(w waiting) {
	a := Message{Kind: HandedOver, Round: w.round, Token: max(m.slot.Token, m.maxToken)}
	a.State = m.lend(w.from)
	m.Emit(slot.Answer[Message]{Ref: w.ref, Message: a})
}

// lend allows another member to start and returns the state for its run: nil if there is a newer run or may
// have been. A member that was allowed before may have run the slot.
func (m *Machine) lend(to sbr.ID) []byte {
	if m.lent != "" && m.lent != to || m.estate.token < m.maxToken {
		m.estate = estate{}
	}
	m.lent = to
	return m.estate.state
}

// resign hands the slot over, if there is anything to hand over, and never takes it again.
func (m *Machine) resign(patience time.Duration) {
	if m.over() {
		if patience <= 0 {
			m.end(slot.CauseResigned, "this member has to leave at once")
		}
		return
	}
	m.resigned = true
	waits := patience > 0 && m.successor()
	switch p := m.slot.Phase; {
	case p == slot.Idle:
		m.ask("", Resigned)
	case waits && p == slot.Active, waits && m.bound && (p == slot.Taking || p == slot.Acquiring):
		m.patience = m.Now + patience
		if p == slot.Active {
			m.askAt = m.Now + m.cfg.HandOverRetryInterval
		}
		m.ask("", Resigning)
	case p == slot.Resting:
		m.release()
	default:
		m.end(slot.CauseResigned, "this member resigns")
	}
}

// end ends what this member does with the slot.
func (m *Machine) end(c slot.Cause, why string) {
	switch m.slot.Phase {
	case slot.Active:
		m.slot.Stop(m, c, why, "")
	case slot.Taking, slot.Acquiring:
		m.yield("", why)
	}
}

// downed stops everything, for good.
func (m *Machine) downed(why string) {
	if m.down {
		return
	}
	m.down = true
	for i := range m.heard {
		m.heard[i].kept = nil
	}
	m.end(slot.CauseDown, "this member is down: "+why)
	if m.slot.Phase == slot.Resting {
		m.release()
	}
}
