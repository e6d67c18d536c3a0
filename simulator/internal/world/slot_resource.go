package world

// resource is what a slot protects: it takes no write under a token that is smaller than one that it has seen.
type resource struct {
	token  uint64
	newest *run // the one that was started last of those that have written
	wrote  *run // the same of those whose write was accepted
}

// take is the arrival of a write.
func (x *resource) take(s *slot, r *run) {
	s.outcome.Writes++
	if x.newest != nil && r.seq < x.newest.seq {
		s.outcome.Interleaved++
	} else {
		x.newest = r
	}
	if r.token < x.token {
		s.outcome.Rejected++
		s.refused(r, x.wrote)
		return
	}
	x.token = r.token
	s.accepted(r, x.wrote)
	if x.wrote == nil || r.seq > x.wrote.seq {
		x.wrote = r
	}
}
