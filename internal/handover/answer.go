package handover

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// asked handles another member's request.
func (m *Machine) asked(e slot.Asked[Message]) {
	q := &e.Message
	if p := m.View.Peer(e.From); e.From == m.cfg.Self || p != nil && p.Down || m.down {
		return // a downed member gets the verdict from others; this member, if down, sends nothing
	}
	m.hear(q.Token)
	if o := m.known(e.From); o.done && q.Kind == Take && q.Round <= o.went && m.Now < o.late {
		return
	}
	if q.Kind == Take || q.Kind == HandOver {
		if slices.ContainsFunc(m.Departed, func(d slot.Departure) bool { return d.ID == e.From }) {
			return // it does not know yet that it was removed, or its view will show it again
		}
		o := m.other(e.From)
		o.asks, o.asked = true, max(o.asked, q.Round)
	} else if m.known(e.From).asked > q.Round {
		return // a late request of a closed manager; the member has a new one
	}
	switch q.Kind {
	case Take:
		o := m.other(e.From)
		if o.done || o.went < q.Round {
			o.returns()
		}
		o.kept, o.keptUntil = &e, m.Now+m.cfg.HandOverRetryInterval
		if m.slot.Phase == slot.Active && o.answer == 0 && o.tries >= m.cfg.NumberOfRetries {
			o.tries = 0 // it was left alone, but now it answers, and it may run the slot already
		}
		m.answerKept()
	case HandOver:
		m.askedToStop(e)
	case Resigning:
		m.quits(e.From, false, q.Round)
	case Resigned:
		m.quits(e.From, true, q.Round)
	}
}

// quits notes that a member resigns. done: nothing of it runs.
func (m *Machine) quits(id sbr.ID, done bool, round uint64) {
	o := m.other(id)
	o.goes, o.done, o.went = true, o.done || done, max(o.went, round)
	o.late = m.Now + m.cfg.HandOverRetryInterval
	o.kept = nil
	if done {
		m.Forget(id)
	}
	m.recognise()
	m.askAgain(id, done)
}

// askAgain asks a member that resigns once more where its answer would differ now. done: nothing of it runs.
func (m *Machine) askAgain(id sbr.ID, done bool) {
	if m.slot.Phase != slot.Taking && m.slot.Phase != slot.Acquiring {
		return
	}
	switch o := m.known(id); {
	case o.answer == Refuse, done && o.answer == 0 && o.tries > 0:
		m.ask(id, Take)
	case done && o.answer == HandOver:
		m.ask(id, HandOver)
	}
}

// answerKept answers the kept requests that can be answered by now.
func (m *Machine) answerKept() {
	for i := range m.heard {
		o := &m.heard[i]
		if o.kept == nil || m.Now > o.keptUntil {
			o.kept = nil
			continue
		}
		if a, ok := m.consent(o.id, &o.kept.Message); ok {
			m.Emit(slot.Answer[Message]{Ref: o.kept.Ref, Message: a})
			o.kept = nil
		}
	}
}

// consent answers a member that wants to run the slot. Without a lease ok is false while this member knows an
// older candidate: it waits until it, too, knows that the older one resigns, or the verdict and so the
// margin.
func (m *Machine) consent(from sbr.ID, q *Message) (a Message, ok bool) {
	a = Message{Round: q.Round, Token: max(m.maxToken, m.slot.Token)}
	first := older(m.cfg.Born, m.cfg.Self, q.Born, from)
	waits := !m.cfg.UseLease && m.elder(from, q.Born)
	switch m.slot.Phase {
	case slot.Active, slot.Stopping, slot.Releasing, slot.Resting:
		a.Kind = Running
		if first && !m.resigned && !m.leaving() {
			a.Kind = Refuse
		}
		a.Token = m.slot.Token
		return a, true
	case slot.Taking, slot.Acquiring:
		switch {
		case first && !m.resigned && !m.leaving():
			a.Kind = Refuse
			return a, true
		case m.bound:
			a.Kind = Running
			return a, true
		case waits:
			return a, false // giving way without consent would begin anew with each event
		}
		m.yield(from, "an older candidate asks for the slot")
	case slot.Idle:
		if first && m.View.Armed && !m.over() && !m.leaving() {
			a.Kind = Refuse
			return a, true
		}
	}
	if waits {
		return a, false
	}
	a.Kind, a.Wait, a.State = Clear, m.margins(), m.lend(from)
	return a, true
}

// elder reports whether a candidate that stays is older than the asker, or unreachable: it may run the slot,
// and the asker may not know it.
func (m *Machine) elder(than sbr.ID, born int64) bool {
	for i := range m.View.Peers {
		p := &m.View.Peers[i]
		if p.ID != m.cfg.Self && p.ID != than && p.Candidate && m.stays(p) &&
			(p.Unreachable || older(p.Born, p.ID, born, than)) {
			return true
		}
	}
	return false
}

// margins is how long this member would still wait for members that are gone.
func (m *Machine) margins() time.Duration { return max(m.Waits(), m.waitUntil-m.Now, 0) }

// askedToStop handles a member's request to hand over.
func (m *Machine) askedToStop(e slot.Asked[Message]) {
	w := waiting{ref: e.Ref, from: e.From, round: e.Message.Round}
	if older(m.cfg.Born, m.cfg.Self, e.Message.Born, e.From) && !m.resigned && !m.leaving() {
		m.Emit(slot.Answer[Message]{Ref: e.Ref, Message: Message{Kind: Refuse, Round: w.round,
			Token: max(m.maxToken, m.slot.Token)}})
		return
	}
	switch m.slot.Phase {
	case slot.Active:
		m.slot.Stop(m, slot.CauseHandOver, "handing over to "+string(e.From), w.from)
		m.await(w)
	case slot.Stopping, slot.Releasing:
		m.await(w)
	case slot.Resting:
		m.await(w)
		m.release()
	case slot.Taking, slot.Acquiring:
		m.yield(w.from, "another candidate takes it over before it runs here")
		m.handedOver(w)
	case slot.Idle:
		m.handedOver(w)
	}
}

// maxAwaiting is how many requests of one member stay open while a run ends. The asker has given up older
// ones.
const maxAwaiting = 3

// await keeps a request until the run has ended.
func (m *Machine) await(w waiting) {
	m.waiting = slices.DeleteFunc(m.waiting, func(o waiting) bool {
		return o.from == w.from && o.round != w.round
	})
	same := 0
	for _, o := range m.waiting {
		if o.from == w.from {
			same++
		}
	}
	if same >= maxAwaiting {
		i := slices.IndexFunc(m.waiting, func(o waiting) bool { return o.from == w.from })
		m.waiting = slices.Delete(m.waiting, i, i+1)
	}
	m.waiting = append(m.waiting, w)
}

// answered handles an answer to this member's own request.
func (m *Machine) answered(e slot.Answered[Message]) {
	if m.slot.Phase == slot.Idle && e.From == m.gaveWay && e.Message.Round == m.round &&
		(e.Unserved || e.Message.Kind == Clear) {
		m.gaveWay, m.notBefore = "", m.Now // it does not want the slot any more
		return
	}
	if m.slot.Phase != slot.Taking && m.slot.Phase != slot.Active && m.slot.Phase != slot.Acquiring {
		return
	}
	if p := m.View.Peer(e.From); p == nil || p.Down || e.From == m.cfg.Self {
		return
	}
	if e.Message.Round != m.round {
		return
	}
	a := m.other(e.From)
	if e.Unserved {
		a.answer = Clear // a manager is closed only once nothing of its run is left
		return
	}
	m.hear(e.Message.Token)
	m.takeIn(a, &e.Message)
}

func (m *Machine) takeIn(a *other, msg *Message) {
	switch msg.Kind {
	case Clear:
		if a.answer == Running || a.answer == HandOver {
			return // sent before it ran, or after its run: the answer to HandOver counts
		}
		a.answer = Clear
		if m.slot.Phase == slot.Taking {
			m.waitUntil = max(m.waitUntil, m.Now+msg.Wait)
		}
		if msg.State != nil {
			m.inherit(a.id, msg)
		}
	case Refuse:
		if a.answer == Clear && m.bound {
			return // it has come to want the slot since then, and has to ask
		}
		a.answer = Refuse
	case Running:
		if a.answer == HandOver {
			return
		}
		a.answer = Running
		if m.slot.Phase == slot.Active {
			m.duplicate(a)
		}
	case HandedOver:
		a.answer = Clear
		m.inherit(a.id, msg)
		if p := m.View.Peer(a.id); p != nil && p.Leaving || a.goes {
			m.quits(a.id, true, 0)
		}
	}
}

// inherit records the state that a run has left, until this member's own run starts. Of several runs the newest
// counts.
func (m *Machine) inherit(id sbr.ID, msg *Message) {
	if m.slot.Phase != slot.Taking && m.slot.Phase != slot.Acquiring {
		return
	}
	if token := min(msg.Token, slot.MaxToken); token > m.estate.token || token == m.estate.token &&
		m.estate.state == nil {
		m.estate, m.lent = estate{token: token, state: msg.State, from: id}, ""
	}
}

// duplicate handles a member that runs the slot as well, after two clusters have merged. The older member
// goes on.
func (m *Machine) duplicate(a *other) {
	p := m.View.Peer(a.id)
	if !older(m.cfg.Born, m.cfg.Self, p.Born, p.ID) {
		a.answer = Clear // it will ask
		return
	}
	m.explain(slot.TopicStuck, "%s runs the slot as well: it is asked to stop", a.id)
	a.answer, a.tries = HandOver, 1
	m.ask(a.id, HandOver)
}

// viewed handles a new view of the cluster.
func (m *Machine) viewed(v slot.View) {
	old := m.View
	for _, p := range m.Look(v) {
		if !p.Down || p.Candidate {
			m.departed(&p)
		}
	}
	for i := range old.Peers {
		if now := v.Peer(old.Peers[i].ID); now != nil && now.Candidate != old.Peers[i].Candidate {
			m.reoffered(now)
		}
	}
	m.heard = slices.DeleteFunc(m.heard, func(o other) bool { return m.View.Peer(o.id) == nil })
	for i := range m.heard {
		if o := &m.heard[i]; m.View.Peer(o.id).Down {
			o.answer, o.tries, o.kept = 0, 0, nil
		}
	}
	m.recognise()
}

// reoffered notes that a member has removed its manager from its tags, or has a new one.
func (m *Machine) reoffered(p *slot.Peer) {
	if o := m.other(p.ID); p.Candidate {
		o.returns()
	} else {
		o.asks, o.asked = false, 0
	}
}

// departed begins the margin of a member that is gone, or was downed, and that was a candidate, or may have
// been: a member that was asked and did not answer may run the slot, though this member has not seen its tags
// yet. A member that has said that nothing of it runs has no margin.
func (m *Machine) departed(p *slot.Peer) {
	a := m.known(p.ID)
	unanswered := m.slot.Phase == slot.Taking && a.tries > 0 && a.answer == 0
	ran := unanswered || a.answer == Running || a.answer == HandOver || a.asks
	if p.ID == m.cfg.Self || !p.Candidate && !ran || a.done {
		return
	}
	m.Depart(p.ID)
	if m.cfg.Margin > 0 {
		m.explain(slot.TopicWaiting, "%s is gone: nothing of it starts elsewhere before its margin of %v is over",
			p.ID, m.cfg.Margin)
	}
}
