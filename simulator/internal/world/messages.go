package world

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// telling is something a process repeats until every target has taken it in, is gone, or time is up.
type telling struct {
	targets []*process
	heard   []bool // by the place among the teller's others
	until   time.Duration
	first   bool
	// events are what the message tells, in several pieces if it is long.
	events []sbr.Event
}

// tell starts a telling. Like a query, the first try reaches all members; only the targets are waited for.
func (p *process) tell(ids []sbr.ID, m *wire.Message) {
	t := &telling{until: p.w.now + wire.TellFor, first: true}
	for _, piece := range wire.Split(*m) {
		t.events = append(t.events, piece.Event())
	}
	t.targets, t.heard = make([]*process, 0, len(ids)), make([]bool, len(p.w.procs))
	for _, id := range ids {
		if q := p.w.byID[id]; q != nil && q != p && p.knows(q) {
			t.targets = append(t.targets, q)
		}
	}
	p.tells = append(p.tells, t)
	p.tellOnce(t)
}

func (p *process) tellOnce(t *telling) {
	t.targets = slices.DeleteFunc(t.targets, func(q *process) bool {
		return t.heard[q.index] || !p.knows(q) || !t.first && p.w.gone(p, q)
	})
	if len(t.targets) == 0 || p.w.now >= t.until {
		p.tells = slices.DeleteFunc(p.tells, func(x *telling) bool { return x == t })
		p.maybeFinish()
		return
	}
	if t.first {
		t.first = false
		for q := range p.others() {
			if q.index < len(t.heard) {
				p.tellTo(t, q)
			}
		}
	} else {
		for _, q := range t.targets {
			p.tellTo(t, q)
		}
	}
	p.w.after(wire.QueryTime, p, func() { p.tellOnce(t) })
}

// delivery is one try to tell a member something, and then its answer.
type delivery struct {
	t        *telling
	from, to *process
	answered bool
}

// tellTo tells q, which answers once it has taken it in.
func (p *process) tellTo(t *telling, q *process) { p.w.post(p, q, &delivery{t: t, from: p, to: q}) }

// act is the arrival, of the message or of its answer.
func (m *delivery) act() {
	switch w := m.from.w; {
	case !w.carries(m.from, m.to):
	case m.answered:
		m.t.heard[m.to.index] = true
	case m.to.stage == stageRunning:
		for _, e := range m.t.events {
			m.to.step(e)
		}
		m.answered = true
		w.post(m.to, m.from, m)
	}
}

func (p *process) tellVerdict(e sbr.TellVerdict) {
	v := &e.Verdict // a resolver never changes the lists of a verdict, so all may share them
	p.w.note(p, "tells", "verdict %d to %v", v.Token, names(e.Targets))
	m := wire.Telling(p.id, v)
	p.tell(e.Targets, &m)
}

func (p *process) tellOrder(e sbr.TellOrder) {
	p.w.note(p, "tells", "order %s for %v to %v", e.Order.Kind, names(e.Order.Down), names(e.Targets))
	m := wire.Ordering(p.id, &e.Order, e.Targets, func(id sbr.ID) bool {
		s, known := p.r.Member(id)
		return known && s.Unlisted
	})
	p.tell(e.Targets, &m)
}

func (p *process) ask(e sbr.AskToRace) {
	if e.Contact {
		p.w.note(p, "tells", "contact with the store to %v", names(e.Targets))
	} else {
		p.w.note(p, "asks for help", "%v", names(e.Targets))
	}
	for _, id := range e.Targets {
		if q := p.w.byID[id]; q != nil {
			m := wire.Asking(p.id, &e)
			p.w.send(p, q, func() { q.step(m.Event()) })
		}
	}
}

// askStanding asks all members that this process knows of what speaks against it. Answers that it gets after it has
// stood still do not count.
func (p *process) askStanding() {
	p.w.note(p, "asks", "for its standing")
	asked := p.w.now
	for _, q := range p.w.procs {
		if q == p || !p.knows(q) {
			continue
		}
		p.w.send(p, q, func() {
			if q.stage == stageRunning {
				if answer := wire.Answering(q.id, q.r.Answer(p.id, p.self.Seen)); answer != nil {
					q.w.send(q, p, func() {
						if asked >= p.wokeAt {
							p.step(answer.Event())
						}
					})
				}
			}
		})
	}
}
