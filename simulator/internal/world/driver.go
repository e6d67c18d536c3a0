package world

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/handover"
	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	core "github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// machine is a pure machine that runs on top of a resolver.
type machine interface {
	Step(now time.Duration, e core.Event) []core.Effect
	NextDeadline() (at time.Duration, ok bool)
}

// runner is a machine with slots.
type runner interface {
	machine
	// Until is the end of runs without a lease, as of the newest view.
	Until() (at time.Duration, ok bool)
	Finished() bool
}

// driver drives the machines of one process's part in a slot, or in shards, as package drive does: it shows
// them the newest view before anything else, hands them events and deadlines, and carries out what they want.
// Nothing of that comes back to a machine before all is done.
type driver struct {
	alarm
	of    driven
	topic int           // of its questions: the number of the slot, or after the slots that of the shards
	began time.Duration // when it was opened
	rules *core.Rules
	first runner
	// second is the machine of a coordinator; nil: none runs here.
	second machine
	// executors run the slots, by the shard.
	executors []executor
	// offered says that the others know that the member would run the slot, or shards.
	offered bool
	// questions are the unanswered ones, by reference.
	questions map[uint64]*question
	refs      uint64

	view  core.View // the newest that the machines were given
	state sbr.State // of the resolver, when it was last told of a change
}

// driven is what a driver drives: a slotMember or a shardHost.
type driven interface {
	// works reports whether the process still drives it.
	works() bool
	viewNow() core.View
	// expire tells of leases that have run out by the process's own clock.
	expire()
	// asked hands on a question of another member, or of this one.
	asked(ref uint64, q *question)
	// explained hears what a machine explains, gaveUp that the second one ends its run.
	explained(e core.Explain)
	gaveUp(e core.GiveUp)
	// stepped follows each step, ticked each tick.
	stepped()
	ticked()
	// name is that of the slot or of the shards, String is for people.
	name() string
	String() string
}

// init begins to drive a machine that runs slots, unless it is stopped already.
func (t *driver) init(p *process, of driven, topic int, rules *core.Rules, m runner, slots ...*slot) {
	t.alarm, t.of, t.topic, t.began, t.rules, t.first = alarm{p: p, of: t}, of, topic, p.w.now, rules, m
	t.questions, t.executors = make(map[uint64]*question), make([]executor, len(slots))
	for i, s := range slots {
		t.executors[i].init(t, s, i)
	}
	p.drivers[topic] = t
}

// close ends what is left of a driver, although the process lives on.
func (t *driver) close() {
	for i := range t.executors {
		t.executors[i].closeLease()
	}
	t.p.drivers[t.topic] = nil
}

// drives reports whether the process drives what runs on top of its resolver.
func (p *process) drives() bool { return p.stage != stageStopped && p.stage != stageBooting }

// driver returns what the process has of a topic; nil: nothing.
func (p *process) driver(topic int) *driver {
	if len(p.drivers) == 0 {
		return nil
	}
	return p.drivers[topic]
}

// eachDriver is about all that drives machines on the process.
func (p *process) eachDriver(f func(*driver)) {
	for _, t := range p.drivers {
		if t != nil {
			f(t)
		}
	}
}

// eachExecutor is about everything that may run on the process.
func (p *process) eachExecutor(f func(*executor)) {
	p.eachDriver(func(t *driver) {
		for i := range t.executors {
			f(&t.executors[i])
		}
	})
}

// both are the machines that run now.
func (t *driver) both() []machine {
	if t.second == nil {
		return []machine{t.first}
	}
	return []machine{t.first, t.second}
}

// step hands an event to a machine that runs, after the newest view.
func (t *driver) step(m machine, e core.Event) {
	if !t.of.works() || m == nil {
		return
	}
	if _, down := e.(core.Downed); !down {
		t.look()
	}
	if m == t.first || m == t.second { // a coordinator may have ended meanwhile
		t.carryOut(m, m.Step(t.p.clock(), e))
		t.of.stepped()
	}
}

// look gives the machines the newest view.
func (t *driver) look() {
	if t.of.works() {
		t.show()
		t.of.stepped()
	}
}

func (t *driver) show() {
	t.of.expire()
	t.view = t.of.viewNow()
	for _, m := range t.both() {
		t.carryOut(m, m.Step(t.p.clock(), core.Viewed{View: t.view}))
	}
}

// notice looks around if anything has changed.
func (t *driver) notice() {
	v, state := t.of.viewNow(), t.p.r.State()
	if state != t.state || v.Verdict != t.view.Verdict || !slices.Equal(v.Peers, t.view.Peers) {
		t.state = state
		t.look()
	}
}

// viewNow is what the process knows at this moment. A member that was leaving when it failed has left, as
// Serf has it.
func (t *driver) viewNow() core.View {
	p := t.p
	v := core.View{Armed: p.r.State() != sbr.StateArming && p.r.State() != sbr.StateDown, Sure: p.sureAt()}
	members := p.r.Snapshot().Members
	v.Peers = make([]core.Peer, 0, len(members))
	for _, m := range members {
		its := p.w.byID[m.ID]
		offers := its.driver(t.topic)
		q := core.PeerOf(&m, offers != nil && offers.offered || m.Status == sbr.Down && its.young())
		if q.Leaving = q.Leaving || m.ID == p.id && p.stage == stageLeaving; !q.Leaving || !q.Unreachable {
			v.Peers = append(v.Peers, q)
		}
	}
	return v
}

// next is the machines' earliest deadline.
func (t *driver) next() (at time.Duration, ok bool) {
	for _, m := range t.both() {
		if due, is := m.NextDeadline(); is && (!ok || due < at) {
			at, ok = due, true
		}
	}
	return at, ok
}

func (t *driver) works() bool { return t.of.works() }

// tick lets the machines' deadline come.
func (t *driver) tick() {
	t.show()
	for _, m := range t.both() {
		t.carryOut(m, m.Step(t.p.clock(), core.Tick{}))
	}
	t.of.ticked()
}

func (t *driver) String() string { return t.of.String() }

// resign lets the others ask for what runs here, and takes nothing again.
func (t *driver) resign() { t.step(t.first, core.Resign{Patience: t.rules.Patience()}) }

// carryOut carries out what a machine wants.
func (t *driver) carryOut(m machine, effects []core.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case core.Ask[handover.Message]:
			t.ask(m, e.To, e.Message.Kind, e.Message.Round, handover.AppendMessage(nil, e.Message))
		case core.Ask[message.Message]:
			t.ask(m, e.To, e.Message.Kind, e.Message.Number, t.written(&e.Message))
		case core.Answer[handover.Message]:
			t.answer(e.Ref, e.Message.Kind, e.Message.Round, handover.AppendMessage(nil, e.Message))
		case core.Answer[message.Message]:
			t.answer(e.Ref, e.Message.Kind, e.Message.Number, t.written(&e.Message))
		case core.AcquireLease:
			t.executors[e.Shard].acquire(e.Attempt)
		case core.ReleaseLease:
			t.executors[e.Shard].release(e.Attempt)
		case core.Start:
			if x := &t.executors[e.Shard]; x.client != nil && !x.client.check() {
				x.notStarted(e)
			} else {
				x.start(e)
			}
		case core.Stop:
			t.executors[e.Shard].stop(e.Run, string(e.Cause))
		case core.GiveUp:
			t.of.gaveUp(e)
		case core.Explain:
			t.of.explained(e)
		}
	}
}

// written is the wire form of a message about shards, which must fit into one question or answer.
func (t *driver) written(m *message.Message) []byte {
	wire := message.Append(nil, m)
	if len(wire) > message.MaxSize {
		t.p.w.violate("Y6", "%s says more about %s than one message carries: %d bytes, %s",
			t.p.id, t, len(wire), m.Kind.String())
	}
	return wire
}

// alarm calls what runs on top of a resolver when its deadline has come.
type alarm struct {
	p     *process
	of    timed
	event uint64        // the tick that is arranged; zero: none
	at    time.Duration // when it comes
	spins int
}

// timed has deadlines.
type timed interface {
	works() bool
	next() (at time.Duration, ok bool)
	// tick is called when the deadline has come.
	tick()
	// String is for people.
	String() string
}

// plan arranges the next tick. A tick that comes too early is left in place and looks again.
func (t *alarm) plan() {
	if !t.of.works() || t.p.paused || t.spins > maxSpins {
		return
	}
	at, ok := t.of.next()
	if !ok {
		return
	}
	if due := max(t.p.wall(at), t.p.w.now); t.event == 0 || due < t.at {
		t.at = due
		t.event = t.p.w.schedule(due, t.p, t.p.w.queue.keep(t))
	}
}

// act lets the deadline come, if it has. A tick that an earlier one has replaced does no harm: it looks, and
// arranges nothing twice.
func (t *alarm) act() {
	w := t.p.w
	if t.event != 0 && t.at > w.now || !t.of.works() {
		return
	}
	t.event = 0
	at, ok := t.of.next()
	if !ok {
		return
	}
	if at > t.p.clock() {
		t.plan()
		return
	}
	t.of.tick()
	if next, ok := t.of.next(); ok && next <= t.p.clock() {
		if t.spins++; t.spins > maxSpins {
			w.violate("liveness", "%s: the deadline %v of %s does not move at %v", t.p.id, next, t.of, t.p.clock())
			return
		}
	} else {
		t.spins = 0
	}
	t.plan()
}
