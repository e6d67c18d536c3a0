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

// application is what runs on the members in a state.
type application struct {
	w *walker
	s *state
}

// Duties are what happens before time passes.
func (p application) Duties(to []walk.Move) []walk.Move {
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
func (p application) Lapses(to []walk.Move) []walk.Move {
	s := p.s
	if s.holder >= 0 && (!s.Members[s.holder].Up || s.Members[s.holder].Paused) {
		to = append(to, walk.Move{Kind: expires})
	}
	return to
}

// Faults are what may happen as long as there is a budget.
func (p application) Faults(to []walk.Move) []walk.Move {
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
func (p application) Deadlines(to []time.Duration) []time.Duration {
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

func (p application) Shown(i int) {
	p.s.slots[i].peers = nil
	p.w.look(p.s, i)
}

func (p application) Everyone() {
	for i := range p.w.Members {
		p.s.slots[i].peers = nil
	}
	for i := range p.w.Members {
		if p.s.Live(i) {
			p.w.look(p.s, i)
		}
	}
}

func (p application) Resumed(i int) {
	p.w.check(p.s) // its run may go on before its manager has looked around
	p.w.look(p.s, i)
}

// Ended drops what was under way to a member that is gone.
func (p application) Ended(i int) {
	x := &p.s.slots[i]
	x.running, x.stopping, x.waits = false, false, false
	p.s.Packets.End(i)
}

func (p application) Split() { p.s.Packets.Split(p.s.Cut) }

func (p application) Downed(i int) {
	p.w.step(p.s, i, core.Downed{Why: "a verdict leaves it out"})
}

// Returned has a machine whose rounds, and whose tokens without a lease, are beyond all before, as the wall clock has it. What the one before asked is not answered any more.
func (p application) Returned(i int) {
	x := &p.s.slots[i]
	cfg := p.w.config(i)
	cfg.FirstRound, cfg.Gone = x.m.Round()+1, x.m.Departed
	if !p.w.UseLease {
		cfg.Floor = p.s.token & (1<<counterBits - 1)
	}
	*x = slot{m: newMachine(cfg, p.s.Now)}
	p.s.Packets.Drop(func(l *packet) bool { return int(l.To) == i && l.Body.kind != question })
}

func (p application) Resigned(i int) {
	p.w.step(p.s, i, core.Resign{Patience: patience * p.w.Handover.HandOverRetryInterval})
}

// Do lets a move happen.
func (w *walker) Do(s *state, mv walk.Move) {
	switch mv.Kind {
	case walk.Waits:
		w.wait(s, w.Pass(s))
	case walk.Delivers, walk.Copies, walk.Delays, walk.Drops:
		if l, delivered := s.Packets.Do(mv, &s.Cluster); delivered {
			w.deliver(s, l)
		}
	case grants, expires, loses, doubts:
		w.doLease(s, mv)
	case endsAgain, endsDone:
		s.Budget.Ends--
		x := &s.slots[mv.At]
		x.running, x.stopping = false, false
		w.step(s, int(mv.At), core.RunEnded{Run: x.run, Again: mv.Kind == endsAgain, Rest: w.Handover.HandOverRetryInterval})
	default:
		s.Cluster.Do(mv, application{w, s})
	}
	w.check(s)
}

func (w *walker) doLease(s *state, mv walk.Move) {
	i := int(mv.At)
	x := &s.slots[i]
	switch mv.Kind {
	case grants:
		s.granted++
		s.holder, x.waits, x.granted = int8(i), false, s.granted
		s.Packets.Send(toSelf(i, walk.Within, body{kind: leaseAnswer, number: x.attempt, token: s.granted}))
	case doubts:
		s.Budget.Doubts--
		x.waits = false
		s.Packets.Send(toSelf(i, walk.Within, body{kind: leaseUnknown, number: x.attempt}))
	case expires, loses:
		i = int(s.holder)
		x = &s.slots[i]
		s.holder = -1
		switch {
		case mv.Kind == loses:
			s.Budget.Losses--
			w.step(s, i, core.LeaseLost{Attempt: x.attempt})
		case s.Members[i].Up:
			s.Packets.Send(toSelf(i, walk.Within, body{kind: leaseLost, number: x.attempt}))
		}
	}
}

// check looks for two active runs.
func (w *walker) check(s *state) {
	first := -1
	for i := range w.Members {
		if !w.active(s, i) {
			continue
		}
		if first >= 0 {
			w.search.Broken(s, "A", string(name(first))+" and "+string(name(i))+" are active at once")
		}
		first = i
	}
}

// active reports whether a run of a member is active and would find so itself.
func (w *walker) active(s *state, i int) bool {
	x := &s.slots[i]
	if !s.Live(i) || !x.running || x.stopping {
		return false
	}
	if w.UseLease {
		return int(s.holder) == i && x.token == s.granted
	}
	until, ok := x.m.Until()
	return ok && s.Now < until
}
