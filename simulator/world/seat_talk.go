package world

import (
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/singleton/handover"
)

// inquiry is one question of a seat, to one member or to all that it knows. It is open for as long as answers count.
type inquiry struct {
	by    *seat
	until time.Duration // by the asker's clock
	wire  []byte
	round uint64
	given map[*process]bool
}

// openFor is how long answers to a question count, in pauses between two tries.
const openFor = 3

// ask sends a question.
func (t *seat) ask(e handover.Ask) {
	p := t.p
	q := &inquiry{
		by: t, until: p.clock() + openFor*t.slot.HandOverRetryInterval, wire: handover.AppendMessage(nil, e.Message), round: e.Message.Round,
		given: make(map[*process]bool),
	}
	p.w.note(p, "asks", "%s: %s of %s, round %d", t.slot.Name, e.Message.Kind.String(), whom(e.To), e.Message.Round)
	for place := range p.peers {
		if to := p.others()[place]; p.peers[place].known && to != p && (e.To == "" || to.id == e.To) {
			p.w.post(p, to, &asking{q: q, to: to})
		}
	}
}

func whom(to sbr.ID) sbr.ID {
	if to == "" {
		return "everybody"
	}
	return to
}

// asking is a question on its way to a member.
type asking struct {
	q  *inquiry
	to *process
}

// act is the arrival. Questions of those who are no members, or were downed, are not heard.
func (a *asking) act() {
	q, w := a.q, a.to.w
	if !w.carries(q.by.p, a.to) || a.to.stage != stageRunning && a.to.stage != stageLeaving {
		return
	}
	if m, ok := a.to.r.Member(q.by.p.id); !ok || m.Status == sbr.Down {
		return
	}
	t := a.to.seats[q.by.slot.index]
	if t == nil {
		w.post(a.to, q.by.p, &answering{q: q, from: a.to, unserved: true})
		return
	}
	m, err := handover.Decode(q.wire)
	if err != nil {
		panic(err) // it was encoded by the same package
	}
	t.refs++
	t.questions[t.refs] = q
	t.step(handover.Asked{Ref: t.refs, From: q.by.p.id, Message: m})
}

// answer answers a question.
func (t *seat) answer(e handover.Answer) {
	q := t.questions[e.Ref]
	if q == nil {
		t.p.w.violate("X6", "%s answers a question of the slot %s that nobody has asked, or twice", t.p.id, t.slot.Name)
		return
	}
	delete(t.questions, e.Ref)
	t.p.w.note(t.p, "answers", "%s: %s to %s, round %d", t.slot.Name, e.Message.Kind.String(), q.by.p.id, e.Message.Round)
	t.p.w.post(t.p, q.by.p, &answering{q: q, from: t.p, wire: handover.AppendMessage(nil, e.Message)})
}

// answering is an answer on its way.
type answering struct {
	q        *inquiry
	from     *process
	wire     []byte
	unserved bool
}

// act is the arrival. Answers of those who were downed do not count. Who has just woken up finds both the answer and the end of its time, and takes what comes first.
func (a *answering) act() {
	q, p := a.q, a.q.by.p
	late := p.clock() >= q.until
	if !p.w.carries(a.from, p) || q.given[a.from] || late && (p.wokeAt != p.w.now || p.w.chance(0.5)) {
		return
	}
	if m, _ := p.r.Member(a.from.id); m.Status == sbr.Down || p.r.KeptOut(a.from.id, a.from.self.Seen) {
		return
	}
	q.given[a.from] = true
	e := handover.Answered{From: a.from.id, Unserved: a.unserved}
	if a.unserved {
		e.Message.Round = q.round
	} else {
		m, err := handover.Decode(a.wire)
		if err != nil {
			panic(err)
		}
		e.Message = m
	}
	q.by.step(e)
}
