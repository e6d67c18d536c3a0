package world

// downed is promise X5: a member that was downed has no active run from that moment on, and starts none.
func (t *seat) downed() {
	if r := t.run; r != nil && !r.asked {
		t.p.w.violate("X5", "%s is down, and its run %d of the slot %s was not asked to stop", t.p.id, r.seq, t.slot.Name)
	}
}

// allowed is the part of X5 that is about starts.
func (s *slot) allowed(r *run) {
	if p := r.seat.p; p.stage == stageDowned || p.downReason != "" {
		s.w.violate("X5", "%s starts a run of the slot %s although it was downed", p.id, s.Name)
	}
}
