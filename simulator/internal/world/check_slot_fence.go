package world

// accepted is promise X3, of shards Y3: the resource accepts no write of an older run after one of a newer run. It is X2 seen from the resource.
func (s *slot) accepted(r, newest *run) {
	if newest != nil && r.seq < newest.seq && newest.follows(r) {
		s.broken(3, "a write of run %d of %s, token %d, was accepted after one of run %d, token %d", r.seq, s, r.token, newest.seq, newest.token)
	}
}

// refused is the other half: no write of the newest run is rejected.
func (s *slot) refused(r, newest *run) {
	if newest != nil && r.seq > newest.seq && r.follows(newest) {
		s.broken(3, "a write of run %d of %s, token %d, was rejected after one of run %d, token %d", r.seq, s, r.token, newest.seq, newest.token)
	}
}
