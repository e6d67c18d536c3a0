package explore

import (
	"slices"

	"github.com/serf-sbr/serf-sbr/sbr"
)

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

// overwrites notes a verdict that is written. One that stands in the place of a verdict that the store has forgotten, while no survivor
// who knew that could tell the store, is what S1 excepts.
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
		if lost.Standing(walkID(i), uint64(s.seen[i])) == sbr.Survivor && w.members[i].locals[s.local[i]].verdict.token >= v.token {
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
