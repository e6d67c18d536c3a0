package explore

import "github.com/serf-sbr/serf-sbr/sbr"

// mateOf reports whether there is somebody of the side whom a new life of member i can join: one that the last verdict does not leave out.
func (w *walker) mateOf(s *walkState, i int) bool {
	last := s.record.verdict.verdict()
	for j := range w.n {
		if w.mates[i]>>j&1 != 0 && s.up(j) && !s.isPaused(j) && last.Standing(walkID(j), uint64(s.seen[j])) != sbr.Out {
			return true
		}
	}
	return false
}

// restart ends member i and starts its next life: that has read the store, and knows whom the one before could not reach. The others of the
// side meet it, which may come late like any other message.
func (w *walker) restart(s *walkState, i int) {
	k := w.first + i
	var suspects []sbr.Member
	snapshot := w.members[i].locals[s.local[i]].r.Snapshot()
	for _, m := range snapshot.Members {
		if m.Unreachable && m.Status <= sbr.Up {
			suspects = append(suspects, m)
		}
	}
	w.end(s, i)
	s.seen[k] = s.record.token
	w.gossip(s, k, walkEvent{what: walkMet, who: int8(k), base: s.seen[k], mask: 1 << i})
	r, err := sbr.New(w.Resolver, w.Strategy, walkLife(k, s.seen[k]), 0)
	if err != nil {
		panic(err) // a mistake in the program
	}
	r.SkipAttempts(walkFirstAttempt)
	m := &w.members[k]
	c := walkCarrier{m: m, r: r, first: walkFirstAttempt, last: walkFirstAttempt}
	c.carry(r.Step(0, sbr.LeaseObserved{Record: s.record.record()}))
	c.carry(r.Step(0, sbr.Suspected{Members: suspects}))
	for j := range w.n {
		if j != k && w.listed(s, k, j) {
			c.carry(r.Step(0, sbr.MemberSeen{Member: walkLife(j, s.seen[j])}))
		}
	}
	t := c.effects
	t.attempts = uint16(c.last - walkFirstAttempt)
	for n := range t.effects {
		if x := &t.effects[n]; w.events.all[x.event].request() {
			x.age = t.attempts - x.age
		}
	}
	if r.State() != sbr.StateDown {
		t.to = m.intern(r, 0, c.last, c.unrest)
	}
	w.follow(s, k, &t)
}

// listed reports whether a new life of the side hears of member j, which another one of the side lists as alive. One on the other side is
// noticed later, as the others have or will.
func (w *walker) listed(s *walkState, k, j int) bool {
	if w.mates[k]>>j&1 != 0 {
		return s.up(j)
	}
	for i := range w.n {
		if w.mates[k]>>i&1 == 0 || !s.up(i) || w.members[i].locals[s.local[i]].reach>>j&1 == 0 {
			continue
		}
		if len(w.Noticed) == 0 || s.clock >= w.Noticed[w.side[k]] {
			s.fly(newWalkPacket(k, w.events.intern(walkEvent{what: walkSight, who: int8(j), flag: sightCut}), 0))
		}
		return true
	}
	return false
}
