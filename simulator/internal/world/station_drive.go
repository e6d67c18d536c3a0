package world

import (
	"time"

	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	core "github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func (t *station) works() bool { return t.p.drives() && t.stage == stationOpen }

func (t *station) trust() time.Duration {
	if at, ok := t.host.Until(); ok {
		return at - t.view.Sure
	}
	return t.set.rules.Trust
}

func (t *station) next() (at time.Duration, ok bool) {
	at, ok = t.host.NextDeadline()
	if t.chief == nil {
		return at, ok
	}
	if c, due := t.chief.NextDeadline(); due && (!ok || c < at) {
		return c, true
	}
	return at, ok
}

// tick lets the machines' deadline come.
func (t *station) tick() {
	t.expire()
	t.view = t.viewNow()
	t.toBoth(t.view)
	t.carryHost(t.host.Tick(t.p.clock()))
	if t.chief != nil {
		t.carryChief(t.chief.Tick(t.p.clock()))
	}
	t.stepped()
}

// look gives the machines the newest view.
func (t *station) look() {
	if !t.works() {
		return
	}
	t.expire()
	t.view = t.viewNow()
	t.toBoth(t.view)
	t.stepped()
}

func (t *station) toBoth(v core.View) {
	t.carryHost(t.host.Step(t.p.clock(), core.Viewed{View: v}))
	if t.chief != nil {
		t.carryChief(t.chief.Step(t.p.clock(), core.Viewed{View: v}))
	}
}

// step hands an event to the host, after the newest view, and carries out what it wants.
func (t *station) step(e core.Event) {
	if !t.works() {
		return
	}
	if _, down := e.(core.Downed); !down {
		t.look()
	}
	t.carryHost(t.host.Step(t.p.clock(), e))
	t.stepped()
}

// stepChief does so for the coordinator, where one runs here.
func (t *station) stepChief(e core.Event) {
	if !t.works() || t.chief == nil {
		return
	}
	t.look()
	if t.chief == nil {
		return
	}
	t.carryChief(t.chief.Step(t.p.clock(), e))
	t.stepped()
}

// stepped follows each step.
func (t *station) stepped() {
	t.set.look()
	if t.stage == stationOpen && t.host.Finished() {
		t.settled()
	}
	t.alarm.plan()
}

// expire tells the host of the leases that have run out by the process's own clock, before anything else is told: what rests under one must not start.
func (t *station) expire() {
	if !t.set.UseLease {
		return
	}
	for i := range t.berths {
		if b := &t.berths[i]; b.grant != 0 && !b.client.check() {
			attempt := b.grant
			b.grant = 0
			t.carryHost(t.host.Step(t.p.clock(), core.LeaseLost{Shard: i, Attempt: attempt, Why: "it has run out"}))
		}
	}
}

// tell hands the host what has become of a run or of a lease.
func (t *station) tell(b *berth, e core.Event) {
	shard := b.slot.index
	switch e := e.(type) {
	case core.RunEnded:
		e.Shard = shard
		t.step(e)
	case core.LeaseAnswer:
		e.Shard = shard
		t.step(e)
	case core.LeaseLost:
		e.Shard = shard
		t.step(e)
	case core.LeaseReleased:
		e.Shard = shard
		t.step(e)
	}
}

// carryHost carries out what the host wants. Nothing of it comes back to the machine before all is done.
func (t *station) carryHost(effects []core.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case core.Ask[message.Message]:
			t.ask(e.To, e.Message, false)
		case core.Answer[message.Message]:
			t.answer(e.Ref, e.Message)
		case core.AcquireLease:
			t.berths[e.Shard].acquire(e.Attempt)
		case core.ReleaseLease:
			t.berths[e.Shard].release(e.Attempt)
		case core.Start:
			t.start(e)
		case core.Stop:
			t.berths[e.Shard].stop(e.Run, e.Cause.String())
		case core.Explain:
			t.explain(string(e.Topic), e.Shard, e.Text)
		}
	}
}

// start starts a run, unless the process stood still since it was decided on and its lease has run out.
func (t *station) start(e core.Start) {
	b := &t.berths[e.Shard]
	if !t.set.UseLease || b.client.check() {
		b.start(core.Start{Run: e.Run, Token: e.Token, State: e.State, From: e.From})
		return
	}
	const restsFor = time.Second
	b.ending = e.Run
	t.p.w.after(0, t.p, func() {
		t.step(core.RunEnded{Shard: e.Shard, Run: e.Run, State: e.State, Rest: restsFor, Why: "the lease is lost"})
	})
}

// coordinate drives a coordinator for as long as a run of its slot lasts.
func (t *station) coordinate(r *run) {
	const within = 2 * time.Millisecond
	w := t.p.w
	w.after(w.between(0, within), t.p, func() {
		switch {
		case r.over || r.asked:
		case !t.works():
			r.end(core.RunEnded{Run: r.number, Again: true, Rest: time.Second, Why: "nothing drives it any more"})
		default:
			m, err := t.set.coordinator(t.p.id, r.token, t.p.clock())
			if err != nil {
				t.set.broken(6, "%s cannot coordinate %s: %v", t.p.id, t, err)
				return
			}
			t.chief = m
			t.look()
		}
	})
}

// carryChief carries out what the coordinator wants.
func (t *station) carryChief(effects []core.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case core.Ask[message.Message]:
			t.ask(e.To, e.Message, true)
		case core.Answer[message.Message]:
			t.answer(e.Ref, e.Message)
		case core.GiveUp:
			t.resigns(e)
		case core.Explain:
			t.explain(string(e.Topic), e.Shard, e.Text)
		}
	}
}

// resigns ends the run of a coordinator that is of no use any more. Another member goes on.
func (t *station) resigns(e core.GiveUp) {
	w, r := t.p.w, t.p.seats[t.set.chief.index].run
	w.note(t.p, "resigns", "%s: %s, term %d", t.set.Name, e.Why, e.Term)
	t.set.resigned++
	w.disturb()
	w.after(0, t.p, func() {
		if r != nil && !r.asked {
			r.end(core.RunEnded{Run: r.number, Newer: e.Term, Again: true, Rest: time.Second, Why: "resigned"})
		}
	})
}

func (t *station) explain(topic string, shard int, text string) {
	t.p.w.note(t.p, "shards", "%s, %s, %d: %s", t.set.Name, topic, shard, text)
}

// ask sends a question to another member, to this member's own machines, or to everybody.
func (t *station) ask(to sbr.ID, m message.Message, chief bool) {
	wire := t.written(&m)
	t.p.w.note(t.p, "asks", "%s: %s of %s, number %d", t.set.Name, m.Kind.String(), whom(to), m.Number)
	if to == "" || to == t.p.id {
		q := &inquiry{by: &t.talk, wire: wire, chief: chief}
		t.p.w.after(0, t.p, func() {
			if t.works() {
				t.talk.hear(q)
			}
		})
	}
	if to != t.p.id {
		t.talk.ask(to, wire, chief)
	}
}

// answer answers a question.
func (t *station) answer(ref uint64, m message.Message) {
	q := t.talk.open(ref)
	if q == nil {
		t.set.broken(6, "%s answers a question about %s that nobody has asked, or twice", t.p.id, t)
		return
	}
	t.p.w.note(t.p, "answers", "%s: %s to %s, number %d", t.set.Name, m.Kind.String(), q.by.p.id, m.Number)
	t.talk.answer(q, t.written(&m))
}

// written is the wire form of a message, which must fit into one question or answer.
func (t *station) written(m *message.Message) []byte {
	wire := message.Append(nil, m)
	if len(wire) > message.MaxSize {
		t.set.broken(6, "%s says more about %s than one message carries: %d bytes, %s", t.p.id, t, len(wire), m.Kind.String())
	}
	return wire
}

func spoken(wire []byte) message.Message {
	m, err := message.Decode(wire)
	if err != nil {
		panic(err) // it was encoded by the same package
	}
	return m
}

// asked hands a question to the machine that it is for.
func (t *station) asked(ref uint64, q *inquiry) {
	if !t.works() {
		return
	}
	m, from := spoken(q.wire), q.by.p.id
	t.table.Learn(message.KeyOf(from), &m)
	switch m.Kind {
	case message.Report, message.Orders, message.HandOver:
		t.step(core.Asked[message.Message]{Ref: ref, From: from, Message: m})
	case message.State:
		t.stepChief(core.Asked[message.Message]{Ref: ref, From: from, Message: m})
	case message.Resigned:
		t.step(core.Asked[message.Message]{From: from, Message: m})
		t.stepChief(core.Asked[message.Message]{From: from, Message: m})
	}
}

// answered hands an answer to the machine that has asked.
func (t *station) answered(q *inquiry, from sbr.ID, wire []byte) {
	unserved := wire == nil
	if unserved {
		wire = q.wire
	}
	m := spoken(wire)
	if q.chief {
		t.stepChief(core.Answered[message.Message]{From: from, Message: m, Unserved: unserved})
	} else {
		t.step(core.Answered[message.Message]{From: from, Message: m, Unserved: unserved})
	}
}
