package slots

import (
	core "github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
)

// Do lets a move happen.
func (w *walker) Do(s *state, mv walk.Move) {
	switch mv.Kind {
	case walk.Waits:
		w.wait(s, w.Pass(s))
	case walk.Delivers, walk.Copies, walk.Delays, walk.Drops:
		if l, delivered := s.Mail.Do(mv, &s.Cluster); delivered {
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
		s.Cluster.Do(mv, passenger{w, s})
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
		s.Mail.Post(toSelf(i, walk.Within, body{kind: leaseAnswer, number: x.attempt, token: s.granted}))
	case doubts:
		s.Budget.Doubts--
		x.waits = false
		s.Mail.Post(toSelf(i, walk.Within, body{kind: leaseUnknown, number: x.attempt}))
	case expires, loses:
		i = int(s.holder)
		x = &s.slots[i]
		s.holder = -1
		switch {
		case mv.Kind == loses:
			s.Budget.Losses--
			w.step(s, i, core.LeaseLost{Attempt: x.attempt})
		case s.Members[i].Up:
			s.Mail.Post(toSelf(i, walk.Within, body{kind: leaseLost, number: x.attempt}))
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
