package world

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/internal/handover"
	core "github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// slotMember is one process's part in a slot: its machine, with what drives it.
type slotMember struct {
	driver
	slot *slot
	m    *handover.Machine
}

// startSlots lets the process take part in each slot, a moment after its resolver has started, and the others
// hear of it.
func (p *process) startSlots() {
	const startsWithin = 500 * time.Millisecond
	w := p.w
	if len(w.slots) == 0 {
		return
	}
	w.disturb()
	p.sure = -1
	p.drivers = make([]*driver, len(w.slots)+len(w.shards))
	for _, s := range w.slots {
		if !s.runsOn(p.node) || s.coordinates != nil {
			continue
		}
		w.after(w.between(0, startsWithin), p, func() {
			if p.stage == stageRunning && !p.resigned {
				p.joinSlot(s, nil)
			}
		})
	}
	for _, s := range w.shards {
		w.after(w.between(0, startsWithin), p, func() { p.open(s, memory{}) })
	}
}

// joinSlot makes the process take part in a slot, and offer to run it.
func (p *process) joinSlot(s *slot, gone []core.Departure) {
	rules := s.rules
	rules.Self, rules.Born, rules.Gone = p.id, p.self.Born, gone
	if s.coordinates != nil { // it may be the second one of its process
		rules.FirstRound = uint64(p.w.now / time.Microsecond)
		rules.Floor = p.w.floor()
	}
	t := &slotMember{slot: s, m: handover.New(rules, p.clock())}
	t.init(p, t, s.index, &s.Rules, t.m, s)
	t.look()
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

// slotMember is the process's part in a slot; nil: it has none.
func (p *process) slotMember(s *slot) *slotMember {
	if t := p.driver(s.index); t != nil {
		return t.of.(*slotMember)
	}
	return nil
}

func (t *slotMember) works() bool { return t.p.drives() && t.p.drivers[t.topic] == &t.driver }

func (t *slotMember) viewNow() core.View {
	v := t.driver.viewNow()
	v.Verdict = t.p.r.Verdict().Token
	return v
}

// expire is about shards: a singleton's machine learns of a lost lease by the client.
func (t *slotMember) expire() {}

func (t *slotMember) stepped() {
	t.alarm.plan()
	t.slot.look()
	if t.m.Finished() {
		t.finished()
	}
}

func (t *slotMember) ticked() { t.slot.look() }

// finished withdraws the offer to run the slot, and lets the process go that has waited for that.
func (t *slotMember) finished() {
	const toldWithin = 300 * time.Millisecond
	w, p := t.p.w, t.p
	if t.offered {
		w.after(w.between(0, toldWithin), nil, func() {
			t.offered = false
			w.offers()
		})
	}
	if c := t.slot.coordinates; c != nil && t.works() {
		p.shardHost(c).over()
	}
	p.mayGo()
}

// mayGo lets the process leave that has waited until nothing runs on it.
func (p *process) mayGo() {
	const lastWords = 100 * time.Millisecond
	if p.resigned && !p.unfinished() {
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
	p.eachDriver(func(t *driver) {
		if t.executors[0].slot.coordinates == nil { // that of shards is handed over after them
			t.resign()
		}
	})
	if !p.unfinished() {
		p.goodbye()
	}
}

func (p *process) goodbye() {
	if p.stage == stageRunning {
		p.w.disturb()
		p.step(sbr.Left{})
		p.shows(sbr.StateUp) // who is gone waits for nothing
		p.leave()
	}
}

// String is for people.
func (t *slotMember) String() string { return t.slot.String() }

func (t *slotMember) name() string { return t.slot.Name }

func (t *slotMember) explained(e core.Explain) {
	t.p.w.note(t.p, "slot", "%s: %s", t.slot.Name, e.Text)
}

// gaveUp is about shards.
func (t *slotMember) gaveUp(core.GiveUp) {}

func (t *slotMember) asked(ref uint64, q *question) {
	t.step(t.first, core.Asked[handover.Message]{Ref: ref, From: q.by.p.id,
		Message: said(q.wire, handover.Decode)})
}

// eachClient is about all ways of the process to a lease.
func (p *process) eachClient(f func(*client)) {
	f(p.client)
	p.eachExecutor(func(t *executor) {
		if t.client != nil {
			f(t.client)
		}
	})
}

// unfinished reports whether any of the process's machines has something left to end.
func (p *process) unfinished() bool {
	return slices.ContainsFunc(p.drivers, func(t *driver) bool {
		if t == nil {
			return false
		}
		_, shards := t.of.(*shardHost)
		return shards || !t.first.Finished()
	})
}

// toldWithin is how long what runs on top of a resolver needs to hear of a change.
const toldWithin = 2 * time.Millisecond

// assure notes, before the resolver learns something, that until now nothing was amiss.
func (p *process) assure() {
	if p.certain {
		p.sure = p.clock()
	}
}

// weigh looks, after the resolver has learnt something, whether anything is amiss, and lets the slots hear of
// what has changed.
func (p *process) weigh() {
	if len(p.w.slots) == 0 {
		return
	}
	p.certain = p.r.State() == sbr.StateUp && !p.paused && p.stage == stageRunning
	p.assure()
	p.refreshViews()
}

// sureAt is the last moment at which nothing was amiss, by the process's clock; negative: there was none.
func (p *process) sureAt() time.Duration {
	if p.certain {
		return p.clock()
	}
	return p.sure
}

// refreshViews lets the process's slots look around soon.
func (p *process) refreshViews() {
	if p.noticing || len(p.drivers) == 0 {
		return
	}
	p.noticing = true
	p.w.after(p.w.between(0, toldWithin), p, func() {
		p.noticing = false
		p.eachDriver((*driver).notice)
	})
}

// offers lets all members hear of a change of the members that would run a slot.
func (w *World) offers() {
	for _, p := range w.procs {
		if p.stage == stageRunning {
			p.refreshViews()
		}
	}
}

// young reports whether what the process offers may not have reached the others yet.
func (p *process) young() bool { return p.w.now-p.began < wire.OfferSpread }
