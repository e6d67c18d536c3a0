package explore

import (
	"math/bits"
	"time"

	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
)

// What can happen next, next to walk.Waits: time passes until something is due.
const (
	walkArrives walk.Kind = iota + 1 // a packet
	walkDelayed                      // a packet is late from now on
	walkLostNow                      // a packet is lost (only without reduction)
	walkDue                          // a deadline of a member
	walkCrashes
	walkPauses
	walkContinues
	walkLeaves
	walkRemoves // at: the member and whom it removes
	walkRestarts
	walkForgets // at: how many of the verdicts are left
	walkLooksUp // a member that is not told of changes reads the lease
)

// pairOf puts two members into the place of a move, ofPair takes them out.
func pairOf(i, j int) uint8 { return uint8(i*MaxMembers + j) }

func ofPair(at uint8) (i, j int) { return int(at) / MaxMembers, int(at) % MaxMembers }

// Moves appends every step that can follow s. Where nothing happens by itself any more it looks whether all
// is as it should be.
func (w *walker) Moves(all []walk.Move, s *walkState) []walk.Move {
	all = w.moves(all, s)
	if !w.quiet(s) {
		return all
	}
	if i := w.unaware(s); i >= 0 {
		return append(all, walk.Move{Kind: walkLooksUp, At: uint8(i)})
	}
	w.search.Rests++
	w.checkRest(s)
	if w.rested != nil {
		w.rested(s)
	}
	return all
}

// moves appends every step that can follow s.
func (w *walker) moves(all []walk.Move, s *walkState) []walk.Move {
	if k := w.cutSight(s); k >= 0 && !w.plain {
		return w.cutMoves(all, s, k)
	}
	waiting := 0
	for k, p := range s.flying {
		if w.held(s, p) {
			continue
		}
		if !p.late() {
			waiting++
		}
		if k == 0 || s.flying[k-1] != p { // two that are equal do the same
			all = append(all, walk.Move{Kind: walkArrives, At: uint8(k)})
		}
	}
	all = w.lateMoves(all, s, waiting)
	due := false
	for i := range w.n {
		if w.dueIn(s, i) == 0 {
			due = true
			all = append(all, walk.Move{Kind: walkDue, At: uint8(i)})
		}
	}
	if waiting == 0 && !due && w.Pass(s) != never {
		all = append(all, walk.Move{Kind: walk.Waits})
	}
	for i := range w.n {
		switch {
		case !s.up(i):
		case s.isPaused(i):
			all = append(all, walk.Move{Kind: walkContinues, At: uint8(i)})
		default:
			if s.Crashes > 0 {
				all = append(all, walk.Move{Kind: walkCrashes, At: uint8(i)})
			}
			if s.Pauses > 0 {
				all = append(all, walk.Move{Kind: walkPauses, At: uint8(i)})
			}
			all = w.deeds(all, s, i)
		}
	}
	if s.Forgets > 0 && s.record.token > 0 {
		for k := range s.record.token {
			all = append(all, walk.Move{Kind: walkForgets, At: uint8(k)})
		}
	}
	return all
}

// deeds appends what an operator may do to member i.
func (w *walker) deeds(all []walk.Move, s *walkState, i int) []walk.Move {
	if s.Leaves > 0 {
		all = append(all, walk.Move{Kind: walkLeaves, At: uint8(i)})
	}
	if s.Restarts > 0 && i < w.first && w.access>>i&1 != 0 && w.mateOf(s, i) {
		all = append(all, walk.Move{Kind: walkRestarts, At: uint8(i)})
	}
	for j := 0; s.Removals > 0 && j < w.n; j++ {
		if w.members[i].locals[s.local[i]].failed>>j&1 != 0 {
			all = append(all, walk.Move{Kind: walkRemoves, At: pairOf(i, j)})
		}
	}
	return all
}

// cutSight is the place of the first packet on time in which a member notices a member on the other side; -1
// if there is none.
func (w *walker) cutSight(s *walkState) int {
	for k, p := range s.flying {
		if e := &w.events.all[p.event()]; e.what == walkSight && e.flag == sightCut && !p.late() &&
			!s.isPaused(p.member()) {
			return k
		}
	}
	return -1
}

// cutMoves: what the detectors find at one moment, before anything is decided about it, leads to the same in
// every order. So the first one comes first, and all that is open is whether it is late.
func (w *walker) cutMoves(all []walk.Move, s *walkState, k int) []walk.Move {
	all = append(all, walk.Move{Kind: walkArrives, At: uint8(k)})
	if s.Lost > 0 && w.LateCut {
		all = append(all, walk.Move{Kind: walkDelayed, At: uint8(k)})
	}
	return all
}

// lateMoves says which packets may be late from now on. A packet that is not late may still arrive at any
// time before the clock moves, so it is enough to say that it is late when nothing else keeps the clock from
// moving.
func (w *walker) lateMoves(all []walk.Move, s *walkState, waiting int) []walk.Move {
	if s.Lost == 0 || waiting > s.Lost && !w.plain {
		return all
	}
	for k, p := range s.flying {
		e := &w.events.all[p.event()]
		if p.late() || w.held(s, p) || k > 0 && s.flying[k-1] == p || e.what == walkSight && e.flag == sightCut &&
			!w.LateCut {
			continue
		}
		all = append(all, walk.Move{Kind: walkDelayed, At: uint8(k)})
		if w.plain && e.what != walkSight { // a detector looks again and again
			all = append(all, walk.Move{Kind: walkLostNow, At: uint8(k)})
		}
	}
	return all
}

// held reports whether a packet waits for a paused member to go on.
func (w *walker) held(s *walkState, p walkPacket) bool {
	return s.isPaused(p.member()) && !w.events.all[p.event()].request()
}

// dueIn is how long until member i's next deadline.
func (w *walker) dueIn(s *walkState, i int) time.Duration {
	if !s.up(i) || s.isPaused(i) {
		return never
	}
	return w.members[i].locals[s.local[i]].due
}

// Pass is how long until anything happens by itself; never: nothing does.
func (w *walker) Pass(s *walkState) time.Duration {
	next := never
	for i := range w.n {
		next = min(next, w.dueIn(s, i))
	}
	for _, at := range w.Noticed {
		if at > s.clock {
			next = min(next, at-s.clock)
		}
	}
	return next
}

// quiet reports whether nothing happens by itself any more, but for members that go on asking a store they do
// not reach.
func (w *walker) quiet(s *walkState) bool {
	if s.clock < w.lastNotice() {
		return false
	}
	for i := range w.n {
		if !s.up(i) {
			continue
		}
		l := &w.members[i].locals[s.local[i]]
		if s.isPaused(i) || l.due != never && (w.access>>i&1 != 0 || l.busy) {
			return false
		}
	}
	for _, p := range s.flying {
		// a detector looks again and again, and so does gossip
		if e := w.events.all[p.event()].what; !p.late() || e == walkSight || e == walkMet {
			return false
		}
	}
	return true
}

// unaware is a member for which reading the lease would be news, -1 if there is none. Where the lease is not
// watched the first three members read it every stable-after: the walk lets them when nothing else happens
// any more.
func (w *walker) unaware(s *walkState) int {
	for i := range w.n {
		if l := &w.members[i].locals[s.local[i]]; !w.Watch && w.access>>i&1 != 0 && s.up(i) && !l.racing &&
			l.verdict.token < s.record.token && bits.OnesCount8(l.reach&(1<<i-1)) < walkReaders {
			return i
		}
	}
	return -1
}

// walkReaders is how many of the first members of a side read a lease that is not watched.
const walkReaders = 3

// lastNotice is when the last side notices the cut.
func (w *walker) lastNotice() (last time.Duration) {
	for _, at := range w.Noticed {
		last = max(last, at)
	}
	return last
}

// Do carries out a step: s becomes what follows.
func (w *walker) Do(s *walkState, m walk.Move) {
	i := int(m.At)
	switch m.Kind {
	case walkArrives:
		p := s.take(i)
		if e := &w.events.all[p.event()]; e.request() {
			w.serve(s, p, e)
		} else {
			w.step(s, p.member(), p.event(), p.age())
		}
	case walkDelayed:
		s.Lost--
		s.fly(s.take(i) | walkLate)
	case walkLostNow:
		s.Lost--
		s.take(i)
	case walk.Waits:
		w.wait(s)
	case walkDue:
		w.step(s, i, 0, 0)
	case walkCrashes:
		s.Crashes--
		s.crashed |= 1 << i
		w.end(s, i)
	case walkPauses:
		s.Pauses--
		s.paused |= 1 << i
		w.noticed(s, i, sightGone)
	case walkLeaves:
		s.Leaves--
		s.crashed |= 1 << i // it is down by its own will
		w.records(s, i)
		w.stop(s, i)
		w.gossip(s, i, walkEvent{what: walkLeft, who: int8(i), base: s.seen[i]})
	case walkRemoves:
		s.Removals--
		i, j := ofPair(m.At)
		gone := walkEvent{what: walkUnlisted, who: int8(j)}
		w.gossip(s, i, gone)
		w.step(s, i, w.events.intern(gone), 0)
	case walkRestarts:
		s.Restarts--
		s.crashed |= 1 << i
		w.restart(s, i)
	case walkForgets:
		s.Forgets--
		w.forget(s, int(m.At))
	case walkLooksUp:
		w.step(s, i, w.events.intern(walkEvent{what: walkObserved, record: s.record}), 0)
	case walkContinues:
		s.paused &^= 1 << i
		w.step(s, i, 1, 0)
		if s.up(i) {
			w.noticed(s, i, sightBack)
		}
	}
}
