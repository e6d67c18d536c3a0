package explore

import (
	"slices"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// wait lets time pass until something is due.
func (w *walker) wait(s *walkState) {
	by := w.Pass(s)
	if w.waited != nil {
		w.waited(by)
	}
	w.looks.waits(w, s, by)
	for i := range w.n {
		if s.up(i) {
			s.local[i] = w.members[i].wait(s.local[i], by)
		}
	}
	if before := s.clock; before < w.lastNotice() {
		s.clock += by
		w.notice(s)
	}
}

// notice lets the members of the sides for which it is time notice the cut.
func (w *walker) notice(s *walkState) {
	for i := range w.n {
		at := s.clock
		if len(w.Noticed) > 0 {
			at = w.Noticed[w.side[i]]
		}
		if at != s.clock || !s.up(i) {
			continue
		}
		for j := range w.n {
			if w.side[i] != w.side[j] {
				s.fly(newWalkPacket(i, w.events.intern(walkEvent{what: walkSight, who: int8(j), flag: sightCut}), 0))
			}
		}
	}
}

// step lets an event happen to a member.
func (w *walker) step(s *walkState, i int, event uint32, age uint16) {
	if !s.up(i) {
		return
	}
	t := w.members[i].step(s.local[i], event, age)
	if w.stepped != nil {
		w.stepped(i, event, age, t)
	}
	w.follow(s, i, t)
}

// follow lets what a step has led to happen.
func (w *walker) follow(s *walkState, i int, t *walkEffects) {
	if t.to == 0 {
		w.looks.ends(w, s, i)
	}
	if t.wrong != nil {
		w.broken(s, t.wrong)
	}
	s.local[i] = t.to
	if t.attempts > 0 {
		s.older(i, t.attempts, &w.events)
	}
	for k := range t.effects {
		switch e := &t.effects[k]; {
		case e.ask:
			w.askStanding(s, i)
		case e.to == 0:
			if w.events.all[e.event].request() && w.access>>i&1 != 0 {
				s.fly(newWalkPacket(i, e.event, e.age))
			}
		default:
			for j := range w.n {
				if e.to>>j&1 != 0 && s.up(j) {
					s.fly(newWalkPacket(j, e.event, 0))
				}
			}
		}
	}
	if t.to == 0 {
		w.end(s, i)
		return
	}
	w.checkMember(s, i)
}

// older says of whatever belongs to an attempt of member i that i has made more of them since.
func (s *walkState) older(i int, by uint16, events *walkEvents) {
	for k, p := range s.flying {
		if p.member() == i && events.all[p.event()].numbered() {
			s.flying[k] = p + walkPacket(by)<<32
		}
	}
	slices.Sort(s.flying)
}

// askStanding asks and answers at once: what may get lost is the answer.
func (w *walker) askStanding(s *walkState, i int) {
	for j := range w.n {
		if w.mates[i]>>j&1 != 0 && s.up(j) && !s.isPaused(j) {
			if e := w.members[j].answer(s.local[j], i); e != 0 {
				s.fly(newWalkPacket(i, e, 0))
			}
		}
	}
}

// end stops a member. What it sent stays under way, what it was to hear is gone.
func (w *walker) end(s *walkState, i int) {
	w.stop(s, i)
	w.noticed(s, i, sightGone)
}

func (w *walker) stop(s *walkState, i int) {
	s.local[i] = 0
	s.paused &^= 1 << i
	kept := s.flying[:0]
	for _, p := range s.flying {
		switch {
		case p.member() != i:
			kept = append(kept, p)
		case w.events.all[p.event()].request():
			kept = append(kept, p&^(0xffff<<32)) // no member waits for an answer
		}
	}
	s.flying = kept
	slices.Sort(s.flying)
}

// gossip sends the other members of a side something that Serf spreads.
func (w *walker) gossip(s *walkState, i int, e walkEvent) {
	for j := range w.n {
		if w.mates[i]>>j&1 != 0 && s.up(j) {
			s.fly(newWalkPacket(j, w.events.intern(e), 0))
		}
	}
}

// noticed lets the others of the side find out that a member does not answer any more (sightGone), or does
// again (sightBack).
func (w *walker) noticed(s *walkState, i int, flag uint8) {
	now := w.events.intern(walkEvent{what: walkSight, who: int8(i), flag: flag, base: s.seen[i]})
	for j := range w.n {
		if w.mates[i]>>j&1 == 0 || !s.up(j) {
			continue
		}
		// What was on its way about the same member is overtaken.
		s.flying = slices.DeleteFunc(s.flying, func(p walkPacket) bool {
			e := &w.events.all[p.event()]
			return p.member() == j && e.what == walkSight && int(e.who) == i
		})
		s.fly(newWalkPacket(j, now, 0))
	}
}

// serve carries out a request at the store, in one step: compare-and-swap makes the steps of a real one equal
// to that.
func (w *walker) serve(s *walkState, p walkPacket, e *walkEvent) {
	i := p.member()
	answer := walkEvent{what: walkReleaseAnswer}
	switch e.what {
	case walkRead:
		answer = walkEvent{what: walkReadAnswer, record: s.record}
	case walkRestore:
		if v := e.record.verdict; s.record.token < v.token {
			s.record = walkRecord{token: v.token, verdict: v}
			w.changed(s)
		}
		answer = walkEvent{what: walkReadAnswer, record: s.record}
	case walkRelease:
		if int(s.record.holder) == i+1 {
			s.record.holder = 0
		}
	case walkRecords:
		if s.record.verdict.token == e.base && s.record.left|e.mask != s.record.left {
			s.record.left |= e.mask
			w.changed(s)
		}
	case walkAcquire:
		answer = walkEvent{what: walkAcquireAnswer, flag: uint8(sbr.Held)}
		if w.mayWrite(s, i, e) {
			w.write(s, i, e)
			answer.flag = uint8(sbr.Granted)
		}
		answer.record = s.record
	}
	if s.up(i) {
		s.fly(newWalkPacket(i, w.events.intern(answer), p.age()))
	}
}

// records sends what a member that leaves asks to record. It does not wait for an answer.
func (w *walker) records(s *walkState, i int) {
	for _, e := range w.members[i].locals[s.local[i]].r.Clone().Step(0, sbr.Left{}) {
		if l, ok := e.(sbr.RecordLeave); ok && w.access>>i&1 != 0 {
			s.fly(newWalkPacket(i, w.events.intern(walkEvent{what: walkRecords, base: uint16(l.Token), mask: walkBits(l.Gone)}), 0))
		}
	}
}

// mayWrite is the contract of a lease: a holder that is not up counts as having been silent for long enough.
func (w *walker) mayWrite(s *walkState, i int, e *walkEvent) bool {
	h := int(s.record.holder) - 1
	return s.record.token == e.base && (h < 0 || h == i || e.mask>>h&1 != 0 || !s.up(h) || s.isPaused(h))
}

func (w *walker) write(s *walkState, i int, e *walkEvent) {
	v := e.record.verdict
	v.token = s.record.token + 1
	w.checkWrite(s, i, v)
	w.overwrites(s, v)
	s.record = walkRecord{holder: int8(i) + 1, token: v.token, verdict: v}
	w.changed(s)
}

// changed lets the members that watch the record see it.
func (w *walker) changed(s *walkState) {
	if !w.Watch {
		return
	}
	observed := w.events.intern(walkEvent{what: walkObserved, record: s.record})
	for j := range w.n {
		if s.up(j) && w.access>>j&1 != 0 {
			s.fly(newWalkPacket(j, observed, 0))
		}
	}
}

// mateOf reports whether the side has a member that a new life of member i can join: the last verdict does
// not leave it out.
func (w *walker) mateOf(s *walkState, i int) bool {
	last := s.record.verdict.verdict()
	for j := range w.n {
		if w.mates[i]>>j&1 != 0 && s.up(j) && !s.isPaused(j) &&
			last.Standing(walkID(j), uint64(s.seen[j])) != sbr.Out {
			return true
		}
	}
	return false
}

// restart ends member i and starts its next life, which has read the store, and knows whom the life before
// could not reach. The others of the side meet it, which may come late like any other message.
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
	t := c.done()
	if r.State() != sbr.StateDown {
		t.to = m.intern(r, 0, c.last, c.unrest)
	}
	w.follow(s, k, &t)
}

// listed reports whether a new life of the side hears of member j, which another member of the side lists as
// alive. A member of the other side is noticed later, as the others have or will.
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

// forget takes the store back to the verdict of a token, zero for none.
func (w *walker) forget(s *walkState, token int) {
	s.forgot = s.written
	s.record = walkRecord{token: uint16(token)}
	for _, v := range s.chain[:s.written] {
		if int(v.token) == token {
			s.record.verdict = v
		}
	}
	w.changed(s)
}

// overwrites notes a verdict that is written. S1 excepts a verdict that replaces a forgotten one, if no
// survivor who knew the forgotten verdict could tell the store.
func (w *walker) overwrites(s *walkState, v walkVerdict) {
	if w.Forgets == 0 {
		return
	}
	if s.forgot > 0 {
		s.excepted = s.excepted || !w.couldTell(s, s.chain[s.forgot-1])
		s.forgot = 0
	}
	if !s.knows(v) && s.written < walkChain {
		s.chain[s.written] = v
		s.written++
	}
}

// couldTell reports whether a survivor of the verdict that knows it reaches the store.
func (w *walker) couldTell(s *walkState, v walkVerdict) bool {
	lost := v.verdict()
	for i := range w.n {
		if !s.up(i) || s.isPaused(i) || w.access>>i&1 == 0 {
			continue
		}
		if lost.Standing(walkID(i), uint64(s.seen[i])) == sbr.Survivor &&
			w.members[i].locals[s.local[i]].verdict.token >= v.token {
			return true
		}
	}
	return false
}

// knows reports whether a verdict, or the part of one, was written before; only where the store may forget.
func (s *walkState) knows(v walkVerdict) bool {
	return slices.ContainsFunc(s.chain[:s.written], func(c walkVerdict) bool {
		return c.token == v.token && (c == v || v.partial && v.survivors&^c.survivors == 0)
	})
}
