package world

import "strconv"

// follows reports whether promise X2 is that r has a larger token than o, which was started before. With a lease it always is,
// but for runs that follow each other on one member under one grant. Without one it is for a run that was handed over, and for
// one whose member knows a verdict that was written after o had started. A shard's token is larger than those of all members
// that its own and the one that coordinates have ever heard of, for these were asked; see unheardOf and unremembered. Runs that
// follow each other on one member by one order have one token.
func (r *run) follows(o *run) bool {
	switch s := r.berth.slot; {
	case s.UseLease, s.shardOf != nil && r.berth == o.berth:
		return o.berth != r.berth || o.token != r.token
	case s.shardOf != nil:
		return !r.unheardOf(o) && !r.unremembered(o)
	default:
		return r.verdict > o.stored || r.from == o.berth.p.id
	}
}

// ordered is promise X2, of shards Y2: tokens grow with each start.
func (s *slot) ordered(r *run) {
	grows := true
	for _, o := range s.runs {
		if r.token > o.token || s.shardOf != nil && r.berth == o.berth && r.token == o.token {
			continue
		}
		grows = false
		if r.follows(o) {
			s.broken(2, "run %d of %s on %s has the token %d, and run %d on %s had %d", r.seq, s, r.berth.p.id, r.token, o.seq, o.berth.p.id, o.token)
			return
		}
	}
	if !grows && !s.UseLease {
		s.outcome.Unordered++
	}
}

// inherits checks what a run begins with: what the last run that its member can have heard of has left, or nothing. Here a run leaves its token. Of runs
// that lasted at the same time, each may be the last one.
func (s *slot) inherits(r *run, state []byte) {
	var last *run
	for _, o := range s.runs {
		if s.UseLease || !strangers(r.berth.p, o.berth.p) {
			last = o
		}
	}
	if last == nil || state == nil || s.shardOf == nil && !r.follows(last) {
		return
	}
	for _, o := range s.runs {
		if o.over && o.endedAt >= last.startedAt && string(state) == strconv.FormatUint(o.token, 10) {
			return
		}
	}
	s.broken(2, "run %d of %s on %s begins with %q, which is not what the last run, on %s, has left", r.seq, s, r.berth.p.id, state, last.berth.p.id)
}
