package world

// accepted is promise X3: the resource accepts no write of an older run after one of a newer run. It is X2 seen from the resource.
func (s *slot) accepted(r, newest *run) {
	if newest != nil && r.seq < newest.seq && newest.follows(r) {
		s.w.violate("X3", "a write of run %d of the slot %s, token %d, was accepted after one of run %d, token %d", r.seq, s.Name, r.token, newest.seq, newest.token)
	}
}

// refused is the other half: no write of the newest run is rejected.
func (s *slot) refused(r, newest *run) {
	if newest != nil && r.seq > newest.seq && r.follows(newest) {
		s.w.violate("X3", "a write of run %d of the slot %s, token %d, was rejected after one of run %d, token %d", r.seq, s.Name, r.token, newest.seq, newest.token)
	}
}
