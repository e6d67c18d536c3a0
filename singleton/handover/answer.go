package handover

import (
	"cmp"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// asked takes in another member's question.
func (m *Machine) asked(e Asked) {
	q := &e.Message
	if p := m.peer(e.From); e.From == m.cfg.Self || p != nil && p.Down || m.down {
		return // who is out is told so by others, and who is down says nothing
	}
	m.maxToken = max(m.maxToken, q.Token)
	switch q.Kind {
	case Take:
		m.quitters = slices.DeleteFunc(m.quitters, func(q quitter) bool { return q.id == e.From }) // it has a new manager
		m.emit(Answer{Ref: e.Ref, Message: m.consent(e.From, q)})
	case HandOver:
		m.askedToStop(e)
	case Resigning:
		m.quits(e.From, false)
	case Resigned:
		m.quits(e.From, true)
	}
}

// quits notes that a member goes. done: nothing of it runs.
func (m *Machine) quits(id sbr.ID, done bool) {
	i, ok := slices.BinarySearchFunc(m.quitters, id, func(q quitter, id sbr.ID) int { return cmp.Compare(q.id, id) })
	if !ok {
		m.quitters = slices.Insert(m.quitters, i, quitter{id: id})
	}
	m.quitters[i].done = m.quitters[i].done || done
	if done {
		m.gone = slices.DeleteFunc(m.gone, func(d departure) bool { return d.id == id })
	}
}

// consent answers a member that wants to run the slot.
func (m *Machine) consent(from sbr.ID, q *Message) Message {
	a := Message{Round: q.Round, Token: max(m.maxToken, m.token)}
	first := older(m.cfg.Born, m.cfg.Self, q.Born, from)
	switch m.phase {
	case Active, Stopping, Releasing, Resting:
		a.Kind = Running
		if first && !m.resigned && !m.leaving() {
			a.Kind = Refuse
		}
		a.Token = m.token
		return a
	case Taking, Acquiring:
		if first {
			a.Kind = Refuse
			return a
		}
		m.yield("an older candidate asks for the slot")
	case Idle:
		if first && m.view.Armed && !m.over() && !m.leaving() {
			a.Kind = Refuse
			return a
		}
	}
	a.Kind, a.Wait = Clear, m.margins()
	return a
}

// margins is how long this member would still wait for members that are gone.
func (m *Machine) margins() (d time.Duration) {
	for _, g := range m.gone {
		d = max(d, g.until-m.now)
	}
	return max(d, m.waitUntil-m.now, 0)
}

// askedToStop takes in that a member wants this one to hand over.
func (m *Machine) askedToStop(e Asked) {
	w := waiting{ref: e.Ref, from: e.From, born: e.Message.Born, round: e.Message.Round}
	if older(m.cfg.Born, m.cfg.Self, w.born, w.from) && !m.resigned && !m.leaving() {
		m.emit(Answer{Ref: e.Ref, Message: Message{Kind: Refuse, Round: w.round, Token: max(m.maxToken, m.token)}})
		return
	}
	switch m.phase {
	case Active:
		m.stop(CauseHandOver, "handing over to "+string(e.From), w)
		m.waiting = append(m.waiting, w)
	case Stopping, Releasing:
		m.waiting = append(slices.DeleteFunc(m.waiting, func(o waiting) bool { return o.from == w.from && o.round != w.round }), w)
	case Resting:
		m.waiting = append(m.waiting, w)
		m.release()
	case Taking, Acquiring:
		m.yield("an older candidate asks for the slot")
		m.handedOver(e.Ref, w.round)
	case Idle:
		m.handedOver(e.Ref, w.round)
	}
}

// answered takes in an answer to this member's own question.
func (m *Machine) answered(e Answered) {
	if m.phase != Taking && m.phase != Active && m.phase != Acquiring {
		return
	}
	if p := m.peer(e.From); p == nil || p.Down || e.From == m.cfg.Self {
		return
	}
	if e.Message.Round != m.round {
		return
	}
	a := m.answerOf(e.From)
	if e.Unserved {
		a.what = Clear // a manager is closed only once nothing of its run is left
		return
	}
	m.maxToken = max(m.maxToken, e.Message.Token)
	m.takeIn(a, &e.Message)
}

func (m *Machine) takeIn(a *answer, msg *Message) {
	switch msg.Kind {
	case Clear:
		if a.what == HandOver {
			return // it had not started to stop when it said so, or has a newer manager: the answer to the later question counts
		}
		a.what = Clear
		if m.phase == Taking {
			m.waitUntil = max(m.waitUntil, m.now+msg.Wait)
		}
	case Refuse:
		a.what = Refuse
	case Running:
		if a.what == HandOver {
			return
		}
		a.what = Running
		if m.phase == Active {
			m.duplicate(a)
		}
	case HandedOver:
		a.what = Clear
		if m.phase == Taking && msg.Token >= m.maxToken {
			m.handed, m.from = msg.State, a.id
		}
		if p := m.peer(a.id); p != nil && p.Leaving || m.quitter(a.id) != nil {
			m.quits(a.id, true)
		}
	}
}

// duplicate deals with a member that runs the slot as well, in a cluster that has become one with this one. The older one goes on.
func (m *Machine) duplicate(a *answer) {
	p := m.peer(a.id)
	if !older(m.cfg.Born, m.cfg.Self, p.Born, p.ID) {
		a.what = Clear // it will ask
		return
	}
	m.explain(TopicStuck, "%s runs the slot as well: it is asked to stop", a.id)
	a.what, a.tries = HandOver, 1
	m.ask(a.id, HandOver)
}

// viewed takes in a new view of the cluster.
func (m *Machine) viewed(v View) {
	old := m.view
	m.view = v
	for i := range old.Peers {
		p := &old.Peers[i]
		if now := m.peer(p.ID); now == nil || now.Down && !p.Down {
			m.departed(p)
		}
	}
	for i := range v.Peers {
		p := &v.Peers[i]
		if p.Down && p.Candidate && !slices.ContainsFunc(old.Peers, func(o Peer) bool { return o.ID == p.ID }) {
			m.departed(p)
		}
		if !p.Down {
			m.gone = slices.DeleteFunc(m.gone, func(d departure) bool { return d.id == p.ID })
		}
	}
	m.quitters = slices.DeleteFunc(m.quitters, func(q quitter) bool { return m.peer(q.id) == nil })
	m.answers = slices.DeleteFunc(m.answers, func(a answer) bool { p := m.peer(a.id); return p == nil || p.Down })
}

// departed begins the margin of a member that is gone, or was downed, unless it has said that nothing of it runs.
func (m *Machine) departed(p *Peer) {
	a, asked := slices.BinarySearchFunc(m.answers, p.ID, func(a answer, id sbr.ID) int { return cmp.Compare(a.id, id) })
	ran := asked && (m.answers[a].what == Running || m.answers[a].what == HandOver)
	if q := m.quitter(p.ID); p.ID == m.cfg.Self || !p.Candidate && !ran || q != nil && q.done {
		return
	}
	i, ok := slices.BinarySearchFunc(m.gone, p.ID, func(d departure, id sbr.ID) int { return cmp.Compare(d.id, id) })
	if !ok {
		m.gone = slices.Insert(m.gone, i, departure{id: p.ID})
	}
	m.gone[i].until = m.now + m.cfg.Margin
	if m.cfg.Margin > 0 {
		m.explain(TopicWaiting, "%s is gone: nothing starts before its margin of %v is over", p.ID, m.cfg.Margin)
	}
}
