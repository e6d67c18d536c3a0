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
	executor
	driver
	m *handover.Machine
	// closed says that nothing of it is left, although the process lives on.
	closed bool
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
	p.slotMembers = make([]*slotMember, len(w.slots))
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
	p.shardHosts = make([]*shardHost, len(w.shards))
	for _, s := range w.shards {
		w.after(w.between(0, startsWithin), p, func() { p.open(s, memory{}) })
	}
}

// joinSlot makes the process take part in a slot, and offer to run it.
func (p *process) joinSlot(s *slot, gone []core.Departure) {
	t := newSlotMember(p, s, gone)
	p.slotMembers[s.index] = t
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

func newSlotMember(p *process, s *slot, gone []core.Departure) *slotMember {
	rules := s.rules
	rules.Self, rules.Born, rules.Gone = p.id, p.self.Born, gone
	if s.coordinates != nil { // it may be the second one of its process
		rules.FirstRound = uint64(p.w.now / time.Microsecond)
		rules.Floor = p.w.floor(rules.CounterBits)
	}
	m := handover.New(rules, p.clock())
	t := &slotMember{m: m}
	t.driver.init(p, t, s.index, s.HandOverRetryInterval, m)
	t.executor.init(p, s, &t.driver)
	t.look()
	return t
}

func (t *slotMember) works() bool { return t.p.drives() && !t.closed }

func (t *slotMember) until() (at time.Duration, ok bool) { return t.m.Until() }

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
	if c := t.slot.coordinates; c != nil {
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
	p.eachSlotMember(func(t *slotMember) {
		if t.slot.coordinates == nil {
			t.resign()
		}
	})
	p.eachShardHost((*shardHost).shut)
	if !p.unfinished() {
		p.goodbye()
	}
}

func (t *slotMember) resign() {
	t.step(0, core.Resign{Patience: time.Duration(t.slot.NumberOfRetries) * t.slot.HandOverRetryInterval})
}

func (p *process) goodbye() {
	if p.stage == stageRunning {
		p.w.disturb()
		p.step(sbr.Left{})
		p.leave()
	}
}

// String is for people.
func (t *slotMember) String() string { return t.slot.String() }

func (t *slotMember) carryOut(_ int, effects []core.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case core.Ask[handover.Message]:
			t.ask(e)
		case core.Answer[handover.Message]:
			t.answer(e)
		case core.Start:
			t.start(e)
		case core.Explain:
			t.slot.w.note(t.p, "slot", "%s: %s", t.slot.Name, e.Text)
		default:
			t.carry(e)
		}
	}
}

// ask sends a question.
func (t *slotMember) ask(e core.Ask[handover.Message]) {
	t.p.w.note(t.p, "asks", "%s: %s of %s, round %d", t.slot.Name, e.Message.Kind.String(), whom(e.To), e.Message.Round)
	t.requests.ask(e.To, handover.AppendMessage(nil, e.Message), false)
}

// answer answers a question.
func (t *slotMember) answer(e core.Answer[handover.Message]) {
	q := t.requests.open(e.Ref)
	if q == nil {
		t.slot.broken(6, "%s answers a question of %s that nobody has asked, or twice", t.p.id, t.slot)
		return
	}
	t.p.w.note(t.p, "answers", "%s: %s to %s, round %d", t.slot.Name, e.Message.Kind.String(), q.by.p.id, e.Message.Round)
	t.requests.answer(q, handover.AppendMessage(nil, e.Message))
}

func (t *slotMember) asked(ref uint64, q *question) {
	t.step(0, core.Asked[handover.Message]{Ref: ref, From: q.by.p.id, Message: said(q.wire)})
}

func (t *slotMember) answered(q *question, from sbr.ID, wire []byte) {
	e := core.Answered[handover.Message]{From: from, Unserved: wire == nil}
	if e.Unserved {
		e.Message.Round = said(q.wire).Round
	} else {
		e.Message = said(wire)
	}
	t.step(0, e)
}

// said is a message that a slot member has sent.
func said(wire []byte) handover.Message {
	m, err := handover.Decode(wire)
	if err != nil {
		panic(err) // it was encoded by the same package
	}
	return m
}

// eachSlotMember is about the process's parts in slots.
func (p *process) eachSlotMember(f func(*slotMember)) {
	for _, t := range p.slotMembers {
		if t != nil {
			f(t)
		}
	}
}

// eachDriver is about all that drives machines on the process.
func (p *process) eachDriver(f func(*driver)) {
	p.eachSlotMember(func(t *slotMember) { f(&t.driver) })
	p.eachShardHost(func(t *shardHost) { f(&t.driver) })
}

// eachExecutor is about everything that may run on the process.
func (p *process) eachExecutor(f func(*executor)) {
	p.eachSlotMember(func(t *slotMember) { f(&t.executor) })
	p.eachShardHost(func(t *shardHost) {
		for i := range t.executors {
			f(&t.executors[i])
		}
	})
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
	return slices.ContainsFunc(p.slotMembers, func(t *slotMember) bool { return t != nil && !t.m.Finished() }) ||
		slices.ContainsFunc(p.shardHosts, func(t *shardHost) bool { return t != nil && t.stage != hostClosed })
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
	if p.noticing || len(p.slotMembers) == 0 {
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

func (t *slotMember) viewNow() core.View {
	v := t.p.viewNow(func(q *process) bool { return q.offers(t.slot) })
	v.Verdict = t.p.r.Verdict().Token
	return v
}

// viewNow is what the process knows at this moment; offers says which members would run what it is about. A
// member that was leaving when it failed has left, as Serf has it.
func (p *process) viewNow(offers func(*process) bool) core.View {
	v := core.View{Armed: p.r.State() != sbr.StateArming, Sure: p.sureAt()}
	for _, m := range p.r.Snapshot().Members {
		leaving := m.Status == sbr.Leaving || m.Status == sbr.Exiting || m.ID == p.id && p.stage == stageLeaving
		if !leaving || !m.Unreachable {
			q, down := p.w.byID[m.ID], m.Status == sbr.Down
			v.Peers = append(v.Peers, core.Peer{
				ID: m.ID, Name: m.Name, Born: m.Born, Candidate: offers(q) || down && q.young(),
				Leaving: leaving, Down: down, Unreachable: m.Unreachable,
			})
		}
	}
	return v
}

// young reports whether what the process offers may not have reached the others yet.
func (p *process) young() bool { return p.w.now-p.began < wire.OfferSpread }

// offers reports whether the others know that the process would run a slot.
func (p *process) offers(s *slot) bool {
	return p.slotMembers != nil && p.slotMembers[s.index] != nil && p.slotMembers[s.index].offered
}
