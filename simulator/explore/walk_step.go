package explore

import (
	"fmt"
	"slices"

	"github.com/serf-sbr/serf-sbr/sbr"
)

func (w *walker) step(s *walkState, i int, e sbr.Event) {
	m := &s.members[i]
	if !m.up {
		return
	}
	m.r, m.at = m.r.Clone(), s.now
	w.carry(s, i, m.r.Step(s.now, e))
}

func (w *walker) tick(s *walkState, i int) {
	m := &s.members[i]
	m.r, m.at = m.r.Clone(), s.now
	w.carry(s, i, m.r.Tick(s.now))
}

// carry turns effects into packets.
func (w *walker) carry(s *walkState, i int, effects []sbr.Effect) {
	for _, e := range slices.Clone(effects) {
		switch e := e.(type) {
		case sbr.ReadLease:
			w.ask(s, i, e.Attempt, e, "read")
		case sbr.AcquireLease:
			if s.members[i].r.Suspects() == 0 {
				w.broken(s, "L3: %s asks for the lease although nobody is unreachable", walkID(i))
			}
			w.ask(s, i, e.Attempt, e, fmt.Sprint("acquire over ", e.Base, e.Verdict.Survivors, e.Verdict.Down, e.TakeOver))
		case sbr.ReleaseLease:
			w.ask(s, i, e.Attempt, e, "release")
		case sbr.TellVerdict:
			w.tell(s, i, e.Targets, sbr.Told{From: walkID(i), Verdict: e.Verdict}, fmt.Sprint("told verdict ", e.Verdict.Token))
		case sbr.TellOrder:
			w.tell(s, i, e.Targets, sbr.Ordered{From: walkID(i), Order: e.Order}, fmt.Sprint("ordered ", e.Order.Kind, e.Order.Down))
		case sbr.AskToRace:
			w.tell(s, i, e.Targets, sbr.Asked{From: walkID(i)}, "asked")
		case sbr.AskStanding:
			w.askStanding(s, i)
		case sbr.Remove:
			for _, id := range e.IDs {
				w.step(s, i, sbr.MemberGone{ID: id})
			}
		case sbr.DownSelf:
			w.end(s, i)
			w.noticed(s, i, true)
			return
		}
	}
}

// ask sends a request to the store.
func (w *walker) ask(s *walkState, i int, attempt uint64, e sbr.Effect, key string) {
	s.members[i].last = max(s.members[i].last, attempt)
	if w.access[i] {
		s.fly(walkPacket{to: i, request: true, attempt: attempt, effect: e, key: key})
	}
}

func (s *walkState) fly(p walkPacket) { s.flying = append(s.flying, p) }

func (w *walker) tell(s *walkState, i int, targets []sbr.ID, e sbr.Event, key string) {
	for _, id := range targets {
		if j := walkIndex(id); s.members[j].up && w.side[i] == w.side[j] {
			s.fly(walkPacket{to: j, from: i, event: e, key: key + " by " + string(walkID(i))})
		}
	}
}

// askStanding asks and answers at once: what may get lost is the answer.
func (w *walker) askStanding(s *walkState, i int) {
	for j := range s.members {
		if m := &s.members[j]; j != i && m.up && !m.paused && w.side[i] == w.side[j] {
			if e := m.r.Answer(walkID(i), 0); e != nil {
				s.fly(walkPacket{to: i, from: j, event: e, key: fmt.Sprintf("answered %T by %s", e, walkID(j))})
			}
		}
	}
}

// end stops a member. What it sent stays under way, what it was to hear is gone.
func (w *walker) end(s *walkState, i int) {
	s.members[i].up, s.members[i].paused, s.members[i].r = false, false, nil
	s.flying = slices.DeleteFunc(s.flying, func(p walkPacket) bool { return p.to == i && !p.request })
}

// noticed lets the others of the side find out that a member does not answer any more, or does again.
func (w *walker) noticed(s *walkState, i int, gone bool) {
	for j := range s.members {
		if j != i && s.members[j].up && w.side[i] == w.side[j] {
			// What was on its way about the same member is overtaken.
			s.flying = slices.DeleteFunc(s.flying, func(p walkPacket) bool {
				r, ok := p.event.(sbr.Reachability)
				return ok && p.to == j && r.ID == walkID(i)
			})
			s.fly(walkPacket{to: j, from: i, event: sbr.Reachability{ID: walkID(i), Unreachable: gone}, key: fmt.Sprintf("notices %s (gone: %v)", walkID(i), gone)})
		}
	}
}

// serve carries out a request at the store, in one step: compare-and-swap makes the steps of a real one equal to that.
func (w *walker) serve(s *walkState, p walkPacket) {
	id := walkID(p.to)
	answer := func(e sbr.Event, key string) {
		if s.members[p.to].up {
			s.fly(walkPacket{to: p.to, attempt: p.attempt, event: e, key: key})
		}
	}
	switch e := p.effect.(type) {
	case sbr.ReadLease:
		answer(sbr.LeaseRead{Attempt: e.Attempt, Record: copyOf(s.record)}, fmt.Sprint("read answered: token ", s.record.Token, s.record.Holder))
	case sbr.ReleaseLease:
		if s.record.Holder == id {
			s.record.Holder = ""
		}
		answer(sbr.LeaseReleased{Attempt: e.Attempt, Done: true}, "released")
	case sbr.AcquireLease:
		out := sbr.Held
		if w.mayWrite(s, p.to, e) {
			w.write(s, p.to, e)
			out = sbr.Granted
		}
		answer(sbr.LeaseAnswer{Attempt: e.Attempt, Outcome: out, Record: copyOf(s.record)}, fmt.Sprint("acquire answered: ", out, s.record.Token, s.record.Holder))
	}
}

// mayWrite is the contract of a lease: a holder that is not up counts as having been silent for long enough.
func (w *walker) mayWrite(s *walkState, i int, e sbr.AcquireLease) bool {
	h := s.record.Holder
	return s.record.Token == e.Base && (h == "" || h == walkID(i) || slices.Contains(e.TakeOver, h) ||
		!s.members[walkIndex(h)].up || s.members[walkIndex(h)].paused)
}

func (w *walker) write(s *walkState, i int, e sbr.AcquireLease) {
	last, v := s.record.Verdict, e.Verdict.Clone()
	v.Token = s.record.Token + 1
	if !last.MayWrite(walkID(i), 0) {
		w.broken(s, "chain: %s writes verdict %d although the last one leaves it out", walkID(i), v.Token)
	}
	for _, id := range v.Survivors {
		if !last.Eligible(id, 0) {
			w.broken(s, "chain: verdict %d brings %s back", v.Token, id)
		}
	}
	s.record = sbr.Record{Holder: walkID(i), Token: v.Token, Verdict: v}
	if !w.Watch {
		return
	}
	for j := range s.members {
		if s.members[j].up && w.access[j] {
			s.fly(walkPacket{to: j, event: sbr.LeaseObserved{Record: copyOf(s.record)}, key: fmt.Sprint("watches token ", v.Token)})
		}
	}
}

// copyOf copies what is handed to a resolver, so that members share nothing.
func copyOf(r sbr.Record) sbr.Record {
	r.Verdict = r.Verdict.Clone()
	return r
}
