package world

import (
	"time"

	"github.com/serf-sbr/serf-sbr/internal/shards/host"
	core "github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// shardHost is where shards of a type run on one process: the host's machine, that of the coordinator while
// it runs here, and what drives them as package sharding does.
type shardHost struct {
	driver
	set       *shards
	host      *host.Machine // without the role it is offered nothing, and says that it runs nothing
	executors []executor    // by the shard
	stage     hostStage
}

// The numbers of a shard host's machines.
const (
	hostMachine = iota
	coordinatorMachine
)

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
	t := newShardHost(p, s, before)
	p.shardHosts[s.index] = t
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

func newShardHost(p *process, s *shards, before memory) *shardHost {
	rules := s.rules
	rules.Self, rules.Known, rules.Gone = p.id, before.known, before.hosts
	m := host.New(rules, p.clock())
	t := &shardHost{set: s, host: m, executors: make([]executor, s.Count)}
	t.driver.init(p, t, len(p.w.slots)+s.index, s.HandOverRetryInterval, m)
	for i := range t.executors {
		t.executors[i].init(p, s.slots[i], &t.driver)
	}
	return t
}

// shut closes the shard host in good order: what runs is handed over first.
func (t *shardHost) shut() {
	if t.p.runs() {
		t.p.w.disturb()
		t.step(hostMachine, core.Resign{Patience: time.Duration(t.set.NumberOfRetries) * t.set.HandOverRetryInterval})
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
		member := t.p.slotMembers[t.set.coordSlot.index]
		if member == nil {
			t.over()
			return
		}
		if r := member.run; r != nil {
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
	for i := range t.executors {
		t.executors[i].closeLease()
	}
	member := p.slotMembers[t.set.coordSlot.index]
	if member != nil {
		member.closed = true
		member.closeLease()
		p.slotMembers[t.set.coordSlot.index] = nil
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

// shardHost is the process's part in the shards of a type.
func (p *process) shardHost(s *shards) *shardHost { return p.shardHosts[s.index] }

// eachShardHost is about the shardHosts that are not closed.
func (p *process) eachShardHost(f func(*shardHost)) {
	for _, t := range p.shardHosts {
		if t != nil && t.stage != hostClosed {
			f(t)
		}
	}
}

// hosts reports whether the others know that the process would run shards of a type.
func (p *process) hosts(s *shards) bool {
	return p.shardHosts != nil && p.shardHosts[s.index] != nil && p.shardHosts[s.index].offered
}

func (t *shardHost) viewNow() core.View {
	v := t.p.viewNow(func(q *process) bool { return q.hosts(t.set) })
	v.Armed = v.Armed && t.p.r.State() != sbr.StateDown
	return v
}

// downed is the moment at which the process was downed, and promise Y5.
func (t *shardHost) downed(why string) {
	t.step(hostMachine, core.Downed{Why: why})
	for i := range t.executors {
		t.executors[i].downed()
	}
}

// String is for people.
func (t *shardHost) String() string { return "the shards " + t.set.Name }
