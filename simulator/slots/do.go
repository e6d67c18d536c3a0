package slots

import (
	"slices"

	"github.com/serf-sbr/serf-sbr/singleton/handover"
)

// do lets a move happen.
func (w *walker) do(s *state, mv move) {
	switch mv.kind {
	case waits:
		w.wait(s, w.next(s, w.anything(s)))
	case delivers, copies, delays:
		w.doLetter(s, mv)
	case grants, expires, loses, doubts:
		w.doLease(s, mv)
	case crashes, pauses, resumes, cuts, heals:
		w.doFault(s, mv)
	case decides, seesDown, seesGone, notices, hearsDown, learns, arms:
		w.doView(s, mv)
	default:
		w.doMember(s, mv)
	}
	w.check(s)
}

// anything reports whether something but waiting is possible: then time goes in single steps.
func (w *walker) anything(s *state) bool {
	for _, l := range s.letters {
		if s.live(int(l.to)) {
			return true
		}
	}
	return len(w.faults(w.views(nil, s), s)) > 0
}

func (w *walker) doLetter(s *state, mv move) {
	l := s.letters[mv.at]
	switch mv.kind {
	case copies:
		s.twice--
		s.letters = slices.Clone(s.letters)
		s.letters[mv.at].late = true
		w.deliver(s, l)
	case delays:
		if l.kind == runEnded {
			s.slow--
		} else {
			s.late--
		}
		s.letters = slices.Clone(s.letters)
		s.letters[mv.at].late = true
	default:
		s.without(int(mv.at))
		w.deliver(s, l)
	}
}

func (w *walker) doLease(s *state, mv move) {
	i := int(mv.at)
	m := &s.members[i]
	switch mv.kind {
	case grants:
		s.granted++
		s.holder, m.waits, m.granted = int8(i), false, s.granted
		s.post(letter{kind: leaseAnswer, from: int8(i), to: int8(i), number: m.attempt, token: s.granted})
	case doubts:
		s.doubts--
		m.waits = false
		s.post(letter{kind: leaseUnknown, from: int8(i), to: int8(i), number: m.attempt})
	case expires, loses:
		i = int(s.holder)
		m = &s.members[i]
		s.holder = -1
		switch {
		case mv.kind == loses:
			s.losses--
			w.step(s, i, handover.LeaseLost{Attempt: m.attempt})
		case m.up:
			s.post(letter{kind: leaseLost, from: int8(i), to: int8(i), number: m.attempt})
		}
	}
}

func (w *walker) doFault(s *state, mv move) {
	i := int(mv.at)
	switch mv.kind {
	case crashes:
		s.crashes--
		s.changed = s.now
		w.end(s, i)
	case pauses:
		s.pauses--
		s.changed = s.now
		s.members[i].paused, s.members[i].doubts, s.members[i].stood = true, true, s.now
	case resumes:
		s.changed = s.now
		s.members[i].paused = false
		w.check(s) // its run may go on before its manager has looked around
		w.look(s, i)
	case cuts:
		s.cuts--
		w.split(s, set(mv.at))
	case heals:
		s.cut, s.changed = 0, s.now
	}
}

func (w *walker) doView(s *state, mv move) {
	i := int(mv.at)
	switch mv.kind {
	case decides:
		s.verdict++
		s.decided = s.now
		for j := range w.Members {
			if m := &s.members[j]; m.joined && !m.left && !set(mv.at).has(j) {
				s.losers |= one(j)
			}
		}
		return
	case learns:
		i = int(mv.at >> 4)
		s.members[i].knows |= one(int(mv.at & 15))
	case arms:
		s.members[i].armed = true
	case notices:
		m := &s.members[i]
		m.unreachable = w.target(s, i)
		m.doubts = m.doubts && s.losers.has(i)
	case seesDown:
		m := &s.members[i]
		m.down |= s.outside(i)
		m.unreachable &^= m.down
		m.verdict = s.verdict
	case seesGone:
		s.removals--
		s.members[i].gone = s.members[i].down
	case hearsDown:
		s.members[i].told = true
		w.step(s, i, handover.Downed{Why: "a verdict leaves it out"})
		return
	}
	w.shown(s, i)
}

func (w *walker) doMember(s *state, mv move) {
	i := int(mv.at)
	m := &s.members[i]
	switch mv.kind {
	case joins:
		m.joined, m.up, m.verdict = true, true, s.verdict
		for j := range w.Members {
			if o := &s.members[j]; o.up && o.joined && !s.losers.has(j) {
				m.knows |= one(j)
			}
		}
		if s.cut != 0 { // it comes to those who are left
			s.cut &^= one(i)
			if first := slices.IndexFunc(s.members[:], func(o member) bool { return o.up && o.joined && !o.told }); s.cut.has(first) {
				s.cut |= one(i)
			}
		}
		w.shown(s, i)
	case resigns:
		w.resign(s, i)
	case leaves:
		s.leaves--
		m.resigns = true
		s.leaving |= one(i)
		w.lookAll(s)
	case withdraws:
		m.closed = true
		w.lookAll(s)
	case departs:
		m.left = true
		w.end(s, i)
		for j := range w.Members {
			s.members[j].knows &^= one(i)
		}
		w.lookAll(s)
	case endsAgain, endsDone:
		s.ends--
		m.running, m.stopping = false, false
		w.step(s, i, handover.RunEnded{Run: m.run, Again: mv.kind == endsAgain, Rest: w.Handover.HandOverRetryInterval})
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
			w.broken(s, "A", string(name(first))+" and "+string(name(i))+" are active at once")
		}
		first = i
	}
}

// active reports whether a run of a member is active and would find so itself.
func (w *walker) active(s *state, i int) bool {
	m := &s.members[i]
	if !s.live(i) || !m.running || m.stopping {
		return false
	}
	if w.UseLease {
		return int(s.holder) == i && m.token == s.granted
	}
	until, ok := m.m.Until()
	return ok && s.now < until
}
