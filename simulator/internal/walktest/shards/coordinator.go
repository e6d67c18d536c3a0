package shards

import (
	"fmt"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/shards/coordinator"
	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sharding/allocation"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walktest"
)

// What can happen to a coordinator, next to what happens to its cluster and to shards.
const (
	appoints = walktest.Own + iota
	changes
	retires
	wants
)

// MoreDuties are about the member that coordinates.
func (w *walker) MoreDuties(to []walktest.Move, s *state) []walktest.Move {
	if c := &s.coordinators[1]; c.m != nil && s.Live(int(c.at)) {
		to = append(to, walktest.Move{Kind: retires})
	}
	if i := w.successor(s); i != nobody && w.vacant(s, i) {
		to = append(to, walktest.Move{Kind: appoints, At: uint8(i)})
	}
	return to
}

// MoreFaults are other coordinators, and whims.
func (w *walker) MoreFaults(to []walktest.Move, s *state) []walktest.Move {
	return w.wanting(w.changing(to, s), s)
}

// MoreDeadlines are those of coordinators, also of those that are not sure of their place, and of the next
// one.
func (w *walker) MoreDeadlines(note func(at time.Duration, ok bool), s *state) {
	for k := range s.coordinators {
		if c := &s.coordinators[k]; c.m != nil && s.Live(int(c.at)) {
			note(c.m.NextDeadline())
			note(s.Members[c.at].Sure+w.Trust, !w.UseLease)
		}
	}
	if at := int(s.coordinators[0].at); at != nobody && s.Losers.Has(at) {
		note(s.Decided+w.Margin, true)
	}
}

// DoMore lets a move of a coordinator happen.
func (w *walker) DoMore(s *state, mv walktest.Move) {
	switch mv.Kind {
	case changes:
		s.Budget.Changes--
		w.appoint(s, int(mv.At))
	case wants:
		i, n := walktest.Of(mv)
		s.Budget.Whims--
		s.wishes[n] = int8(i)
		w.lookCoordinator(s, 0)
	case appoints:
		w.appoint(s, int(mv.At))
	case retires:
		s.coordinators[1] = coordination{at: nobody}
	}
}

// Waited lets deadlines of coordinators come.
func (w *walker) Waited(s *state) {
	for k := range s.coordinators {
		w.tickCoordinator(s, k)
	}
}

// Dismiss ends what coordinates on a member.
func (w *walker) Dismiss(s *state, i int) { w.dismiss(s, i, s.Members[i].Left || s.Members[i].Closed) }

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

// vacant reports whether the coordinator has to run elsewhere, now: the previous one has ended in good order,
// or its member was removed and the margin is over.
func (w *walker) vacant(s *state, next int) bool {
	c := &s.coordinators[0]
	switch at := int(c.at); {
	case at == nobody || s.Members[at].Left:
		return true
	case c.m == nil && s.Live(at) && !s.Losers.Has(at):
		return s.Whole() // it had ended because it was not sure of its place
	case s.Losers.Has(at):
		m := &s.Members[next]
		return (m.Down.Has(at) || !m.Knows.Has(at)) && s.Now >= s.Decided+w.Margin
	default:
		return s.Leaving.Has(at) && s.Members[at].Up
	}
}

// appoint begins a run of the coordinator. The one before does not know of it, if it still runs.
func (w *walker) appoint(s *state, i int) {
	s.term++
	m := coordinator.New(w.coordinatorConfig(i, s.term), s.Now)
	if s.coordinators[0].m != nil && int(s.coordinators[0].at) != i {
		s.coordinators[1] = s.coordinators[0]
	}
	s.coordinators[0] = coordination{m: m, at: int8(i), term: s.term}
	w.lookCoordinator(s, 0)
}

// dismiss ends what coordinates on a member, in good order or not.
func (w *walker) dismiss(s *state, i int, orderly bool) {
	for k := range s.coordinators {
		c := &s.coordinators[k]
		if c.m == nil || int(c.at) != i {
			continue
		}
		c.m = nil
		if orderly || k > 0 {
			c.at = nobody
		}
	}
}

// lookCoordinator shows a coordinator the view of its member.
func (w *walker) lookCoordinator(s *state, k int) {
	c := &s.coordinators[k]
	w.stepCoordinator(s, k, slot.Viewed{View: w.view(s, int(c.at))})
}

func (w *walker) stepCoordinator(s *state, k int, e slot.Event) {
	if s.coordinators[k].m != nil {
		w.carryCoordinator(s, k, w.coordinator(s, k).Step(s.Now, e))
	}
}

func (w *walker) tickCoordinator(s *state, k int) {
	c := &s.coordinators[k]
	if c.m == nil || !s.Live(int(c.at)) {
		return
	}
	if at, ok := c.m.NextDeadline(); !ok || at > s.Now {
		return
	}
	w.carryCoordinator(s, k, w.coordinator(s, k).Step(s.Now, slot.Tick{}))
	if c.m == nil {
		return
	}
	if at, ok := c.m.NextDeadline(); ok && at <= s.Now {
		w.Search.Broken(s, "D", fmt.Sprintf("the deadline of the coordinator on %s stands still", name(int(c.at))))
	}
}

// carryCoordinator carries out what a coordinator wants.
func (w *walker) carryCoordinator(s *state, k int, effects []slot.Effect) {
	c := s.coordinators[k]
	for _, e := range append([]slot.Effect(nil), effects...) {
		if w.Search.Telling() {
			w.tellCoordinator(int(c.at), e)
		}
		switch e := e.(type) {
		case slot.Ask[message.Message]:
			w.ask(s, int(c.at), c.term, e.To, e.Message)
		case slot.Answer[message.Message]:
			w.send(s, int(c.at), int(e.Ref), said(walktest.Answer, 0, e.Message))
		case slot.GiveUp:
			s.coordinators[k] = coordination{at: nobody}
			s.term = max(s.term, e.Term)
		}
	}
	w.Flush(s)
}

// unsure reports whether the coordinator on a member ends because it does not know its place any more.
func (w *walker) unsure(s *state, i int) bool {
	return !w.UseLease && s.Now >= s.Members[i].Sure+w.Trust
}

// changes are what may become of the coordinator.
func (w *walker) changing(to []walktest.Move, s *state) []walktest.Move {
	for i := range w.Members {
		c := &s.coordinators[0]
		well := c.m != nil && s.coordinators[1].m == nil && s.Live(int(c.at))
		if s.Budget.Changes > 0 && w.mayCoordinate(s, i) && int(c.at) != i && well {
			to = append(to, walktest.Move{Kind: changes, At: uint8(i)})
		}
	}
	return to
}

// adversarialAllocator is the real allocator, which changes its mind: a wish counts for as long as it is
// possible.
type adversarialAllocator struct {
	*allocation.Allocator
	wishes [walktest.MaxShards]int8 // those of the state in which it is asked
}

// Next returns the moves that the allocator would begin now, and those that it wishes.
func (f *adversarialAllocator) Next(members []allocation.Member,
	current map[string]allocation.Placement) []allocation.Move {
	moves := f.Allocator.Next(members, current)
	for n, shard := range f.Shards() {
		if f.wishes[n] == nobody {
			continue
		}
		to, at := name(int(f.wishes[n])), current[shard]
		possible := slices.ContainsFunc(members, func(m allocation.Member) bool {
			return m.ID == to && !m.Leaving && !m.Unreachable
		})
		if !possible {
			continue
		}
		moves = slices.DeleteFunc(moves, func(m allocation.Move) bool { return m.Shard == shard })
		cutOff := slices.ContainsFunc(members, func(m allocation.Member) bool {
			return m.ID == at.Owner && m.Unreachable
		})
		if at.Owner != to && at.To == "" && !cutOff {
			moves = append(moves, allocation.Move{Shard: shard, From: at.Owner, To: to, Reason: allocation.Preferred})
		}
	}
	return moves
}

// wanting are the whims of the allocation: it wants a shard on a member that does not run it.
func (w *walker) wanting(to []walktest.Move, s *state) []walktest.Move {
	if c := &s.coordinators[0]; s.Budget.Whims == 0 || c.m == nil || !s.Live(int(c.at)) {
		return to
	}
	for n := range w.Shards {
		for i := range w.Members {
			if s.Live(i) && int(s.wishes[n]) != i && !w.Active(s, i, n) {
				to = append(to, walktest.Move{Kind: wants, At: walktest.Place(i, n)})
			}
		}
	}
	return to
}
