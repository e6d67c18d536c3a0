package slots

import (
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
)

// Moves appends what can happen next.
func (w *walker) Moves(to []walk.Move, s *state) []walk.Move {
	to = s.World.Moves(to, passenger{w, s}, s.letterKey)
	if n := len(to); n == 0 || to[n-1].Kind == walk.Waits {
		w.search.Settle(s, w.Fair, w.Bound)
	}
	return to
}

// Fair is what happens next where nothing goes wrong. ok is false when all is well and will remain so.
func (w *walker) Fair(s *state) (mv walk.Move, ok bool) {
	return s.World.Fair(passenger{w, s}, s.letterKey, func() bool { return w.asItShouldBe(s) })
}

// Pass is how long it takes until something more can happen. Zero: nothing will.
func (w *walker) Pass(s *state) time.Duration {
	p := passenger{w, s}
	return s.Next(p, s.Anything(p))
}

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
	return text + fmt.Sprintf("%d letters are under way", s.Mail.Len())
}
