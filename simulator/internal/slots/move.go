package slots

import (
	"time"

	core "github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
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

// passenger is what runs on the members in a state.
type passenger struct {
	w *walker
	s *state
}

// Duties are what happens before time passes.
func (p passenger) Duties(to []walk.Move) []walk.Move {
	w, s := p.w, p.s
	to = s.Duties(to, func(i int) bool { return s.slots[i].m.Finished() })
	for i := range w.Members {
		if s.Live(i) && s.slots[i].waits && s.holder < 0 {
			to = append(to, walk.Move{Kind: grants, At: uint8(i)})
		}
	}
	return to
}

// Lapses are a lease that runs out.
func (p passenger) Lapses(to []walk.Move) []walk.Move {
	s := p.s
	if s.holder >= 0 && (!s.Members[s.holder].Up || s.Members[s.holder].Paused) {
		to = append(to, walk.Move{Kind: expires})
	}
	return to
}

// Faults are what may happen as long as there is a budget.
func (p passenger) Faults(to []walk.Move) []walk.Move {
	w, s := p.w, p.s
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

// Deadlines are those of the machines.
func (p passenger) Deadlines(to []time.Duration) []time.Duration {
	s := p.s
	for i := range p.w.Members {
		if s.Live(i) {
			if at, ok := s.slots[i].m.NextDeadline(); ok {
				to = append(to, at)
			}
		}
	}
	return to
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

// counterBits is the default of the machines.
const counterBits = 40

const patience = 2 // of a member that resigns, in retry intervals

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
	p.s.Mail.End(i)
}

func (p passenger) Split() { p.s.Mail.Split(p.s.Cut) }

func (p passenger) Downed(i int) {
	p.w.step(p.s, i, core.Downed{Why: "a verdict leaves it out"})
}

// Returned has a machine whose rounds, and whose tokens without a lease, are beyond all before, as the wall clock has it. What the one before asked is not answered any more.
func (p passenger) Returned(i int) {
	x := &p.s.slots[i]
	cfg := p.w.config(i)
	cfg.FirstRound, cfg.Gone = x.m.Round()+1, x.m.Gone()
	if !p.w.UseLease {
		cfg.Floor = p.s.token & (1<<counterBits - 1)
	}
	*x = slot{m: newMachine(cfg, p.s.Now)}
	p.s.Mail.Drop(func(l *letter) bool { return int(l.To) == i && l.Body.kind != question })
}

func (p passenger) Resigned(i int) {
	p.w.step(p.s, i, core.Resign{Patience: patience * p.w.Handover.HandOverRetryInterval})
}
