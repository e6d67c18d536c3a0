package world

import "strconv"

// follows reports whether promise X2 is that r has a larger token than o, which was started before. With a lease it always is, but for runs that
// follow each other on one member under one grant. Without one it is for a run that was handed over, and for one whose member knows a verdict
// that was written after o had started.
func (r *run) follows(o *run) bool {
	if r.seat.slot.UseLease {
		return o.seat != r.seat || o.token != r.token
	}
	return r.verdict > o.stored || r.from == o.seat.p.id
}

// ordered is promise X2: tokens grow with each start.
func (s *slot) ordered(r *run) {
	grows := true
	for _, o := range s.runs {
		if r.token > o.token {
			continue
		}
		grows = false
		if r.follows(o) {
			s.w.violate("X2", "run %d of the slot %s on %s has the token %d, and run %d on %s had %d", r.seq, s.Name, r.seat.p.id, r.token, o.seq, o.seat.p.id, o.token)
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
		if s.UseLease || !strangers(r.seat.p, o.seat.p) {
			last = o
		}
	}
	if last == nil || state == nil || !r.follows(last) {
		return
	}
	for _, o := range s.runs {
		if o.over && o.endedAt >= last.startedAt && string(state) == strconv.FormatUint(o.token, 10) {
			return
		}
	}
	s.w.violate("X2", "run %d of the slot %s on %s begins with %q, which is not what the last run, on %s, has left", r.seq, s.Name, r.seat.p.id, state, last.seat.p.id)
}
