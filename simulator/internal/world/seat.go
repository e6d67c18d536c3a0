package world

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/handover"
	core "github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// seat is the place of a slot on one process: the machine, and what drives it.
type seat struct {
	berth
	talk  talk
	alarm alarm
	m     *handover.Machine
	// offered says that the others know that the member would run the slot.
	offered bool
	// closed says that nothing of it is left, although the process lives on.
	closed bool

	view  core.View // the newest that the machine was given
	state sbr.State // of the resolver, when it was last told of a change
}

// sit lets the process take its place in each slot, a moment after its resolver has started, and the others hear of it.
func (p *process) sit() {
	const startsWithin = 500 * time.Millisecond
	w := p.w
	if len(w.slots) == 0 {
		return
	}
	w.disturb()
	p.sure = -1
	p.seats = make([]*seat, len(w.slots))
	for _, s := range w.slots {
		if !s.runsOn(p.node) || s.chiefOf != nil {
			continue
		}
		w.after(w.between(0, startsWithin), p, func() {
			if p.stage == stageRunning && !p.resigned {
				p.seat(s, nil)
			}
		})
	}
	p.stations = make([]*station, len(w.shards))
	for _, s := range w.shards {
		w.after(w.between(0, startsWithin), p, func() { p.open(s, memory{}) })
	}
}

// seat makes the process take its place in a slot, and offer to run it.
func (p *process) seat(s *slot, gone map[sbr.ID]time.Duration) {
	t := newSeat(p, s, gone)
	p.seats[s.index] = t
	p.w.spreadOffer(func() { t.offered = true })
}

// spreadOffer lets the others hear of an offer to run something, or of its end.
func (w *World) spreadOffer(set func()) {
	const after, within = 50 * time.Millisecond, 250 * time.Millisecond
	w.after(w.between(after, within), nil, func() {
		set()
		w.offers()
	})
}

func newSeat(p *process, s *slot, gone map[sbr.ID]time.Duration) *seat {
	rules := s.rules
	rules.Self, rules.Born, rules.Gone = p.id, p.self.Born, gone
	if s.chiefOf != nil { // it may be the second one of its process
		rules.FirstRound = uint64(p.w.now / time.Microsecond)
		rules.Floor = p.w.floor(rules.CounterBits)
	}
	m, err := handover.New(rules, p.clock())
	if err != nil {
		panic(err) // the options were validated
	}
	t := &seat{m: m}
	t.open(p, s, t)
	t.talk = newTalk(p, s.index, s.HandOverRetryInterval, t)
	t.alarm = alarm{p: p, of: t}
	t.look()
	return t
}

// works reports whether the seat's process still drives it.
func (t *seat) works() bool { return t.p.drives() && !t.closed }

// drives reports whether the process drives what runs on top of its resolver.
func (p *process) drives() bool { return p.stage != stageStopped && p.stage != stageBooting }

func (t *seat) trust() time.Duration {
	if at, ok := t.m.Until(); ok {
		return at - t.view.Sure
	}
	return t.slot.rules.Trust
}

func (t *seat) tell(_ *berth, e core.Event) { t.step(e) }

// step hands an event to the machine, after the newest view, as package singleton does, and carries out what it wants.
func (t *seat) step(e core.Event) {
	if !t.works() {
		return
	}
	switch e.(type) {
	case core.Viewed, core.Downed:
	default:
		t.look()
	}
	t.carryOut(t.m.Step(t.p.clock(), e))
	t.alarm.plan()
	t.slot.look()
	if t.m.Finished() {
		t.finished()
	}
}

// finished withdraws the offer to run the slot, and lets the process go that has waited for that.
func (t *seat) finished() {
	const toldWithin = 300 * time.Millisecond
	w, p := t.p.w, t.p
	if t.offered {
		w.after(w.between(0, toldWithin), nil, func() {
			t.offered = false
			w.offers()
		})
	}
	if c := t.slot.chiefOf; c != nil {
		p.station(c).over()
	}
	p.mayGo()
}

// mayGo lets the process leave that has waited until nothing runs on it.
func (p *process) mayGo() {
	const lastWords = 100 * time.Millisecond
	if p.resigned && !p.seated() {
		p.w.after(lastWords, p, p.goodbye)
	}
}

// resign makes the process hand over what it runs, and leave then.
func (p *process) resign() {
	if p.resigned {
		return
	}
	p.resigned = true
	p.w.disturb()
	p.eachSeat(func(t *seat) {
		if t.slot.chiefOf == nil {
			t.resign()
		}
	})
	p.eachStation((*station).shut)
	if !p.seated() {
		p.goodbye()
	}
}

func (t *seat) resign() {
	t.step(core.Resign{Patience: time.Duration(t.slot.NumberOfRetries) * t.slot.HandOverRetryInterval})
}

func (p *process) goodbye() {
	if p.stage == stageRunning {
		p.w.disturb()
		p.step(sbr.Left{})
		p.leave()
	}
}

// look gives the machine the newest view.
func (t *seat) look() {
	v := t.viewNow()
	t.view = v
	t.step(core.Viewed{View: v})
}

func (t *seat) next() (at time.Duration, ok bool) { return t.m.NextDeadline() }

// tick lets the machine's deadline come.
func (t *seat) tick() {
	t.view = t.viewNow()
	t.carryOut(t.m.Step(t.p.clock(), core.Viewed{View: t.view}))
	t.carryOut(t.m.Tick(t.p.clock()))
	t.slot.look()
}

// String is for people.
func (t *seat) String() string { return t.slot.String() }

// carryOut carries out what the machine wants. Nothing of it comes back to the machine before all is done.
func (t *seat) carryOut(effects []core.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case core.Ask[handover.Message]:
			t.ask(e)
		case core.Answer[handover.Message]:
			t.answer(e)
		case core.AcquireLease:
			t.acquire(e.Attempt)
		case core.ReleaseLease:
			t.release(e.Attempt)
		case core.Start:
			t.start(e)
		case core.Stop:
			t.stop(e.Run, e.Cause.String())
		case core.Explain:
			t.p.w.note(t.p, "slot", "%s: %s", t.slot.Name, e.Text)
		}
	}
}

// ask sends a question.
func (t *seat) ask(e core.Ask[handover.Message]) {
	t.p.w.note(t.p, "asks", "%s: %s of %s, round %d", t.slot.Name, e.Message.Kind.String(), whom(e.To), e.Message.Round)
	t.talk.ask(e.To, handover.AppendMessage(nil, e.Message), false)
}

// answer answers a question.
func (t *seat) answer(e core.Answer[handover.Message]) {
	q := t.talk.open(e.Ref)
	if q == nil {
		t.slot.broken(6, "%s answers a question of %s that nobody has asked, or twice", t.p.id, t.slot)
		return
	}
	t.p.w.note(t.p, "answers", "%s: %s to %s, round %d", t.slot.Name, e.Message.Kind.String(), q.by.p.id, e.Message.Round)
	t.talk.answer(q, handover.AppendMessage(nil, e.Message))
}

func (t *seat) asked(ref uint64, q *inquiry) {
	t.step(core.Asked[handover.Message]{Ref: ref, From: q.by.p.id, Message: said(q.wire)})
}

func (t *seat) answered(q *inquiry, from sbr.ID, wire []byte) {
	e := core.Answered[handover.Message]{From: from, Unserved: wire == nil}
	if e.Unserved {
		e.Message.Round = said(q.wire).Round
	} else {
		e.Message = said(wire)
	}
	t.step(e)
}

// said is a message that a seat has sent.
func said(wire []byte) handover.Message {
	m, err := handover.Decode(wire)
	if err != nil {
		panic(err) // it was encoded by the same package
	}
	return m
}

// eachSeat is about the places that the process has taken.
func (p *process) eachSeat(f func(*seat)) {
	for _, t := range p.seats {
		if t != nil {
			f(t)
		}
	}
}

// eachBerth is about all places where something may run on the process.
func (p *process) eachBerth(f func(*berth)) {
	p.eachSeat(func(t *seat) { f(&t.berth) })
	p.eachStation(func(t *station) {
		for i := range t.berths {
			f(&t.berths[i])
		}
	})
}

// eachClient is about all ways of the process to a lease.
func (p *process) eachClient(f func(*client)) {
	f(p.client)
	p.eachBerth(func(t *berth) {
		if t.client != nil {
			f(t.client)
		}
	})
}

// seated reports whether any of the process's machines has something left to end.
func (p *process) seated() bool {
	return slices.ContainsFunc(p.seats, func(t *seat) bool { return t != nil && !t.m.Finished() }) ||
		slices.ContainsFunc(p.stations, func(t *station) bool { return t != nil && t.stage != stationClosed })
}
