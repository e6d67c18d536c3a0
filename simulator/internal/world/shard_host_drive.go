package world

import (
	"time"

	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	core "github.com/serf-sbr/serf-sbr/internal/slot"
)

func (t *shardHost) works() bool { return t.p.drives() && t.stage == hostOpen }

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
			t.carryOut(t.host, t.host.Step(t.p.clock(), core.LeaseLost{Shard: i, Attempt: attempt, Why: "it has run out"}))
		}
	}
}

func (t *shardHost) explained(e core.Explain) {
	t.p.w.note(t.p, "shards", "%s, %s, %d: %s", t.set.Name, string(e.Topic), e.Shard, e.Text)
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
			t.second = t.set.coordinator(t.p.id, r.token, t.p.clock())
			t.look()
		}
	})
}

// endCoordinator forgets the coordinator's machine.
func (t *shardHost) endCoordinator() { t.second = nil }

// gaveUp ends the run of a coordinator that is of no use any more. Another member goes on.
func (t *shardHost) gaveUp(e core.GiveUp) {
	w, r := t.p.w, t.p.slotMember(t.set.coordSlot).executors[0].run
	w.note(t.p, "resigns", "%s: %s, term %d", t.set.Name, e.Why, e.Term)
	t.set.resigned++
	w.disturb()
	w.after(0, t.p, func() {
		if r != nil && !r.asked {
			r.end(core.RunEnded{Run: r.number, Newer: e.Term, Again: true, Rest: time.Second, Why: "resigned"})
		}
	})
}

// asked hands a question to the machine that it is for.
func (t *shardHost) asked(ref uint64, q *question) {
	if !t.works() {
		return
	}
	m, from := said(q.wire, message.Decode), q.by.p.id
	switch m.Kind {
	case message.Report, message.Orders, message.HandOver:
		t.step(t.first, core.Asked[message.Message]{Ref: ref, From: from, Message: m})
	case message.State, message.Resigned:
		t.step(t.second, core.Asked[message.Message]{Ref: ref, From: from, Message: m})
		t.step(t.first, core.Asked[message.Message]{From: from, Message: m})
	}
}
