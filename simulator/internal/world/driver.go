package world

import (
	"slices"
	"time"

	core "github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// machine is a pure machine that runs on top of a resolver.
type machine interface {
	Step(now time.Duration, e core.Event) []core.Effect
	NextDeadline() (at time.Duration, ok bool)
}

// driver drives the machines of one process's part in a slot, or in shards, as package drive does: it shows
// them the newest view before anything else, hands them events and deadlines, and carries out what they want.
// Nothing of that comes back to a machine before all is done.
type driver struct {
	alarm
	of       driven
	machines [2]machine // the second one is that of a coordinator; nil: none runs here
	requests requester
	// offered says that the others know that the member would run the slot, or shards.
	offered bool

	view  core.View // the newest that the machines were given
	state sbr.State // of the resolver, when it was last told of a change
}

// driven is what a driver drives: a slotMember or a shardHost.
type driven interface {
	listener
	// works reports whether the process still drives it.
	works() bool
	viewNow() core.View
	// until is the end of runs without a lease, as of the newest view.
	until() (at time.Duration, ok bool)
	// expire tells of leases that have run out by the process's own clock.
	expire()
	// carryOut carries out what a machine wants, by its number.
	carryOut(machine int, effects []core.Effect)
	// stepped follows each step, ticked each tick.
	stepped()
	ticked()
	// String is for people.
	String() string
}

func (t *driver) init(p *process, of driven, topic int, every time.Duration, m machine) {
	t.alarm, t.of = alarm{p: p, of: t}, of
	t.machines[0] = m
	t.requests = newRequester(p, topic, every, of)
}

// drives reports whether the process drives what runs on top of its resolver.
func (p *process) drives() bool { return p.stage != stageStopped && p.stage != stageBooting }

// step hands an event to a machine, after the newest view.
func (t *driver) step(machine int, e core.Event) {
	if !t.of.works() || t.machines[machine] == nil {
		return
	}
	if _, down := e.(core.Downed); !down {
		t.look()
	}
	if m := t.machines[machine]; m != nil { // a coordinator may have ended meanwhile
		t.of.carryOut(machine, m.Step(t.p.clock(), e))
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
	for k, m := range t.machines {
		if m != nil {
			t.of.carryOut(k, m.Step(t.p.clock(), core.Viewed{View: t.view}))
		}
	}
}

// notice looks around if anything has changed.
func (t *driver) notice() {
	if v, state := t.of.viewNow(), t.p.r.State(); state != t.state || v.Verdict != t.view.Verdict || !slices.Equal(v.Peers, t.view.Peers) {
		t.state = state
		t.look()
	}
}

// next is the machines' earliest deadline.
func (t *driver) next() (at time.Duration, ok bool) {
	for _, m := range t.machines {
		if m == nil {
			continue
		}
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
	for k, m := range t.machines {
		if m != nil {
			t.of.carryOut(k, m.Step(t.p.clock(), core.Tick{}))
		}
	}
	t.of.ticked()
}

func (t *driver) String() string { return t.of.String() }

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
