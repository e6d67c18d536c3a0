package world

import (
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
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
	// Probed and ProbedSpread, when not zero, bound all of this: own probes notice after Probed to Probed+ProbedSpread.
	Probed, ProbedSpread time.Duration
}

// peer is what one process thinks of another.
type peer struct {
	known  bool
	failed bool // the detector's word
	missed bool // own probes fail
	// wantFailed and wantMissed are what the truth will make of it, unless it changes before; gen tells stale changes.
	wantFailed, wantMissed bool
	gen, missGen           uint32
	meeting                bool // hears of the other one soon
	lost                   bool // was removed, or heard to have left
	met                    bool // was known at some time
}

func (q *peer) forgetPending() {
	q.gen++
	q.missGen++
	q.wantFailed, q.wantMissed = q.failed, q.missed
}

func (p *process) peer(s *process) *peer {
	for len(p.peers) <= s.index {
		p.peers = append(p.peers, peer{})
	}
	return &p.peers[s.index]
}

// strangers reports whether neither of two processes ever heard of the other.
func strangers(p, q *process) bool { return !p.peer(q).met && !q.peer(p).met }

func (p *process) knows(s *process) bool { return s.index < len(p.peers) && p.peers[s.index].known }

// detect compares what everybody thinks with the truth and schedules what follows from the difference.
func (w *World) detect() {
	w.pairUp()
	for _, o := range w.procs {
		if !o.runs() && o.stage != stageDowned {
			continue
		}
		slow, step := w.slow(o)
		for _, s := range w.procs {
			if o == s || !o.knows(s) {
				continue
			}
			if w.opts.Network.Probes {
				w.detectMiss(o, s)
			}
			q := o.peer(s)
			if bad := w.cannotReach(o, s); bad != q.wantFailed {
				q.wantFailed = bad
				q.gen++
				w.scheduleFailed(o, s, bad, q.gen, slow)
				if bad && slow > 0 {
					slow += w.between(step/2, step/2)
				}
			}
		}
	}
}

// slow is zero for a member that reaches at least half of those it knows; step is how far apart it condemns the others.
func (w *World) slow(o *process) (slow, step time.Duration) {
	step = w.opts.Detection.Step
	if step == 0 {
		return 0, 0
	}
	known, reached := 1, 1
	for _, s := range w.procs {
		if o != s && o.knows(s) {
			known++
			if !w.cannotReach(o, s) {
				reached++
			}
		}
	}
	if 2*reached >= known {
		return 0, 0
	}
	if w.opts.Detection.Share {
		step /= time.Duration(reached)
	}
	return 1, step
}

func (w *World) scheduleFailed(o, s *process, bad bool, gen uint32, slow time.Duration) {
	d := w.between(w.opts.Detection.Heal, w.opts.Detection.Spread)
	if bad {
		d = w.between(w.opts.Detection.After, w.opts.Detection.Spread) + slow
		if o := &w.opts.Detection; o.Probed > 0 {
			d = min(d, w.between(o.Probed, o.ProbedSpread))
		}
	}
	w.after(d, o, func() {
		q := o.peer(s)
		if q.gen != gen || !q.known || q.failed == bad || o.r == nil {
			return
		}
		if !bad && w.opts.Refuse && o.r.KeptOut(s.id, s.self.Seen) {
			return // its packets are dropped
		}
		q.failed = bad
		if o.runs() {
			w.stirred()
		}
		w.note(o, "detects", "%s %s", s.id, map[bool]string{true: "failed", false: "alive"}[bad])
		o.step(sbr.Reachability{ID: s.id, Unreachable: bad})
		if w.opts.Network.Probes {
			w.report(o)
		}
	})
}

// gone reports whether the membership, which does not know of probes, has reason to call s failed.
func (w *World) gone(o, s *process) bool {
	return !s.alive() || !w.net.connected(o.node.index, s.node.index)
}

// cannotReach is the truth behind the detector's word: the process does not answer, not even over others, or, with probes,
// it and somebody who can be reached report each other.
func (w *World) cannotReach(o, s *process) bool {
	if w.gone(o, s) {
		return true
	}
	if !w.opts.Network.Probes {
		return false
	}
	for _, x := range w.missing[s.index] {
		if x == o || o.knows(x) && w.net.connected(o.node.index, x.node.index) {
			return true
		}
	}
	return false
}

// pairUp works out who is missed by whom and misses it as well, once for all that detect asks. Between them nothing changes.
func (w *World) pairUp() {
	if !w.opts.Network.Probes {
		return
	}
	for len(w.missing) < len(w.procs) {
		w.missing = append(w.missing, nil)
	}
	for i, s := range w.procs {
		w.missing[i] = w.missing[i][:0]
		for j := range s.peers {
			if !s.peers[j].missed || !s.peers[j].known {
				continue
			}
			if x := w.procs[j]; x != s && x.alive() && x.knows(s) && x.peers[i].missed {
				w.missing[i] = append(w.missing[i], x)
			}
		}
	}
}

// detectMiss is about the member's own probes, which nobody relays.
func (w *World) detectMiss(o, s *process) {
	q := o.peer(s)
	bad := !s.alive() || !w.net.direct(o.node.index, s.node.index)
	if bad == q.wantMissed {
		return
	}
	q.wantMissed = bad
	q.missGen++
	gen := q.missGen
	d, spread := w.opts.Detection.Heal, w.opts.Detection.Spread
	switch {
	case bad && w.opts.Detection.Probed > 0:
		d, spread = w.opts.Detection.Probed, w.opts.Detection.ProbedSpread
	case bad:
		d = w.opts.Detection.After
	}
	w.after(w.between(d, spread), o, func() {
		q := o.peer(s)
		if q.missGen != gen || !q.known || q.missed == bad {
			return
		}
		q.missed = bad
		for _, x := range w.procs {
			if x.runs() && !x.paused && w.net.connected(x.node.index, o.node.index) {
				w.report(x)
			}
		}
		w.detect()
	})
}

// report hands a member the observations that have spread to it.
func (w *World) report(o *process) {
	var reports []sbr.Report
	for _, x := range w.procs {
		if !x.alive() || x != o && (!o.knows(x) || !w.net.connected(o.node.index, x.node.index)) {
			continue
		}
		for j := range x.peers {
			if q := &x.peers[j]; q.missed && q.known && j != x.index {
				reports = append(reports, sbr.Report{Observer: x.id, Subject: w.procs[j].id})
			}
		}
	}
	slices.SortFunc(reports, func(a, b sbr.Report) int {
		if c := strings.Compare(string(a.Observer), string(b.Observer)); c != 0 {
			return c
		}
		return strings.Compare(string(a.Subject), string(b.Subject))
	})
	if !slices.Equal(reports, o.seen) {
		o.seen = reports
		o.step(sbr.Observations{Reports: reports})
	}
}
