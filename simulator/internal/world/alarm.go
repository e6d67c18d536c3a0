package world

import "time"

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

// plan arranges the next tick. One that comes too early is left in place and looks again.
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

// act lets the deadline come, if it has. A tick that an earlier one has replaced does no harm: it looks, and arranges nothing twice.
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
