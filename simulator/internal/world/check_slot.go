package world

import "fmt"

// broken notes that the n-th promise about slots is broken, or that about shards. The names are written out in each call, because a test reads them there and
// wants a seeded bug for every one (test/mutants).
func (s *slot) broken(n int, format string, args ...any) {
	if s.shardOf != nil {
		s.shardOf.broken(n, format, args...)
		return
	}
	text := fmt.Sprintf(format, args...)
	switch n {
	case 1:
		s.w.violate("X1", "%s", text)
	case 2:
		s.w.violate("X2", "%s", text)
	case 3:
		s.w.violate("X3", "%s", text)
	case 4:
		s.w.violate("X4", "%s", text)
	case 5:
		s.w.violate("X5", "%s", text)
	default:
		s.w.violate("X6", "%s", text)
	}
}

// broken notes that the n-th promise about shards is broken.
func (s *shards) broken(n int, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	switch n {
	case 1:
		s.w.violate("Y1", "%s", text)
	case 2:
		s.w.violate("Y2", "%s", text)
	case 3:
		s.w.violate("Y3", "%s", text)
	case 4:
		s.w.violate("Y4", "%s", text)
	case 5:
		s.w.violate("Y5", "%s", text)
	default:
		s.w.violate("Y6", "%s", text)
	}
}
