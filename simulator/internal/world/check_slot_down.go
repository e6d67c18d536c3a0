package world

// downed is promise X5, of shards Y5: a member that was downed has no active run from that moment on, and starts none.
func (t *berth) downed() {
	if r := t.run; r != nil && !r.asked {
		t.slot.broken(5, "%s is down, and its run %d of %s was not asked to stop", t.p.id, r.seq, t.slot)
	}
}

// allowed is the part of X5 that is about starts.
func (s *slot) allowed(r *run) {
	if p := r.berth.p; p.stage == stageDowned || p.downReason != "" {
		s.broken(5, "%s starts a run of %s although it was downed", p.id, s)
	}
}
