package shards

import (
	"fmt"

	"github.com/serf-sbr/serf-sbr/internal/shards/coordinator"
	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
)

// successor is the member on which the coordinator would run next: the oldest that may; nobody: none.
func (w *walker) successor(s *state) int {
	best := nobody
	for i := range w.Members {
		if w.mayCoordinate(s, i) && (best == nobody || w.Born(i) < w.Born(best)) {
			best = i
		}
	}
	return best
}

func (w *walker) mayCoordinate(s *state, i int) bool {
	m := &s.Members[i]
	return s.Live(i) && m.Armed && !m.Closed && !s.Leaving.Has(i) && !s.Losers.Has(i)
}

// vacant reports whether the coordinator has to run elsewhere, now: the one before has ended in good order, or its member was removed and the margin is over.
func (w *walker) vacant(s *state, next int) bool {
	c := &s.chiefs[0]
	switch at := int(c.at); {
	case at == nobody || s.Members[at].Left:
		return true
	case c.m == nil && s.Live(at) && !s.Losers.Has(at):
		return s.Whole() // it had ended because it was not sure of its place
	case s.Losers.Has(at):
		m := &s.Members[next]
		return (m.Down.Has(at) || !m.Knows.Has(at)) && s.Now >= s.Decided+w.Host.Margin
	default:
		return s.Leaving.Has(at) && s.Members[at].Up
	}
}

// appoint begins a run of the coordinator. The one before does not know of it, if it still runs.
func (w *walker) appoint(s *state, i int) {
	s.term++
	m, err := coordinator.New(w.Options.coordinator(i, s.term, w.alloc), s.Now)
	if err != nil {
		panic(err) // Validate has looked at it
	}
	if s.chiefs[0].m != nil && int(s.chiefs[0].at) != i {
		s.chiefs[1] = s.chiefs[0]
	}
	s.chiefs[0] = chief{m: m, at: int8(i), term: s.term}
	w.lookChief(s, 0)
}

// dismiss ends what coordinates on a member, in good order or not.
func (w *walker) dismiss(s *state, i int, orderly bool) {
	for k := range s.chiefs {
		c := &s.chiefs[k]
		if c.m == nil || int(c.at) != i {
			continue
		}
		c.m = nil
		if orderly || k > 0 {
			c.at = nobody
		}
	}
}

// lookChief shows a coordinator the view of its member.
func (w *walker) lookChief(s *state, k int) {
	c := &s.chiefs[k]
	w.stepChief(s, k, slot.Viewed{View: w.view(s, int(c.at))})
}

func (w *walker) stepChief(s *state, k int, e slot.Event) {
	if s.chiefs[k].m != nil {
		w.carryChief(s, k, w.coordinator(s, k).Step(s.Now, e))
	}
}

func (w *walker) tickChief(s *state, k int) {
	c := &s.chiefs[k]
	if c.m == nil || !s.Live(int(c.at)) {
		return
	}
	if at, ok := c.m.NextDeadline(); !ok || at > s.Now {
		return
	}
	w.carryChief(s, k, w.coordinator(s, k).Tick(s.Now))
	if c.m == nil {
		return
	}
	if at, ok := c.m.NextDeadline(); ok && at <= s.Now {
		w.search.Broken(s, "D", fmt.Sprintf("the deadline of the coordinator on %s stands still", name(int(c.at))))
	}
}

// carryChief carries out what a coordinator wants.
func (w *walker) carryChief(s *state, k int, effects []slot.Effect) {
	c := s.chiefs[k]
	for _, e := range append([]slot.Effect(nil), effects...) {
		if w.search.Telling() {
			w.tellCoordinator(int(c.at), e)
		}
		switch e := e.(type) {
		case slot.Ask[message.Message]:
			w.ask(s, int(c.at), c.term, e.To, e.Message)
		case slot.Answer[message.Message]:
			w.send(s, int(c.at), int(e.Ref), said(answer, 0, e.Message))
		case slot.GiveUp:
			s.chiefs[k] = chief{at: nobody}
			s.term = max(s.term, e.Term)
		}
	}
	w.flush(s)
}

// unsure reports whether the coordinator on a member ends because it does not know its place any more.
func (w *walker) unsure(s *state, i int) bool {
	return !w.UseLease && s.Now >= s.Members[i].Sure+w.Host.Trust
}

// changes are what may become of the coordinator.
func (w *walker) changing(to []walk.Move, s *state) []walk.Move {
	for i := range w.Members {
		if s.changes > 0 && w.mayCoordinate(s, i) && int(s.chiefs[0].at) != i && s.chiefs[0].m != nil && s.chiefs[1].m == nil && s.Live(int(s.chiefs[0].at)) {
			to = append(to, walk.Move{Kind: changes, At: uint8(i)})
		}
	}
	return to
}
