package slots

import (
	"math/bits"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/singleton/handover"
)

// moveKind is what can happen next.
type moveKind uint8

const (
	waits moveKind = iota
	delivers
	copies
	delays
	arms
	learns
	joins
	cuts
	heals
	crashes
	pauses
	resumes
	decides
	seesDown
	seesGone
	notices
	hearsDown
	resigns
	leaves
	withdraws
	departs
	endsAgain
	endsDone
	grants
	expires
	loses
	doubts
)

// move is something that can happen next: at is the member, the letter or, for cuts and decides, the set.
type move struct {
	kind moveKind
	at   uint8
}

// live reports whether a member does anything.
func (s *state) live(i int) bool {
	return s.members[i].up && s.members[i].joined && !s.members[i].paused
}

// target is whom a member will find that it does not reach.
func (w *walker) target(s *state, i int) (t set) {
	m := &s.members[i]
	for j := range w.Members {
		o := &s.members[j]
		if j != i && m.knows.has(j) && !m.down.has(j) && (!o.up || o.paused || s.cut.has(i) != s.cut.has(j)) {
			t |= one(j)
		}
	}
	return t
}

// counts reports whether a member is part of the cluster: it is there, or was and others know it.
func (w *walker) counts(s *state, i int) bool {
	m := &s.members[i]
	if !m.joined || m.left {
		return false
	}
	known := m.up
	for j := range w.Members {
		known = known || s.live(j) && s.members[j].knows.has(i)
	}
	return known
}

// whole reports whether all that are left can talk, and know it.
func (w *walker) whole(s *state) bool {
	side := -1
	for i := range w.Members {
		m := &s.members[i]
		if s.losers.has(i) || !w.counts(s, i) {
			continue
		}
		if !s.live(i) || w.target(s, i) != 0 || m.unreachable != 0 || m.doubts {
			return false
		}
		here := 0
		if s.cut.has(i) {
			here = 1
		}
		if side >= 0 && here != side {
			return false
		}
		side = here
	}
	return true
}

// outside is whom a member has yet to see as down.
func (s *state) outside(i int) set { return s.losers & s.members[i].knows &^ s.members[i].down }

// unaware reports whether a member has yet to notice a change of whom it reaches.
func (w *walker) unaware(s *state, i int) bool {
	m := &s.members[i]
	return m.unreachable != w.target(s, i) || m.doubts && !s.losers.has(i)
}

// duties are what happens before time passes.
func (w *walker) duties(to []move, s *state) []move {
	whole := w.whole(s)
	for i := range w.Members {
		m := &s.members[i]
		if !s.live(i) {
			continue
		}
		for j := range w.Members {
			if s.members[j].joined && s.members[j].up && !m.knows.has(j) && j != i && !s.losers.has(j) && s.cut.has(i) == s.cut.has(j) {
				to = append(to, move{learns, uint8(i<<4 | j)})
			}
		}
		switch {
		case !m.m.Finished() || m.told || !whole:
		case s.leaving.has(i):
			to = append(to, move{departs, uint8(i)})
		case !m.closed:
			to = append(to, move{withdraws, uint8(i)})
		}
		if m.waits && s.holder < 0 {
			to = append(to, move{grants, uint8(i)})
		}
		if !m.armed && i < w.Members-w.Joins && w.known(s, i) {
			to = append(to, move{arms, uint8(i)})
		}
	}
	return to
}

// known reports whether everybody knows a member.
func (w *walker) known(s *state, i int) bool {
	for j := range w.Members {
		if o := &s.members[j]; j != i && o.up && o.joined && !s.losers.has(j) && (!o.knows.has(i) || !s.members[i].knows.has(j)) {
			return false
		}
	}
	return true
}

// overdue reports whether somebody has to notice something before more time passes.
func (w *walker) overdue(s *state) bool {
	for i := range w.Members {
		if !s.live(i) {
			continue
		}
		if w.unaware(s, i) && s.now >= s.changed+w.notice || !s.losers.has(i) && s.outside(i) != 0 && s.now >= s.decided+w.notice {
			return true
		}
	}
	return false
}

// views are what members may notice at this moment, or later.
func (w *walker) views(to []move, s *state) []move {
	for i := range w.Members {
		m := &s.members[i]
		if !s.live(i) {
			continue
		}
		if w.unaware(s, i) {
			to = append(to, move{notices, uint8(i)})
		}
		if s.losers.has(i) && !m.told {
			to = append(to, move{hearsDown, uint8(i)})
		}
		if !s.losers.has(i) && s.outside(i) != 0 {
			to = append(to, move{seesDown, uint8(i)})
		}
		if m.down&^m.gone != 0 && s.removals > 0 {
			to = append(to, move{seesGone, uint8(i)})
		}
		if !m.armed && i >= w.Members-w.Joins && w.known(s, i) {
			to = append(to, move{arms, uint8(i)})
		}
	}
	return append(w.verdicts(to, s), w.ofLease(nil, s)...)
}

// verdicts are the sides that may win.
func (w *walker) verdicts(to []move, s *state) []move {
	if s.now < s.changed+w.StableAfter {
		return to
	}
	for side := range 2 {
		var stay set
		ready, amiss := true, false
		for i := range w.Members {
			if !s.live(i) || s.losers.has(i) || s.cut.has(i) != (side == 1) {
				continue
			}
			stay |= one(i)
			ready = ready && !w.unaware(s, i)
			amiss = amiss || s.members[i].unreachable&^s.losers != 0
		}
		if stay != 0 && ready && amiss {
			to = append(to, move{decides, uint8(stay)})
		}
	}
	return to
}

// ofLease are a lease that runs out.
func (w *walker) ofLease(to []move, s *state) []move {
	if s.holder >= 0 && (!s.members[s.holder].up || s.members[s.holder].paused) {
		to = append(to, move{expires, 0})
	}
	return to
}

// faults are what may happen as long as there is a budget.
func (w *walker) faults(to []move, s *state) []move {
	whole := w.whole(s)
	for i := range w.Members {
		m, at := &s.members[i], uint8(i)
		if m.up && m.joined && m.paused {
			to = append(to, move{resumes, at})
		}
		if whole && !m.joined {
			to = append(to, move{joins, at})
			break // in their order
		}
		if !s.live(i) {
			continue
		}
		if s.crashes > 0 {
			to = append(to, move{crashes, at})
		}
		if s.pauses > 0 {
			to = append(to, move{pauses, at})
		}
		if s.resigns > 0 && m.armed && !m.resigns {
			to = append(to, move{resigns, at})
		}
		if s.leaves > 0 && whole && m.armed && !m.resigns && !s.losers.has(i) {
			to = append(to, move{leaves, at})
		}
		if s.ends > 0 && m.running && !m.stopping {
			to = append(to, move{endsAgain, at}, move{endsDone, at})
		}
		if s.doubts > 0 && m.waits {
			to = append(to, move{doubts, at})
		}
	}
	if s.losses > 0 && s.holder >= 0 && s.live(int(s.holder)) {
		to = append(to, move{loses, 0})
	}
	return w.cutting(to, s)
}

// cutting are the ways to cut the cluster, and to heal it.
func (w *walker) cutting(to []move, s *state) []move {
	var all set
	for i := range w.Members {
		if s.members[i].joined && s.members[i].up {
			all |= one(i)
		}
	}
	if s.cut != 0 && s.losers&all == 0 {
		to = append(to, move{heals, 0})
	}
	if s.cuts == 0 || s.cut != 0 {
		return to
	}
	first := one(bits.TrailingZeros8(uint8(all)))
	for side := set(1); side < one(w.Members); side++ {
		if side&^all == 0 && side&first == 0 {
			to = append(to, move{cuts, uint8(side)})
		}
	}
	return to
}

// moves appends what can happen next. It is complete: whatever is not in it, cannot be.
func (w *walker) moves(to []move, s *state) []move {
	prompt := 0
	order := s.sorted()
	for k := range s.letters {
		if l := &s.letters[k]; !l.late && s.live(int(l.to)) {
			prompt++
		}
	}
	for _, k := range order {
		l := &s.letters[k]
		if !s.live(int(l.to)) {
			continue
		}
		to = append(to, move{delivers, uint8(k)})
		between := l.kind <= unserved
		if between && !l.late && s.twice > 0 {
			to = append(to, move{copies, uint8(k)})
		}
		if !l.late && prompt <= int(s.late+s.slow) && (between && s.late > 0 || l.kind == runEnded && s.slow > 0) {
			to = append(to, move{delays, uint8(k)})
		}
	}
	duties := len(to)
	to = w.duties(to, s)
	idle := duties == len(to) && prompt == 0 && !w.overdue(s)
	to = w.views(to, s)
	to = w.faults(to, s)
	if idle && w.next(s, len(to) > 0) > 0 {
		to = append(to, move{kind: waits})
	}
	return to
}

// next is how long it takes until something more can happen: a step while anything may happen at any moment. Zero: nothing will.
func (w *walker) next(s *state, anything bool) (by time.Duration) {
	due := func(t time.Duration) {
		if t > s.now && (by == 0 || t-s.now < by) {
			by = t - s.now
		}
	}
	due(s.changed + w.notice)
	due(s.changed + w.StableAfter)
	due(s.decided + w.notice)
	for i := range w.Members {
		if s.live(i) {
			if at, ok := s.members[i].m.NextDeadline(); ok {
				due(max(at, s.now+w.Step))
			}
		}
	}
	if by > 0 && anything {
		return w.Step
	}
	return by
}

// wait lets time pass.
func (w *walker) wait(s *state, by time.Duration) {
	s.now += by
	for i := range w.Members {
		if !s.live(i) {
			continue
		}
		w.look(s, i)
		if at, ok := s.members[i].m.NextDeadline(); ok && s.live(i) && at <= s.now {
			w.carry(s, i, s.machine(i).Tick(s.now))
			if at, ok := s.members[i].m.NextDeadline(); ok && at <= s.now {
				w.broken(s, "D", string(name(i))+"'s deadline stands still in the phase "+s.members[i].m.Phase().String())
			}
		}
	}
}

// lookAll shows everybody a change that all see at once.
func (w *walker) lookAll(s *state) {
	for i := range w.Members {
		s.members[i].peers = nil
	}
	for i := range w.Members {
		if s.live(i) {
			w.look(s, i)
		}
	}
}

// shown shows a member its view, which has changed.
func (w *walker) shown(s *state, i int) {
	s.members[i].peers = nil
	w.look(s, i)
}

// split drops what was under way between the sides.
func (w *walker) split(s *state, side set) {
	s.cut, s.changed = side, s.now
	s.letters = slices.DeleteFunc(slices.Clone(s.letters), func(l letter) bool { return !l.late && side.has(int(l.from)) != side.has(int(l.to)) })
}

const patience = 2 // of a member that resigns, in retry intervals

func (w *walker) resign(s *state, i int) {
	s.resigns--
	s.members[i].resigns = true
	w.step(s, i, handover.Resign{Patience: patience * w.Handover.HandOverRetryInterval})
}
