package handover

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// mine reports whether, by its view, this member is the oldest candidate that stays: the slot is its.
func (m *Machine) mine() bool {
	if !m.View.Armed || m.over() || m.leaving() {
		return false
	}
	for i := range m.View.Peers {
		p := &m.View.Peers[i]
		if p.ID != m.cfg.Self && p.Candidate && m.stays(p) && older(p.Born, p.ID, m.cfg.Born, m.cfg.Self) {
			return false
		}
	}
	return true
}

// over reports whether this member runs nothing any more.
func (m *Machine) over() bool { return m.resigned || m.down }

// stays reports whether a member may run the slot later. An unreachable member may, until a verdict downs it.
func (m *Machine) stays(p *slot.Peer) bool { return !p.Leaving && !p.Down && !m.known(p.ID).goes }

// leaving reports whether this member's own node leaves or is down.
func (m *Machine) leaving() bool {
	p := m.View.Peer(m.cfg.Self)
	return p != nil && (p.Leaving || p.Down)
}

// take begins to ask all members.
func (m *Machine) take() {
	m.slot.Enter(m, slot.Taking)
	m.round++
	for i := range m.heard {
		m.heard[i].answer, m.heard[i].tries = 0, 0
	}
	m.waitUntil = 0
	m.askAt = m.Now + m.cfg.HandOverRetryInterval
	others := m.others()
	m.explain(slot.TopicTaking, "it is this member's turn: asking %d others", len(others))
	for _, p := range others {
		m.other(p.ID).tries = 1
	}
	if len(others) > 0 {
		m.ask("", Take)
	}
	m.pursue()
}

// others are the members that have to answer.
func (m *Machine) others() []*slot.Peer {
	others := make([]*slot.Peer, 0, len(m.View.Peers))
	for i := range m.View.Peers {
		if p := &m.View.Peers[i]; p.ID != m.cfg.Self && !p.Down {
			others = append(others, p)
		}
	}
	return others
}

func (m *Machine) ask(to sbr.ID, k Kind) {
	m.Emit(slot.Ask[Message]{To: to, Message: Message{Kind: k, Born: m.cfg.Born, Round: m.round,
		Token: max(m.maxToken, m.slot.Token)}})
}

// other returns what is known of a member, to be changed.
func (m *Machine) other(id sbr.ID) *other {
	i, ok := m.find(id)
	if !ok {
		m.heard = slices.Insert(m.heard, i, other{id: id})
	}
	return &m.heard[i]
}

// known returns what is known of a member.
func (m *Machine) known(id sbr.ID) (o other) {
	if i, ok := m.find(id); ok {
		o = m.heard[i]
	}
	return o
}

func (m *Machine) find(id sbr.ID) (int, bool) {
	return slices.BinarySearchFunc(m.heard, id, func(o other, id sbr.ID) int { return cmp.Compare(o.id, id) })
}

// goesOn reports whether this member still takes the slot. Once the member is bound, it does: an older
// candidate has to ask for the slot, and if the member resigns it hands the slot over.
func (m *Machine) goesOn() bool {
	if !m.bound {
		return m.mine()
	}
	return m.View.Armed && !m.down && (!m.resigned || m.Now < m.patience)
}

// pursue goes on with taking: it asks members that it has not asked, repeats due requests, and goes to the
// next stage when all have answered.
func (m *Machine) pursue() {
	if !m.goesOn() {
		m.yield("", "an older candidate is there")
		return
	}
	m.askNew()
	if m.Now >= m.askAt {
		m.repeat()
	}
	if len(m.Departed) > 0 || m.waitUntil > m.Now || !m.Trusted() {
		return
	}
	runners, silent := false, false
	for _, p := range m.others() {
		switch a := m.known(p.ID); {
		case m.passedOver(p, a):
		case a.answer == Running, a.answer == HandOver:
			runners = true
		case a.answer != Clear:
			silent = true
		}
	}
	switch {
	case silent:
	case runners:
		m.askRunners()
	default:
		m.taken()
	}
}

// passedOver reports whether a member that does not answer is left to the lease.
func (m *Machine) passedOver(p *slot.Peer, a other) bool {
	return m.cfg.UseLease && !p.Unreachable && (a.answer == 0 || a.answer == HandOver) &&
		a.tries > m.cfg.NumberOfRetries
}

// askNew asks members that were not there when the round began.
func (m *Machine) askNew() {
	for _, p := range m.others() {
		if a := m.other(p.ID); a.tries == 0 && a.answer == 0 {
			a.tries = 1
			m.ask(p.ID, Take)
		}
	}
}

// askRunners asks the members that run the slot to hand over, once all others have consented: so the gap
// between runs is one answer.
func (m *Machine) askRunners() {
	for _, p := range m.others() {
		if a := m.other(p.ID); a.answer == Running {
			m.bound = true
			a.answer, a.tries = HandOver, 1
			m.ask(p.ID, HandOver)
		}
	}
}

// repeat repeats the request to each member that has not answered or has not consented.
func (m *Machine) repeat() {
	m.askAt = m.Now + m.cfg.HandOverRetryInterval
	var again []sbr.ID
	var stuck []string
	for _, p := range m.others() {
		a := m.other(p.ID)
		if a.answer == Clear || p.Unreachable {
			continue // an unreachable member is not counted as silent
		}
		if a.answer == HandOver {
			m.ask(p.ID, HandOver)
		} else {
			again = append(again, p.ID)
		}
		if a.tries++; (a.tries-1)%m.cfg.NumberOfRetries == 0 {
			stuck = append(stuck, string(p.ID))
		}
	}
	switch len(again) {
	case 0:
	case 1:
		m.ask(again[0], Take)
	default:
		m.ask("", Take)
	}
	if len(stuck) > 0 {
		what := "still asking; nothing runs meanwhile"
		if m.cfg.UseLease {
			what = "the lease decides"
		}
		m.explain(slot.TopicStuck, "no consent from %s after %d tries: %s", strings.Join(stuck, ", "),
			m.cfg.NumberOfRetries, what)
	}
}

// taken goes on once all members have answered.
func (m *Machine) taken() {
	if !m.cfg.UseLease {
		m.startNext()
		return
	}
	m.bound = true
	m.slot.Acquire(m, m.Now)
	m.tryLease()
}

// startNext starts a run without a lease, under the next token.
func (m *Machine) startNext() {
	last := max(m.maxToken, m.slot.Token)
	if m.View.Verdict > slot.MaxToken>>m.cfg.CounterBits {
		last = slot.MaxToken
	} else {
		last = max(last, m.View.Verdict<<m.cfg.CounterBits|m.floor())
	}
	if last < slot.MaxToken {
		m.start(last + 1)
		return
	}
	m.slot.Enter(m, slot.Idle)
	m.bound = false
	m.gaveWay, m.notBefore = "", m.Now+m.cfg.NodePatience()
	m.explain(slot.TopicStuck, "nothing starts: there is no token after %d; a member has a wrong one, stop the managers of all members and start them again", uint64(slot.MaxToken))
}

// FloorAt returns Config.Floor for a machine that begins at a Unix time in seconds: the seconds since 2026,
// zero before that.
func FloorAt(unix int64) uint64 {
	const begin = 1767225600 // 2026-01-01
	return uint64(max(unix-begin, 0))
}

// floor is what the tokens under one verdict begin beyond at this moment. The clock has the upper 31 of the
// counter's bits, which last until 2094: with the default that is room for 512 runs a second, with 29 for one
// in four seconds. It goes on while the machine runs: a run that starts later than one of which this member
// has not heard has the larger token, though both machines began together.
func (m *Machine) floor() uint64 {
	const clockBits = 31
	if m.cfg.Floor == 0 {
		return 0
	}
	seconds := min(m.cfg.Floor+uint64((m.Now-m.began)/time.Second), 1<<clockBits-1)
	if m.cfg.CounterBits < clockBits {
		return seconds >> (clockBits - m.cfg.CounterBits)
	}
	return seconds << (m.cfg.CounterBits - clockBits)
}

// hear records a token that another member knows.
func (m *Machine) hear(token uint64) { m.maxToken = max(m.maxToken, min(token, slot.MaxToken)) }

// yield stops taking the slot, in favour of another member if to is not empty.
func (m *Machine) yield(to sbr.ID, why string) {
	if m.slot.Phase == slot.Acquiring {
		m.slot.Abandon(m)
	}
	m.slot.Enter(m, slot.Idle)
	m.bound = false
	m.gaveWay, m.notBefore = to, m.Now
	if to != "" {
		m.notBefore += m.cfg.HandOverRetryInterval
		if p := m.View.Peer(to); p != nil && !p.Candidate && !m.over() {
			m.round++
			m.ask(to, Take) // the request may be a late one of a closed manager
		}
	}
	m.explain(TopicYielded, "%s", why)
	if m.resigned && !m.down {
		m.ask("", Resigned)
	}
}

// recognise ends the wait after a yield once the view shows gaveWay as a candidate, or as a member that does
// not stay.
func (m *Machine) recognise() {
	if p := m.View.Peer(m.gaveWay); p != nil && (p.Candidate || !m.stays(p)) {
		m.gaveWay, m.notBefore = "", m.Now
	}
}
