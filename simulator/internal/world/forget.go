package world

import (
	"slices"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// A store can forget: the record is deleted, or comes back from a backup. A process that knows the newest
// verdict may tell it again.

// Backup is what the store held at one moment.
type Backup struct{ state state }

// Backup returns what the store holds now.
func (w *World) Backup() Backup { return Backup{w.store.state} }

// Forget deletes the record.
func (w *World) Forget() { w.store.replace(state{}, "deleted") }

// Restore makes the store hold what it held when the backup was made.
func (w *World) Restore(b Backup) { w.store.replace(b.state, "restored") }

// replace puts a record in the place of the present one, whatever process wrote that. Its version is a new
// one, as that of every real store is.
func (s *store) replace(next state, how string) {
	w, old := s.w, s.state
	next.writes = old.writes + 1
	s.state = next
	w.note(nil, "store", "the record is %s: token %d, it was %d", how, next.record.Token, old.record.Token)
	w.disturb()
	s.wentBack = true
	for _, p := range w.procs {
		p.watch.harmed = true // promise L1 is about a store that keeps what it was given
	}
	if next.record.Token < old.record.Token && old.record.Verdict != nil {
		s.lost = &forgotten{verdict: old.record.Verdict}
	}
	s.changed()
}

// forgotten is a verdict that the store has lost.
type forgotten struct {
	verdict *sbr.Verdict
	// known says that a survivor of it saw what the store held before another verdict was written in its
	// place, which next is.
	known bool
	next  *sbr.Verdict
}

// witnessed notes that a process sees the record as it is.
func (s *store) witnessed(p *process) {
	l := s.lost
	if l != nil && l.next == nil && p.r != nil && l.remembers(p) &&
		l.verdict.Standing(p.id, p.self.Seen) == sbr.Survivor {
		l.known = true
	}
}

// known reports whether the verdict was written before.
func (s *store) known(v *sbr.Verdict) bool {
	return v != nil && s.wentBack && slices.ContainsFunc(s.chain, func(c sbr.Verdict) bool {
		return c.Token == v.Token && slices.Equal(c.Survivors, v.Survivors) && slices.Equal(c.Down, v.Down)
	})
}

// toldAgain notes that the store was told a verdict that it had forgotten.
func (s *store) toldAgain(by *process, r *lease.Record) {
	s.w.note(by, "told again", "verdict %d", r.Token)
	if s.lost != nil && r.Token >= s.lost.verdict.Token {
		s.lost = nil
	}
}

// overwritten notes that a new verdict replaces a verdict that the store had lost.
func (s *store) overwritten(v *sbr.Verdict) {
	if l := s.lost; l != nil && l.next == nil {
		l.next = v
	}
}

// remembers reports whether a process knows the lost verdict, or a later one.
func (l *forgotten) remembers(p *process) bool {
	v := p.r.Verdict()
	return v.Token > l.verdict.Token || v.Token == l.verdict.Token &&
		slices.Equal(v.Survivors, l.verdict.Survivors)
}

// excuses reports whether a promise may be broken now: no member that knew the lost verdict could tell the
// store before another was written, and none of its survivors reaches the store now. Tokens begin anew as
// well once no member is up that knew the lost verdict, or another was written in its place: a fence refuses
// them.
func (s *store) excuses(promise string) bool {
	l, tokens := s.lost, slices.Contains([]string{"X2", "X3", "Y2", "Y3"}, promise)
	atWork := func(p *process) bool { return p.r.State() == sbr.StateUp && l.remembers(p) }
	switch {
	case l == nil:
		return false
	case tokens:
		return l.next != nil && !l.known || !slices.ContainsFunc(s.w.up(), atWork)
	case l.next == nil, l.known, !slices.Contains([]string{"S1", "S2", "S3", "chain", "token"}, promise):
		return false
	}
	return !slices.ContainsFunc(s.w.procs, func(p *process) bool {
		return p.attends() && l.verdict.Standing(p.id, p.self.Seen) == sbr.Survivor && p.node.fault == StoreFault{}
	})
}
