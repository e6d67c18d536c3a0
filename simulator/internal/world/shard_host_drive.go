package world

import (
	"time"

	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	core "github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func (t *shardHost) works() bool { return t.p.drives() && t.stage == hostOpen }

func (t *shardHost) until() (at time.Duration, ok bool) { return t.host.Until() }

func (t *shardHost) stepped() {
	t.set.look()
	if t.stage == hostOpen && t.host.Finished() {
		t.settled()
	}
	t.alarm.plan()
}

func (t *shardHost) ticked() { t.stepped() }

// expire tells the host of the leases that have run out by the process's own clock, before anything else is
// told: what rests under one must not start.
func (t *shardHost) expire() {
	if !t.set.UseLease {
		return
	}
	for i := range t.executors {
		if b := &t.executors[i]; b.grant != 0 && !b.client.check() {
			attempt := b.grant
			b.grant = 0
			t.carryOut(hostMachine, t.host.Step(t.p.clock(), core.LeaseLost{Shard: i, Attempt: attempt, Why: "it has run out"}))
		}
	}
}

func (t *shardHost) carryOut(machine int, effects []core.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case core.Ask[message.Message]:
			t.ask(e.To, e.Message, machine == coordinatorMachine)
		case core.Answer[message.Message]:
			t.answer(e.Ref, e.Message)
		case core.AcquireLease:
			t.executors[e.Shard].carry(e)
		case core.ReleaseLease:
			t.executors[e.Shard].carry(e)
		case core.Stop:
			t.executors[e.Shard].carry(e)
		case core.Start:
			t.start(e)
		case core.GiveUp:
			t.resigns(e)
		case core.Explain:
			t.p.w.note(t.p, "shards", "%s, %s, %d: %s", t.set.Name, string(e.Topic), e.Shard, e.Text)
		}
	}
}

// start starts a run, unless the process stood still since it was decided on and its lease has run out.
func (t *shardHost) start(e core.Start) {
	b := &t.executors[e.Shard]
	if !t.set.UseLease || b.client.check() {
		b.start(core.Start{Run: e.Run, Token: e.Token, State: e.State, From: e.From})
		return
	}
	const restsFor = time.Second
	b.ending = e.Run
	t.p.w.after(0, t.p, func() {
		t.step(hostMachine, core.RunEnded{Shard: e.Shard, Run: e.Run, State: e.State, Rest: restsFor, Why: "the lease is lost"})
	})
}

// coordinate drives a coordinator for as long as a run of its slot lasts.
func (t *shardHost) coordinate(r *run) {
	const within = 2 * time.Millisecond
	w := t.p.w
	w.after(w.between(0, within), t.p, func() {
		switch {
		case r.over || r.asked:
		case !t.works():
			r.end(core.RunEnded{Run: r.number, Again: true, Rest: time.Second, Why: "nothing drives it any more"})
		case r.token < 1 || r.token > message.MaxTerm:
			t.set.w.violate("Y6", "%s cannot coordinate %s: the token %d is no term", t.p.id, t, r.token)
		default:
			t.machines[coordinatorMachine] = t.set.coordinator(t.p.id, r.token, t.p.clock())
			t.look()
		}
	})
}

// endCoordinator forgets the coordinator's machine.
func (t *shardHost) endCoordinator() { t.machines[coordinatorMachine] = nil }

// resigns ends the run of a coordinator that is of no use any more. Another member goes on.
func (t *shardHost) resigns(e core.GiveUp) {
	w, r := t.p.w, t.p.slotMembers[t.set.coordSlot.index].run
	w.note(t.p, "resigns", "%s: %s, term %d", t.set.Name, e.Why, e.Term)
	t.set.resigned++
	w.disturb()
	w.after(0, t.p, func() {
		if r != nil && !r.asked {
			r.end(core.RunEnded{Run: r.number, Newer: e.Term, Again: true, Rest: time.Second, Why: "resigned"})
		}
	})
}

// ask sends a question to another member, to this member's own machines, or to all members.
func (t *shardHost) ask(to sbr.ID, m message.Message, byCoordinator bool) {
	wire := t.written(&m)
	t.p.w.note(t.p, "asks", "%s: %s of %s, number %d", t.set.Name, m.Kind.String(), whom(to), m.Number)
	if to == "" || to == t.p.id {
		q := &question{by: &t.requests, wire: wire, byCoordinator: byCoordinator}
		t.p.w.after(0, t.p, func() {
			if t.works() {
				t.requests.hear(q)
			}
		})
	}
	if to != t.p.id {
		t.requests.ask(to, wire, byCoordinator)
	}
}

// answer answers a question.
func (t *shardHost) answer(ref uint64, m message.Message) {
	q := t.requests.open(ref)
	if q == nil {
		t.set.w.violate("Y6", "%s answers a question about %s that nobody has asked, or twice", t.p.id, t)
		return
	}
	t.p.w.note(t.p, "answers", "%s: %s to %s, number %d", t.set.Name, m.Kind.String(), q.by.p.id, m.Number)
	t.requests.answer(q, t.written(&m))
}

// written is the wire form of a message, which must fit into one question or answer.
func (t *shardHost) written(m *message.Message) []byte {
	wire := message.Append(nil, m)
	if len(wire) > message.MaxSize {
		t.set.w.violate("Y6", "%s says more about %s than one message carries: %d bytes, %s", t.p.id, t, len(wire), m.Kind.String())
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
func (t *shardHost) asked(ref uint64, q *question) {
	if !t.works() {
		return
	}
	m, from := spoken(q.wire), q.by.p.id
	switch m.Kind {
	case message.Report, message.Orders, message.HandOver:
		t.step(hostMachine, core.Asked[message.Message]{Ref: ref, From: from, Message: m})
	case message.State, message.Resigned:
		t.step(coordinatorMachine, core.Asked[message.Message]{Ref: ref, From: from, Message: m})
		t.step(hostMachine, core.Asked[message.Message]{From: from, Message: m})
	}
}

// answered hands an answer to the machine that has asked.
func (t *shardHost) answered(q *question, from sbr.ID, wire []byte) {
	unserved := wire == nil
	if unserved {
		wire = q.wire
	}
	m := spoken(wire)
	to := hostMachine
	if q.byCoordinator {
		to = coordinatorMachine
	}
	t.step(to, core.Answered[message.Message]{From: from, Message: m, Unserved: unserved})
}
