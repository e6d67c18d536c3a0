package slots

import (
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/simulator/walk"
)

// Fair is what happens next where nothing goes wrong. ok is false when all is well and will remain so.
func (w *walker) Fair(s *state) (mv walk.Move, ok bool) {
	for _, k := range s.mail.Sorted(s.letterKey) {
		if s.Live(int(s.mail.At(k).To)) {
			return walk.Move{Kind: walk.Delivers, At: uint8(k)}, true
		}
	}
	for _, mv := range w.duties(nil, s) {
		return mv, true
	}
	if mv, ok := s.Cluster.Fair(); ok {
		return mv, true
	}
	for _, mv := range w.ofLease(nil, s) {
		return mv, true
	}
	if s.Hopeless() || !w.asItShouldBe(s) {
		return walk.Move{Kind: walk.Waits}, true
	}
	return walk.Move{}, false
}

// Stuck reports whether waiting changes nothing.
func (w *walker) Stuck(s *state) bool { return w.next(s, w.anything(s)) == 0 }

// Now is the time.
func (w *walker) Now(s *state) time.Duration { return s.Now }

// asItShouldBe reports whether exactly one run is active, or none where nobody may run.
func (w *walker) asItShouldBe(s *state) bool {
	runs, may := 0, 0
	for i := range w.Members {
		if w.active(s, i) {
			runs++
		}
		if s.Live(i) && s.Members[i].Armed && !s.Losers.Has(i) && !s.slots[i].m.Status().Resigned && !s.Leaving.Has(i) {
			may++
		}
	}
	return runs == min(may, 1)
}

// Standing says what the members do.
func (w *walker) Standing(s *state) (text string) {
	for i := range w.Members {
		if s.Live(i) {
			text += fmt.Sprintf("%s is %v, ", name(i), s.slots[i].m.Phase())
		}
	}
	return text + fmt.Sprintf("%d letters are under way", s.mail.Len())
}
