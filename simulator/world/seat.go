package world

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/singleton/handover"
)

// seat is the place of a slot on one process: the machine, and what drives it.
type seat struct {
	p      *process
	slot   *slot
	m      *handover.Machine
	client client
	trying *attempt // to get the lease
	grant  uint64   // the attempt that got it
	run    *run     // nil: none has been started, or nothing of it is left
	ending uint64   // the number of the last run that has ended
	// offered says that the others know that the member would run the slot.
	offered bool

	questions map[uint64]*inquiry // unanswered ones, by reference
	refs      uint64

	view  handover.View // the newest that the machine was given
	state sbr.State     // of the resolver, when it was last told of a change
	event uint64        // the tick that is arranged; zero: none
	at    time.Duration // when it comes
	spins int
}

// sit lets the process take its place in each slot, a moment after its resolver has started, and the others hear of it.
func (p *process) sit() {
	const startsWithin, toldAfter, toldWithin = 500 * time.Millisecond, 50 * time.Millisecond, 250 * time.Millisecond
	w := p.w
	if len(w.slots) == 0 {
		return
	}
	w.disturb()
	p.sure = -1
	p.seats = make([]*seat, len(w.slots))
	for i, s := range w.slots {
		if !s.runsOn(p.node) {
			continue
		}
		w.after(w.between(0, startsWithin), p, func() {
			if p.stage != stageRunning || p.resigned {
				return
			}
			p.seats[i] = newSeat(p, s)
			w.after(w.between(toldAfter, toldWithin), nil, func() {
				p.seats[i].offered = true
				w.offers()
			})
		})
	}
}

func newSeat(p *process, s *slot) *seat {
	rules := s.rules
	rules.Self, rules.Born = p.id, p.self.Born
	m, err := handover.New(rules, p.clock())
	if err != nil {
		panic(err) // the options were validated
	}
	t := &seat{p: p, slot: s, m: m, questions: make(map[uint64]*inquiry)}
	t.client = client{w: p.w, p: p, s: &s.store, user: t}
	t.look()
	return t
}

// works reports whether the seat's process still drives it.
func (t *seat) works() bool { return t.p.stage != stageStopped && t.p.stage != stageBooting }

// step hands an event to the machine, after the newest view, as package singleton does, and carries out what it wants.
func (t *seat) step(e handover.Event) {
	if !t.works() {
		return
	}
	switch e.(type) {
	case handover.Viewed, handover.Downed:
	default:
		t.look()
	}
	t.carryOut(t.m.Step(t.p.clock(), e))
	t.plan()
	t.slot.look()
	if t.m.Finished() {
		t.finished()
	}
}

// finished withdraws the offer to run the slot, and lets the process go that has waited for that.
func (t *seat) finished() {
	const toldWithin, lastWords = 300 * time.Millisecond, 100 * time.Millisecond
	w, p := t.p.w, t.p
	if t.offered {
		w.after(w.between(0, toldWithin), nil, func() {
			t.offered = false
			w.offers()
		})
	}
	if p.resigned && !p.seated() {
		w.after(lastWords, p, p.goodbye)
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
		t.step(handover.Resign{Patience: time.Duration(t.slot.NumberOfRetries) * t.slot.HandOverRetryInterval})
	})
	if !p.seated() {
		p.goodbye()
	}
}

func (p *process) goodbye() {
	if p.stage == stageRunning {
		p.step(sbr.Left{})
		p.leave()
	}
}

// look gives the machine the newest view.
func (t *seat) look() {
	v := t.viewNow()
	t.view = v
	t.step(handover.Viewed{View: v})
}

// plan arranges the next tick. One that comes too early is left in place and looks again.
func (t *seat) plan() {
	if !t.works() || t.p.paused || t.spins > maxSpins {
		return
	}
	at, ok := t.m.NextDeadline()
	if !ok {
		return
	}
	if due := max(t.p.wall(at), t.p.w.now); t.event == 0 || due < t.at {
		t.at = due
		t.event = t.p.w.schedule(due, t.p, t.p.w.queue.keep((*ticking)(t)))
	}
}

// ticking is a tick of a seat, as an action.
type ticking seat

func (x *ticking) act() { (*seat)(x).tick() }

// tick lets the machine's deadline come, if it has. A tick that an earlier one has replaced does no harm: it looks, and arranges nothing twice.
func (t *seat) tick() {
	w := t.p.w
	if t.event != 0 && t.at > w.now || !t.works() {
		return
	}
	t.event = 0
	at, ok := t.m.NextDeadline()
	if !ok {
		return
	}
	if at > t.p.clock() {
		t.plan()
		return
	}
	t.view = t.viewNow()
	t.carryOut(t.m.Step(t.p.clock(), handover.Viewed{View: t.view}))
	t.carryOut(t.m.Tick(t.p.clock()))
	if next, ok := t.m.NextDeadline(); ok && next <= t.p.clock() {
		if t.spins++; t.spins > maxSpins {
			w.violate("liveness", "%s: the deadline %v of the slot %s does not move at %v", t.p.id, next, t.slot.Name, t.p.clock())
			return
		}
	} else {
		t.spins = 0
	}
	t.plan()
	t.slot.look()
}

// carryOut carries out what the machine wants. Nothing of it comes back to the machine before all is done.
func (t *seat) carryOut(effects []handover.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case handover.Ask:
			t.ask(e)
		case handover.Answer:
			t.answer(e)
		case handover.AcquireLease:
			t.trying = t.client.acquire(proposal{attempt: e.Attempt})
		case handover.ReleaseLease:
			if t.trying != nil {
				t.trying.giveUp()
				t.trying = nil
			}
			t.client.release(e.Attempt)
		case handover.Start:
			t.start(e)
		case handover.Stop:
			t.stop(e)
		case handover.Explain:
			t.p.w.note(t.p, "slot", "%s: %s", t.slot.Name, e.Text)
		}
	}
}

func (t *seat) answered(attempt uint64, o sbr.Outcome, s state, why string) {
	if o == sbr.Granted {
		t.grant = attempt
	}
	t.step(handover.LeaseAnswer{Attempt: attempt, Outcome: o, Token: s.record.Token, Why: why})
}

func (t *seat) released(attempt uint64, _ bool) { t.step(handover.LeaseReleased{Attempt: attempt}) }

func (t *seat) lost(why string) {
	attempt := t.grant
	t.p.w.note(t.p, "lost", "the lease of %s: %s", t.slot.Name, why)
	t.p.w.after(0, t.p, func() { t.step(handover.LeaseLost{Attempt: attempt, Why: why}) })
}

// eachSeat is about the places that the process has taken.
func (p *process) eachSeat(f func(*seat)) {
	for _, t := range p.seats {
		if t != nil {
			f(t)
		}
	}
}

// seated reports whether any of the process's machines has something left to end.
func (p *process) seated() bool {
	return slices.ContainsFunc(p.seats, func(t *seat) bool { return t != nil && !t.m.Finished() })
}
