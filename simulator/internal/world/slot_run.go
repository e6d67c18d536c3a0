package world

import (
	"time"

	core "github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// run is one execution of what a slot stands for. It heeds Stop late, and its own Check always: it works for
// as long as that says yes, also while it ends, and before anything else when its process wakes up.
type run struct {
	executor *executor
	number   uint64 // the machine's
	seq      int    // the slot's: the order in which runs were started
	token    uint64
	from     sbr.ID // the member that handed over
	// verdict is the newest that its member knew when it started, stored the newest that there was.
	verdict, stored uint64
	// unmet are the runs beside which it, or the run that it was handed over from, was started without their
	// members having heard of each other: that they meet later makes the start no mistake.
	unmet []*run

	asked, over        bool
	startedAt, endedAt time.Duration
	inHand             bool // its process was paused between its Check and a write
}

// restsFor is the pause before another run on the same member.
const restsFor = time.Second

// endsByItself mostly asks for another run, and now and then for none.
func (r *run) endsByItself() {
	const done = 0.1
	w := r.executor.p.w
	if r.asked || r.over {
		return
	}
	r.executor.slot.disturbed = w.now
	r.end(core.RunEnded{Run: r.number, Again: !w.chance(done), Rest: restsFor, Why: "by itself"})
}

// trusted is the run's own Check.
func (r *run) trusted() bool {
	t := r.executor
	if t.slot.UseLease {
		return t.client.check()
	}
	// The machine knows how sure the process was as of its newest view; a Check asks for it anew.
	return t.p.clock() < t.p.sureAt()+t.trust()
}

// active reports whether the run works at this moment.
func (r *run) active() bool {
	p := r.executor.p
	return !r.over && !p.paused && p.stage != stageStopped && r.trusted()
}

// writeLater arranges the next write.
func (r *run) writeLater() {
	s := r.executor.slot
	r.executor.p.w.after(s.w.between(s.WritesEvery/2, s.WritesEvery), r.executor.p, func() {
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
	s := r.executor.slot
	s.look()
	s.w.after(s.w.between(takes, spread), nil, func() { s.resource.take(s, r) })
}

// sleeps is the beginning of a pause: it may come between a Check and the write that follows it.
func (t *executor) sleeps() {
	const half = 0.5
	if r := t.run; r != nil {
		r.inHand = r.active() && t.p.w.chance(half)
	}
}

// wakes is the end of a pause, before anybody has heard of it: the run goes on where it was.
func (t *executor) wakes() {
	r := t.run
	if r == nil {
		return
	}
	t.slot.look()
	switch {
	case t.slot.coordinates != nil: // its orders are its writes
	case r.inHand:
		r.inHand = false
		r.send()
	default:
		r.write()
	}
}

// resource is what a slot protects: it takes no write under a token that is smaller than one that it has
// seen.
type resource struct {
	token  uint64
	newest *run // of the runs that have written, the one started last
	wrote  *run // the same of the runs whose write was accepted
}

// take is the arrival of a write.
func (x *resource) take(s *slot, r *run) {
	s.outcome.Writes++
	if x.newest != nil && r.seq < x.newest.seq {
		s.outcome.Interleaved++
	} else {
		x.newest = r
	}
	if r.token < x.token {
		s.outcome.Rejected++
		s.refused(r, x.wrote)
		return
	}
	x.token = r.token
	s.accepted(r, x.wrote)
	if x.wrote == nil || r.seq > x.wrote.seq {
		x.wrote = r
	}
}
