package world

import (
	"time"

	"github.com/serf-sbr/serf-sbr/internal/shards/host"
	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	core "github.com/serf-sbr/serf-sbr/internal/slot"
)

// shardHost is where shards of a type run on one process: the host's machine, that of the coordinator while
// it runs here, and what drives them as package sharding does.
type shardHost struct {
	driver
	set   *shards
	host  *host.Machine // without the role it is offered nothing, and says that it runs nothing
	stage hostStage
}

// hostStage is where a shard host is in its life.
type hostStage uint8

const (
	hostOpen    hostStage = iota
	hostEnding            // nothing runs any more, and nobody answers; the offer is being withdrawn
	hostParting           // nobody listens any more; the coordinator's part is handed over
	hostClosed
)

// open makes the process host shards, offer to, and then take part among the members that may coordinate.
func (p *process) open(s *shards, before memory) {
	const thenWithin = 20 * time.Millisecond
	w := p.w
	if p.stage != stageRunning || p.resigned {
		return
	}
	rules := s.rules
	rules.Self, rules.Known, rules.Gone = p.id, before.known, before.hosts
	t := &shardHost{set: s, host: host.New(rules, p.clock())}
	t.init(p, t, len(w.slots)+s.index, &s.Rules, t.host, s.slots...)
	w.disturb()
	t.look()
	if !s.coordSlot.runsOn(p.node) {
		return
	}
	w.spreadOffer(func() { t.offered = t.stage == hostOpen })
	w.after(w.between(0, thenWithin), p, func() {
		if t.stage == hostOpen && p.stage == stageRunning {
			p.joinSlot(s.coordSlot, before.coordinators)
		}
	})
	if s.ReopensAfter > 0 {
		w.after(w.between(s.ReopensAfter/2, s.ReopensAfter), p, t.shut)
	}
}

// shut closes the shard host in good order: what runs is handed over first.
func (t *shardHost) shut() {
	if t.p.runs() {
		t.p.w.disturb()
		t.resign()
	}
}

// settled goes on once nothing runs here and nothing will: the offer is withdrawn, then nobody listens, then
// the coordinator's part is handed over.
func (t *shardHost) settled() {
	const withdrawsWithin = 300 * time.Millisecond
	w := t.p.w
	t.stage = hostEnding
	t.endCoordinator()
	w.after(w.between(0, withdrawsWithin), t.p, func() {
		t.offered = false
		w.offers()
		t.stage = hostParting
		member := t.p.slotMember(t.set.coordSlot)
		if member == nil {
			t.over()
			return
		}
		if r := member.executors[0].run; r != nil {
			r.end(core.RunEnded{Run: r.number, Again: true, Rest: time.Second, Why: "nothing drives it any more"})
		}
		member.resign()
	})
}

// over is called when nothing is left of the coordinator's part either. The manager may be opened again.
func (t *shardHost) over() {
	const opensWithin = 5 * time.Second
	if t.stage != hostParting {
		return // the coordinator has ended by itself
	}
	w, p := t.p.w, t.p
	t.stage = hostClosed
	t.close()
	member := p.slotMember(t.set.coordSlot)
	if member != nil {
		member.close()
	}
	if p.resigned {
		p.mayGo()
		return
	}
	w.after(w.between(0, opensWithin), p, func() { p.open(t.set, t.remembers(member)) })
}

// memory is what a manager has of the previous manager in the same process.
type memory struct {
	known               host.Known
	hosts, coordinators []core.Departure // whose margins are not over, as hosts and as coordinators
}

// remembers is what the next manager has. The provider remembers the members that are gone, also meanwhile;
// here the machines do, which look once more.
func (t *shardHost) remembers(member *slotMember) memory {
	now := t.p.clock()
	t.host.Step(now, core.Viewed{View: t.viewNow()})
	m := memory{known: t.host.Known(), hosts: t.host.Departed}
	if member != nil {
		member.m.Step(now, core.Viewed{View: member.viewNow()})
		m.coordinators = member.m.Departed
	}
	return m
}

// shardHost is the process's part in the shards of a type; nil: it has none, or it is closed.
func (p *process) shardHost(s *shards) *shardHost {
	if t := p.driver(len(p.w.slots) + s.index); t != nil {
		return t.of.(*shardHost)
	}
	return nil
}

// String is for people.
func (t *shardHost) String() string { return "the shards " + t.set.Name }

func (t *shardHost) name() string { return t.set.Name }

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
			t.carryOut(t.host, t.host.Step(t.p.clock(),
				core.LeaseLost{Shard: i, Attempt: attempt, Why: "it has run out"}))
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
