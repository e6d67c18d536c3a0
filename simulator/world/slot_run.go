package world

import (
	"slices"
	"strconv"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/singleton/handover"
)

// run is one execution of what a slot stands for. It heeds Stop late, and its own Check always: it works for as long as that says yes, also
// while it ends, and before anything else when its process wakes up.
type run struct {
	seat   *seat
	number uint64 // the machine's
	seq    int    // the slot's: the order in which runs were started
	token  uint64
	from   sbr.ID // who handed over
	// verdict is the newest that its member knew when it started, stored the newest that there was.
	verdict, stored uint64

	asked, over        bool
	startedAt, endedAt time.Duration
	inHand             bool // its process was paused between its Check and a write
}

// start starts a run.
func (t *seat) start(e handover.Start) {
	s, w := t.slot, t.p.w
	r := &run{
		seat: t, number: e.Run, seq: len(s.runs) + 1, token: e.Token, from: e.From,
		verdict: t.p.r.Verdict().Token, stored: w.store.verdict().Token, startedAt: w.now,
	}
	w.note(t.p, "starts", "%s: run %d of all, token %d, from %s, state %s", s.Name, r.seq, r.token, r.from, string(e.State))
	s.alone(r)
	s.allowed(r)
	s.ordered(r)
	s.inherits(r, e.State)
	t.run = r
	s.runs, s.live = append(s.runs, r), append(s.live, r)
	s.outcome.Starts++
	if e.From != "" {
		s.outcome.HandOvers++
	}
	r.writeLater()
	if s.EndsAfter > 0 {
		w.after(w.between(s.EndsAfter/2, s.EndsAfter), t.p, r.endsByItself)
	}
}

// stop asks the seat's run to end.
func (t *seat) stop(e handover.Stop) {
	r, w := t.run, t.p.w
	if e.Run == t.ending {
		return // it has ended by itself, and the machine is about to hear of it
	}
	if r == nil || r.number != e.Run || r.asked {
		w.violate("X6", "%s stops the run %d of the slot %s, which does not run or was asked to stop before", t.p.id, e.Run, t.slot.Name)
		return
	}
	r.asked = true
	w.note(t.p, "stops", "%s: run %d of all: %s", t.slot.Name, r.seq, e.Cause.String())
	w.after(w.between(0, t.slot.StopTakes), t.p, func() { r.end(handover.RunEnded{Run: r.number}) })
}

// endsByItself mostly asks for another run, and now and then for none.
func (r *run) endsByItself() {
	const restsFor, done = time.Second, 0.1
	w := r.seat.p.w
	if r.asked || r.over {
		return
	}
	r.seat.slot.disturbed = w.now
	r.end(handover.RunEnded{Run: r.number, Again: !w.chance(done), Rest: restsFor, Why: "by itself"})
}

// end says that nothing of the run is left. What it leaves behind for the next one is its token.
func (r *run) end(e handover.RunEnded) {
	t := r.seat
	if r.over || !t.works() {
		return
	}
	r.cease()
	t.ending = e.Run
	e.State = strconv.AppendUint(nil, r.token, 10)
	t.step(e)
}

// cease is the end of a run, known to the machine or not.
func (r *run) cease() {
	t := r.seat
	r.over, r.endedAt = true, t.p.w.now
	t.p.w.note(t.p, "ended", "%s: run %d of all", t.slot.Name, r.seq)
	t.run = nil
	t.slot.live = slices.DeleteFunc(t.slot.live, func(o *run) bool { return o == r })
}

// trusted is the run's own Check.
func (r *run) trusted() bool {
	t := r.seat
	if t.slot.UseLease {
		return t.client.check()
	}
	// The machine knows Sure as of its newest view; a Check asks for it anew.
	until := t.p.sureAt() + t.slot.rules.Trust
	if at, ok := t.m.Until(); ok {
		until = at - t.view.Sure + t.p.sureAt()
	}
	return t.p.clock() < until
}

// check reports whether the lease is certainly held.
func (c *client) check() bool { return c.tenure != 0 && c.p.clock() < c.trusted }

// active reports whether the run works at this moment.
func (r *run) active() bool {
	p := r.seat.p
	return !r.over && !p.paused && p.stage != stageStopped && r.trusted()
}

// writeLater arranges the next write.
func (r *run) writeLater() {
	s := r.seat.slot
	r.seat.p.w.after(s.w.between(s.WritesEvery/2, s.WritesEvery), r.seat.p, func() {
		if !r.over {
			r.write()
			r.writeLater()
		}
	})
}

// write writes to the resource, if the run may.
func (r *run) write() {
	if r.active() {
		r.send()
	}
}

// send is a write on its way. Nothing of the network that the members share is in between.
func (r *run) send() {
	const takes, spread = time.Millisecond, 20 * time.Millisecond
	s := r.seat.slot
	s.look()
	s.w.after(s.w.between(takes, spread), nil, func() { s.resource.take(s, r) })
}

// sleeps is the beginning of a pause: it may come between a Check and the write that follows it.
func (t *seat) sleeps() {
	const half = 0.5
	if r := t.run; r != nil {
		r.inHand = r.active() && t.p.w.chance(half)
	}
}

// wakes is the end of a pause, before anybody has heard of it: the run goes on where it was.
func (t *seat) wakes() {
	r := t.run
	if r == nil {
		return
	}
	t.slot.look()
	switch {
	case r.inHand:
		r.inHand = false
		r.send()
	default:
		r.write()
	}
}

// vanish is the end of the process.
func (t *seat) vanish() {
	if t.run != nil {
		t.run.cease()
	}
}
