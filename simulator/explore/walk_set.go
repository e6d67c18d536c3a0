package explore

// walkSet is a set of states, each by a hash of 128 bits: in 16 to 32 bytes a state, where a map needs some 50. The zero value is
// empty. Two of a billion states have the same hash with a probability of 10^-21.
type walkSet struct {
	slots [][2]uint64 // open addressing; the zero hash stands for an empty slot
	n     int
}

func (s *walkSet) len() int { return s.n }

// add reports whether the hash is new.
func (s *walkSet) add(h [2]uint64) bool {
	if h == [2]uint64{} {
		h[0] = 1
	}
	if 4*s.n >= 3*len(s.slots) {
		s.grow()
	}
	if !s.put(h) {
		return false
	}
	s.n++
	return true
}

func (s *walkSet) put(h [2]uint64) bool {
	mask := uint64(len(s.slots) - 1)
	for k := h[0] & mask; ; k = (k + 1) & mask {
		switch s.slots[k] {
		case h:
			return false
		case [2]uint64{}:
			s.slots[k] = h
			return true
		}
	}
}

func (s *walkSet) grow() {
	old := s.slots
	s.slots = make([][2]uint64, max(1<<10, 2*len(old)))
	for _, h := range old {
		if h != [2]uint64{} {
			s.put(h)
		}
	}
}
