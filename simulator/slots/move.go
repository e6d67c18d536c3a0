package slots

import (
	"time"

	"github.com/serf-sbr/serf-sbr/simulator/walk"
	"github.com/serf-sbr/serf-sbr/singleton/handover"
)

// What can happen to a slot, next to what happens to its cluster.
const (
	endsAgain = walk.Own + iota
	endsDone
	grants
	expires
	loses
	doubts
)

// duties are what happens before time passes.
func (w *walker) duties(to []walk.Move, s *state) []walk.Move {
	to = s.Duties(to, func(i int) bool { return s.slots[i].m.Finished() })
	for i := range w.Members {
		if s.Live(i) && s.slots[i].waits && s.holder < 0 {
			to = append(to, walk.Move{Kind: grants, At: uint8(i)})
		}
	}
	return to
}

// ofLease are a lease that runs out.
func (w *walker) ofLease(to []walk.Move, s *state) []walk.Move {
	if s.holder >= 0 && (!s.Members[s.holder].Up || s.Members[s.holder].Paused) {
		to = append(to, walk.Move{Kind: expires})
	}
	return to
}

// faults are what may happen as long as there is a budget.
func (w *walker) faults(to []walk.Move, s *state) []walk.Move {
	to = s.Faults(to)
	for i := range w.Members {
		x, at := &s.slots[i], uint8(i)
		if !s.Live(i) {
			continue
		}
		if s.Budget.Ends > 0 && x.running && !x.stopping {
			to = append(to, walk.Move{Kind: endsAgain, At: at}, walk.Move{Kind: endsDone, At: at})
		}
		if s.Budget.Doubts > 0 && x.waits {
			to = append(to, walk.Move{Kind: doubts, At: at})
		}
	}
	if s.Budget.Losses > 0 && s.holder >= 0 && s.Live(int(s.holder)) {
		to = append(to, walk.Move{Kind: loses})
	}
	return to
}

// Moves appends what can happen next. It is complete: whatever is not in it, cannot be.
func (w *walker) Moves(to []walk.Move, s *state) []walk.Move {
	to, prompt := s.mail.Moves(to, &s.Cluster, s.mail.Sorted(s.letterKey))
	duties := len(to)
	to = w.duties(to, s)
	idle := duties == len(to) && prompt == 0 && !s.Overdue()
	to = w.ofLease(s.Views(to), s)
	to = w.faults(to, s)
	if idle && w.next(s, len(to) > 0) > 0 {
		to = append(to, walk.Move{Kind: walk.Waits})
	}
	return to
}

// next is how long it takes until something more can happen: a step while anything may happen at any moment. Zero: nothing will.
func (w *walker) next(s *state, anything bool) time.Duration {
	deadlines := make([]time.Duration, 0, 8)
	for i := range w.Members {
		if s.Live(i) {
			if at, ok := s.slots[i].m.NextDeadline(); ok {
				deadlines = append(deadlines, at)
			}
		}
	}
	return s.Pass(anything, deadlines...)
}

// wait lets time pass.
func (w *walker) wait(s *state, by time.Duration) {
	s.Now += by
	for i := range w.Members {
		if !s.Live(i) {
			continue
		}
		w.look(s, i)
		if at, ok := s.slots[i].m.NextDeadline(); ok && s.Live(i) && at <= s.Now {
			w.carry(s, i, s.machine(i).Tick(s.Now))
			if at, ok := s.slots[i].m.NextDeadline(); ok && at <= s.Now {
				w.search.Broken(s, "D", string(name(i))+"'s deadline stands still in the phase "+s.slots[i].m.Phase().String())
			}
		}
	}
}

const patience = 2 // of a member that resigns, in retry intervals

// passenger is the slot, of which the moves of a cluster make something.
type passenger struct {
	w *walker
	s *state
}

func (p passenger) Shown(i int) {
	p.s.slots[i].peers = nil
	p.w.look(p.s, i)
}

func (p passenger) Everyone() {
	for i := range p.w.Members {
		p.s.slots[i].peers = nil
	}
	for i := range p.w.Members {
		if p.s.Live(i) {
			p.w.look(p.s, i)
		}
	}
}

func (p passenger) Resumed(i int) {
	p.w.check(p.s) // its run may go on before its manager has looked around
	p.w.look(p.s, i)
}

// Ended drops what was under way to a member that is gone.
func (p passenger) Ended(i int) {
	x := &p.s.slots[i]
	x.running, x.stopping, x.waits = false, false, false
	p.s.mail.End(i)
}

func (p passenger) Split() { p.s.mail.Split(p.s.Cut) }

func (p passenger) Downed(i int) {
	p.w.step(p.s, i, handover.Downed{Why: "a verdict leaves it out"})
}

func (p passenger) Resigned(i int) {
	p.w.step(p.s, i, handover.Resign{Patience: patience * p.w.Handover.HandOverRetryInterval})
}
