package world

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// look is promise X1, of shards Y1: no two runs of a slot are active at once. A run is active from its start
// until nothing of it is left, also after it was asked to stop, while its process runs and its own Check says
// yes. With a lease there is no exception. Without one, the promise is held to the assumptions of package
// handover: see excuse.
func (s *slot) look() {
	if len(s.live) < 2 {
		return
	}
	for i, r := range s.live {
		if !r.active() {
			continue
		}
		for _, o := range s.live[:i] {
			if pair := [2]*run{o, r}; o.active() && !s.met[pair] {
				s.met[pair] = true
				s.overlap(o, r)
			}
		}
	}
}

// overlap is about two runs, the older one first, that are active at once.
func (s *slot) overlap(older, newer *run) {
	if why := s.excuse(older, newer); why != "" {
		s.outcome.Overlaps++
		s.outcome.because(why, 1)
		s.w.note(newer.executor.p, "overlap", "%s: run %d on %s is still active: %s", s.Name, older.seq,
			older.executor.p.id, why)
		return
	}
	s.broken(1, "run %d of %s on %s is active, and so is run %d on %s", older.seq, s, older.executor.p.id,
		newer.seq, newer.executor.p.id)
}

// Why two runs of a slot without a lease may be active at once.
const (
	whyNoVerdict = "the strategy needs no lease, so nobody wrote down who goes"
	whyStrangers = "their members never heard of each other"
	whyHealed    = "the network healed before the member of one heard that it was downed"
	whyLate      = "the member of one was sure of its place for longer than half of the margin after the others had lost it"
)

// excuse says why two runs may be active at once; empty: they must not. The promise of a slot without a lease
// is: a run ends before another one starts on the other side of a partition, if its member ceases to be sure
// of its place within half of the margin after the others have begun to count stable-after. That is what
// package handover assumes, and what a margin of twice the detection gives when a partition comes once and
// stays. What comes and goes is seen by one side and not by the other: then only a lease helps, or a fence.
// The member that was left out ran the slot first; its run is the newer one where it has ended by itself
// meanwhile, and started again on this member, which has still heard of nothing.
func (s *slot) excuse(older, newer *run) string {
	a, b := older.executor.p, newer.executor.p
	switch {
	case s.UseLease:
		return ""
	case !sbr.NeedsLease(s.w.opts.Strategy):
		return whyNoVerdict
	case newer.unknowing(older) || slices.Contains(newer.unmet, older):
		return whyStrangers
	}
	out, ok := s.w.store.outSince(a)
	if !ok && s.ranBefore(older, newer.executor) {
		a, b = b, a
		out, ok = s.w.store.outSince(a)
	}
	switch {
	case !ok || a.wall(a.sureAt()) <= out-s.w.opts.Resolver.StableIn(1)+s.Margin/2:
		return ""
	case s.w.net.connected(a.node.index, b.node.index):
		return whyHealed
	default:
		return whyLate
	}
}

// unknowing reports whether the members that a run comes of have never heard of an older run's, or cannot
// have heard of its margin.
func (r *run) unknowing(o *run) bool {
	a, b := o.executor.p, r.executor.p
	return strangers(a, b) || r.unheardOf(o) || lastToKnow(a, b)
}

// lastToKnow reports whether the last member that knew of a, and of its margin, left before b could ask it.
func lastToKnow(a, b *process) bool {
	met := func(p *process) bool { return p.met.has(a.index) }
	return !met(b) && !slices.ContainsFunc(b.w.procs, func(o *process) bool {
		return o != a && b.knows(o) && met(o)
	})
}

// ranBefore reports whether a run older than o was on an executor.
func (s *slot) ranBefore(o *run, on *executor) bool {
	return slices.ContainsFunc(s.runs[:o.seq-1], func(r *run) bool { return r.executor == on })
}

// ranOn is the last run on a member, if there was any.
func (s *slot) ranOn(id sbr.ID) *run {
	for _, r := range slices.Backward(s.runs) {
		if r.executor.p.id == id {
			return r
		}
	}
	return nil
}

// outSince is when the first verdict was written that leaves a process out.
func (s *store) outSince(p *process) (at time.Duration, ok bool) {
	for i := range s.chain {
		if s.chain[i].Standing(p.id, p.self.Seen) == sbr.Out {
			return s.writtenAt[i], true
		}
	}
	return 0, false
}

// alone is the part of X1 that is about starts: a member runs a slot once, and a run that was handed over has
// ended.
func (s *slot) alone(r *run) {
	if r.executor.run != nil {
		s.broken(1, "%s starts a run of %s while its last one has not ended", r.executor.p.id, s)
	}
	for _, o := range s.live {
		if r.from != "" && o.executor.p.id == r.from {
			s.broken(1, "%s takes %s over from %s, whose run %d has not ended", r.executor.p.id, s, r.from, o.seq)
		}
	}
}
