package world

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// telling is something a process repeats until every target has taken it in, is gone, or time is up.
type telling struct {
	targets []*process
	heard   []bool // by the place among the teller's others
	until   time.Duration
	first   bool
	// deliver hands the message to q; it may be several pieces.
	deliver func(q *process)
}

// tell starts a telling. Like a query, the first try reaches everybody; only the targets are waited for.
func (p *process) tell(ids []sbr.ID, deliver func(q *process)) {
	t := &telling{until: p.w.now + p.w.opts.TellFor, first: true, deliver: deliver}
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
		for place := range p.peers[:min(len(p.peers), len(t.heard))] {
			if p.peers[place].known {
				p.tellTo(t, p.w.procs[place])
			}
		}
	} else {
		for _, q := range t.targets {
			p.tellTo(t, q)
		}
	}
	p.w.after(p.w.opts.TellEvery, p, func() { p.tellOnce(t) })
}

// delivery is one try to tell somebody something, and then its answer.
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
		m.t.deliver(m.to)
		m.answered = true
		w.post(m.to, m.from, m)
	}
}

func (p *process) tellVerdict(e sbr.TellVerdict) {
	v := &e.Verdict // a resolver never changes the lists of a verdict, so all may share them
	p.w.trace.mix(p.w.now, p, "tells")
	p.w.trace.number(v.Token)
	p.w.trace.ids(e.Targets)
	if p.w.wordy() {
		p.w.say(p, "tells", "verdict %d to %v", v.Token, names(e.Targets))
	}
	pieces := pieces(*v, p.w.opts.TellLimit)
	p.tell(e.Targets, func(q *process) {
		for _, v := range pieces {
			q.step(sbr.Told{From: p.id, Verdict: v})
		}
	})
}

// pieces cuts a verdict into messages of at most limit incarnations.
func pieces(v sbr.Verdict, limit int) []sbr.Verdict {
	if limit <= 0 || len(v.Survivors)+len(v.Down) <= limit {
		return []sbr.Verdict{v}
	}
	var all []sbr.Verdict
	for c := range slices.Chunk(v.Survivors, limit) {
		all = append(all, sbr.Verdict{Token: v.Token, Survivors: c, DecidedBy: v.DecidedBy, Reason: v.Reason, Partial: true})
	}
	for c := range slices.Chunk(v.Down, limit) {
		all = append(all, sbr.Verdict{Token: v.Token, Down: c, DecidedBy: v.DecidedBy, Reason: v.Reason, Partial: true})
	}
	return all
}

func (p *process) tellOrder(e sbr.TellOrder) {
	o := e.Order
	o.Down = slices.Clone(o.Down)
	p.w.note(p, "tells", "order %s for %v to %v", o.Kind, names(o.Down), names(e.Targets))
	p.tell(e.Targets, func(q *process) { q.step(sbr.Ordered{From: p.id, Order: o}) })
}

func (p *process) ask(e sbr.AskToRace) {
	p.w.note(p, "asks for help", "%v", names(e.Targets))
	for _, id := range e.Targets {
		if q := p.w.byID[id]; q != nil {
			p.w.send(p, q, func() { q.step(sbr.Asked{From: p.id, Suspects: e.Suspects}) })
		}
	}
}

// askStanding asks everybody this process knows of what speaks against it.
func (p *process) askStanding() {
	p.w.note(p, "asks", "for its standing")
	for _, q := range p.w.procs {
		if q == p || !p.knows(q) {
			continue
		}
		p.w.send(p, q, func() {
			if q.stage == stageRunning {
				if answer := q.r.Answer(p.id, p.self.Seen); answer != nil {
					q.w.send(q, p, func() { p.step(answer) })
				}
			}
		})
	}
}
