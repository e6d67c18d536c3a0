package world

import (
	"slices"
	"strconv"
	"time"
)

// broken notes that a promise is broken: of a singleton X1 to X6, of a shard Y1 to Y6. A test reads the
// numbers in the calls, and wants a seeded bug for every one (test/mutants).
func (s *slot) broken(n int, format string, args ...any) {
	s.w.violate(either(s.shardOf != nil, "Y", "X")+strconv.Itoa(n), format, args...)
}

// follows reports whether promise X2 is that r has a larger token than o, which was started before. With a
// lease it always is, but for runs that follow each other on one member under one grant. Without a lease it
// is for a run that was handed over, and for a run whose member knows a verdict that was written after o had
// started. A shard's token is larger than those of all members that its own member and the coordinator's have
// ever heard of, for these were asked; see unheardOf and unremembered. A member that has not heard yet of the
// verdict under which o started may be downed by it: its writes are those to refuse. Runs that follow each other
// on one member by one order have one token.
func (r *run) follows(o *run) bool {
	switch s := r.executor.slot; {
	case s.UseLease, s.shardOf != nil && r.executor == o.executor:
		return o.executor != r.executor || o.token != r.token
	case s.shardOf != nil:
		return r.verdict >= o.verdict && !r.unheardOf(o) && !r.unremembered(o)
	default:
		return r.verdict > o.stored || r.from == o.executor.p.id
	}
}

// ordered is promise X2, of shards Y2: tokens grow with each start. A shard's run that goes on by the order of an
// earlier run has its token. What started beside the earlier run, promise Y1 has judged.
func (s *slot) ordered(r *run) {
	grows := true
	for _, o := range s.runs {
		if r.token > o.token || s.shardOf != nil && slices.ContainsFunc(s.runs, func(earlier *run) bool {
			return r.executor == earlier.executor && r.token == earlier.token &&
				(o == earlier || earlier.during(o.startedAt))
		}) {
			continue
		}
		grows = false
		if r.follows(o) {
			s.broken(2, "run %d of %s on %s has the token %d, and run %d on %s had %d", r.seq, s, r.executor.p.id,
				r.token, o.seq, o.executor.p.id, o.token)
			return
		}
	}
	if !grows && !s.UseLease {
		s.outcome.Unordered++
	}
}

// during reports whether a run had started at a moment, and was not over.
func (r *run) during(at time.Duration) bool { return r.startedAt <= at && (!r.over || at <= r.endedAt) }

// inherits checks what a run begins with: the token that the last run that its member, and of a shard also its
// coordinator, can have heard of has left, or nothing. Of runs that lasted at the same time, each may be the
// last one, and so may a run with a larger token: a fence refuses what the other writes.
func (s *slot) inherits(r *run, state []byte) {
	var last *run
	for _, o := range s.runs {
		if s.UseLease || !strangers(r.executor.p, o.executor.p) && !r.unheardOf(o) {
			last = o
		}
	}
	if last == nil || state == nil || s.shardOf == nil && !r.follows(last) {
		return
	}
	for _, o := range s.runs {
		if o.over && (o.endedAt >= last.startedAt || o.token > last.token) &&
			string(state) == strconv.FormatUint(o.token, 10) {
			return
		}
	}
	s.broken(2, "run %d of %s on %s begins with %q, which is not what the last run, on %s, has left", r.seq,
		s, r.executor.p.id, state, last.executor.p.id)
}

// accepted is promise X3, of shards Y3: the resource accepts no write of an older run after one of a newer
// run. It is X2 seen from the resource.
func (s *slot) accepted(r, newest *run) {
	if newest != nil && r.seq < newest.seq && newest.follows(r) {
		s.broken(3, "a write of run %d of %s, token %d, was accepted after one of run %d, token %d", r.seq, s,
			r.token, newest.seq, newest.token)
	}
}

// refused is the other half: no write of the newest run is rejected. Where its token is the smaller one, X2 has
// judged that at its start, and what the two members have heard of each other since changes nothing.
func (s *slot) refused(r, newest *run) {
	if newest != nil && r.seq > newest.seq && r.token >= newest.token && r.follows(newest) {
		s.broken(3, "a write of run %d of %s, token %d, was rejected after one of run %d, token %d", r.seq, s,
			r.token, newest.seq, newest.token)
	}
}

// downed is promise X5, of shards Y5: a member that was downed has no active run from that moment on, and
// starts none.
func (t *executor) downed() {
	if r := t.run; r != nil && !r.asked {
		t.slot.broken(5, "%s is down, and its run %d of %s was not asked to stop", t.p.id, r.seq, t.slot)
	}
}

// allowed is the part of X5 that is about starts.
func (s *slot) allowed(r *run) {
	if p := r.executor.p; p.stage == stageDowned || p.downReason != "" {
		s.broken(5, "%s starts a run of %s although it was downed", p.id, s)
	}
}
