package world

import (
	"math/rand/v2"
	"time"
)

// DetectionOptions say how long it takes a member to notice that another one cannot be reached, or can again.
type DetectionOptions struct {
	// After is the least time from a cut to "failed", Heal from a repair to "alive"; Spread is what chance adds at most.
	After, Heal, Spread time.Duration
	// Step slows the losing side down as Serf does: a member that can reach less than half of those it knows condemns the
	// others one at a time, this far apart at most.
	Step time.Duration
	// Share divides Step by the number of members that such a side still has: they search together.
	Share bool
	// News is what gossip adds at most to the time that a report takes.
	News time.Duration
	// Cut, when not nil, says instead how long it takes after a cut: it is told how many members a side has and how many others those have
	// lost, and returns when each member finds out about each of the others. Both are counted from 0. Own probes then go by rounds, and
	// find what is so; without it they find it when the times say so.
	Cut func(rng *rand.Rand, side, others int) func(member, other int) time.Duration
}

// peer is what one process thinks of another.
type peer struct {
	// gen and missGen tell entries of the agenda that are stale.
	gen, missGen uint32

	known  bool
	failed bool // the detector's word
	missed bool // own probes fail, where times are given
	// wantFailed and wantMissed are what the truth will make of it, unless it changes before.
	wantFailed, wantMissed bool
	meeting                bool // hears of the other one soon
	lost                   bool // was removed, or heard to have left
	met                    bool // was known at some time
	eviction               eviction
	// since is when the detector's word became "failed".
	since time.Duration
}

// look compares what o thinks of s with the truth, in constant time. What the detector finds out is put on the agenda by review.
func (o *process) look(s *process) {
	if o == s || !o.knows(s) {
		return
	}
	w, place := o.w, s.index
	q := &o.peers[place]
	if w.opts.Probe.On() {
		o.arouse()
		if w.opts.Detection.Cut == nil {
			o.lookMiss(s, q, place)
		}
	}
	bad := w.gone(o, s)
	if bad == q.wantFailed {
		return
	}
	q.wantFailed = bad
	q.gen++
	if bad {
		o.unreached++
	} else {
		o.unreached--
	}
	w.turned = append(w.turned, int32(place))
}

// review puts on the agenda what follows from the last looks.
func (o *process) review() {
	w := o.w
	if len(w.turned) == 0 {
		return
	}
	slow, step := o.slow()
	for _, place := range w.turned {
		q := &o.peers[place]
		d := w.delay(q.wantFailed, slow)
		if q.wantFailed && w.opts.Detection.Cut != nil {
			d = w.loses(o, o.w.procs[place])
		}
		o.add(todo{at: w.now + d, peer: place, gen: q.gen, what: taskFind})
		if q.wantFailed && slow > 0 {
			slow += w.between(step/2, step/2)
		}
	}
	w.turned = w.turned[:0]
}

// slow is zero for a member that reaches at least half of those it knows; step is how far apart it condemns the others.
func (o *process) slow() (slow, step time.Duration) {
	d := &o.w.opts.Detection
	reached := 1 + o.known - o.unreached
	if d.Step == 0 || 2*reached >= 1+o.known {
		return 0, 0
	}
	if d.Share {
		return 1, d.Step / time.Duration(reached)
	}
	return 1, d.Step
}

// delay is how long the detector needs.
func (w *World) delay(bad bool, slow time.Duration) time.Duration {
	o := &w.opts.Detection
	if !bad {
		return w.between(o.Heal, o.Spread)
	}
	return w.between(o.After, o.Spread) + slow
}

// lookMiss is about the member's own probes, which nobody relays.
func (o *process) lookMiss(s *process, q *peer, place int) {
	w := o.w
	bad := !s.alive() || !w.net.direct(o.node.index, s.node.index)
	if bad == q.wantMissed {
		return
	}
	q.wantMissed = bad
	q.missGen++
	d := &w.opts.Detection
	at := w.now + w.between(d.Heal, d.Spread)
	if bad {
		at = w.now + w.between(d.After, d.Spread)
	}
	o.add(todo{at: at, peer: int32(place), gen: q.missGen, what: taskMiss})
}

// find gives the process the detector's word about s.
func (o *process) find(s *process, q *peer) {
	w, bad := o.w, q.wantFailed
	if !q.known || q.failed == bad || !o.runs() {
		return
	}
	if !bad && w.opts.Refuse && o.r.KeptOut(s.id, s.self.Seen) {
		return // its packets are dropped
	}
	q.failed = bad
	if o.evicts(s, q) {
		return
	}
	o.tracker.SetFailed(s.id, bad)
	o.observeSoon()
}

// noticed lets everybody who knows s look at it: it is alive, or is so no longer.
func (w *World) noticed(s *process) {
	for _, o := range s.w.procs {
		if o.attends() {
			o.look(s)
			o.review()
		}
	}
}

// gone reports whether the membership, which does not know of probes, has reason to call s failed.
func (w *World) gone(o, s *process) bool {
	return !s.alive() || !w.net.connected(o.node.index, s.node.index)
}
