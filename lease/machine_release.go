package lease

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// giveUp ends the tenure because this owner asked for it, and returns its nonce, empty if there was none.
// What the record says from here on is an unresolved grant.
func (m *Machine) giveUp() string {
	t := m.tenure
	if t == nil {
		return ""
	}
	m.endTenure(ErrReleased)
	m.unresolved[t.nonce] = unresolvedGrant{terms: t.terms}
	m.gaveUp++
	return t.nonce
}

// isOver answers the release of a tenure that a later one has followed: that is not for it to end.
func (m *Machine) isOver(op *operation) bool {
	of := op.do.(ReleaseOp).Tenure
	if of == 0 || m.tenure == nil || m.tenure.id == of {
		return false
	}
	m.finish(op, Finished{Err: ErrNotHeld})
	return true
}

// startRelease frees the record if one of the unresolved grants stands in it.
func (m *Machine) startRelease(op *operation) {
	if m.isOver(op) {
		return
	}
	if late := m.giveUp(); late != "" {
		op.releasing = late // an Acquire that was under way when Release was called
	}
	// by what tidies up, while this one waited for its turn
	op.freeing = op.releasing != "" && op.releasing == m.freed
	switch gone := len(m.unresolved) == 0; {
	case gone && op.freeing:
		m.finish(op, Finished{})
	case gone:
		m.finish(op, Finished{Err: ErrNotHeld})
	case m.owed() > 0:
		err := fmt.Errorf("lease: the holder that was replaced may not know it yet: the record is freed in %v",
			m.owed())
		m.abandonRelease(op, err, true)
	default:
		m.lookUnlessKnown(op)
	}
}

func (m *Machine) tryRelease(op *operation, s Snapshot, fresh bool) {
	if m.isUnresolved(&s.Record) {
		m.free(op, s)
		return
	}
	switch {
	case !fresh:
		m.retry(op)
		return
	case len(m.unresolved) > 0:
		// An unanswered write for this very version may still be committed. Nothing can be released yet.
		m.abandonRelease(op, errors.New("lease: an earlier attempt may still be granted"), true)
	case op.freeing:
		m.finish(op, Finished{}) // another owner may have taken it since
	case op.releasing != "":
		m.finish(op, Finished{Err: fmt.Errorf("%w: %w", ErrNotHeld, ErrLost)})
	default:
		m.finish(op, Finished{Err: ErrNotHeld})
	}
}

// free writes the record s, which stands under an unresolved grant, without its holder. From now on the grant
// cannot be adopted any more: the write may be committed after it has failed.
func (m *Machine) free(op *operation, s Snapshot) {
	nonce := s.Record.Nonce
	m.unresolved[nonce] = unresolvedGrant{terms: m.unresolved[nonce].terms}
	m.write(op, freed(s.Record, m.now), s.Version)
}

// freed is r without its holder.
func freed(r Record, now time.Time) Record {
	r = touched(r, now)
	r.Holder = ""
	return r
}

// abandonRelease ends a release with an unknown outcome. begun is false if nothing was sent for it.
func (m *Machine) abandonRelease(op *operation, err error, begun bool) {
	switch {
	case !begun && len(m.unresolved) == 0 && errors.Is(err, ErrClosed):
		err = fmt.Errorf("%w: %w", ErrNotHeld, ErrClosed)
	case !begun && len(m.unresolved) == 0:
		err = ErrNotHeld
	case begun || op.releasing != "":
		m.tidyAfter(m.settings.OperationTimeout)
	}
	m.finish(op, Finished{Err: err})
}

// giveUpFor gives up what a ForceRelease is about to free.
func (m *Machine) giveUpFor(do ForceOp) {
	if do.Holder == m.owner || do.Holder == "" {
		m.giveUp()
	}
}

// tryForce frees the record if that is asked for.
func (m *Machine) tryForce(op *operation, do ForceOp, s Snapshot) {
	r := &s.Record
	if op.sentAt != "" && s.Version != op.sentAt && (r.Holder != op.found.Holder || r.Token != op.found.Token) {
		m.finish(op, Finished{}) // an unanswered write, or a foreign one: that grant is over
		return
	}
	silent, patience := m.silence(s)
	op.found, op.expired = r.clone(), r.Holder != "" && patience != Infinite && silent >= patience
	switch {
	case r.Holder == "":
		m.finish(op, Finished{Err: ErrNotHeld})
	case do.Holder != "" && r.Holder != do.Holder:
		op.expired = false
		m.finish(op, Finished{Err: fmt.Errorf("%w: %q, not %q", ErrOtherHolder, r.Holder, do.Holder)})
	default:
		op.sentAt = s.Version
		m.write(op, freed(*r, m.now), s.Version)
	}
}

// unresolvedGrant is a nonce under which the store may show this owner as the holder although it does not
// hold the lease.
type unresolvedGrant struct {
	// terms are those of the grant.
	terms terms
	// attempt: it stems from an Acquire that ended as Unknown, whose write was sent for the version prev,
	// first at started. As long as the record is at prev it may still come. Otherwise it is a grant that was
	// given up: any read that does not show it proves that it is gone.
	attempt bool
	prev    Version
	started time.Time
}

// maxUnresolvedGrants bounds the memory of attempts that are all in doubt. The ones beyond share the entry
// anyNonce: no attempt has that nonce, so none of them is adopted.
const (
	maxUnresolvedGrants = 256
	anyNonce            = ""
)

func (m *Machine) addUnresolved(nonce string, s unresolvedGrant, after time.Duration) {
	if len(m.unresolved) >= maxUnresolvedGrants {
		nonce = anyNonce // with the newest prev: an older version does not come back
		s.terms.ttl = max(s.terms.ttl, m.unresolved[anyNonce].terms.ttl)
	}
	m.unresolved[nonce] = s
	m.gaveUp++
	m.tidyAfter(after)
}

func (m *Machine) isUnresolved(r *Record) bool {
	_, ok := m.unresolved[r.Nonce]
	_, more := m.unresolved[anyNonce]
	return (ok || more) && r.Holder == m.owner
}

// settleUnresolved forgets those of which s, the answer to a read that was sent after the last of them,
// proves that they are gone.
func (m *Machine) settleUnresolved(s Snapshot) {
	for nonce, st := range m.unresolved {
		present := (nonce == s.Record.Nonce || nonce == anyNonce) && s.Record.Holder == m.owner
		if !present && !(st.attempt && st.prev == s.Version) {
			delete(m.unresolved, nonce)
		}
	}
}

// grace is how long a late grant is left alone, so that the next Acquire can adopt it.
func (m *Machine) grace() time.Duration { return 2 * m.settings.OperationTimeout }

// tidying is the undoing of unresolved grants: a look from time to time until none is left. It gives up when
// the time is over in which others would wait for such a holder (never, if they would wait for ever); a later
// read or watch that finds one starts it anew.
type tidying struct {
	on, busy bool
	at       time.Time
	waited   time.Duration
}

func (m *Machine) tidyAfter(after time.Duration) {
	if !m.tidying.on && !m.closed {
		m.tidying = tidying{on: true, at: m.now.Add(after), waited: after}
	}
}

func (m *Machine) tidyIfDue() {
	if t := &m.tidying; !t.on || t.busy || m.now.Before(t.at) {
		return
	}
	m.tidying.busy = true
	op := &operation{do: undo{}, deadline: m.now.Add(m.settings.OperationTimeout)}
	m.ops, m.queue = append(m.ops, op), append(m.queue, op)
}

func (m *Machine) startUndo(op *operation) {
	if len(m.unresolved) == 0 || m.owed() > 0 {
		m.finish(op, Finished{})
		return
	}
	m.look(op)
}

// tryUndo frees the record if it stands under an unresolved grant. Whatever becomes of that, the next look
// sees it.
func (m *Machine) tryUndo(op *operation, s Snapshot) {
	if !m.isUnresolved(&s.Record) || m.tenure != nil {
		m.finish(op, Finished{})
		return
	}
	m.emit(Note{
		Level: slog.LevelInfo, Text: "lease: undoing a grant that came after its failure was reported",
		Args: []any{"token", s.Record.Token},
	})
	m.free(op, s)
}

// tidied says when to look again, once a look has ended.
func (m *Machine) tidied() {
	t := &m.tidying
	if t.busy = false; len(m.unresolved) == 0 || m.closed || t.waited >= m.unresolvedPatience() {
		*t = tidying{}
		return
	}
	interval := m.settings.Interval()
	t.at, t.waited = m.now.Add(interval), t.waited+interval
}

// unresolvedPatience is how long unresolved grants are looked for.
func (m *Machine) unresolvedPatience() time.Duration {
	for _, s := range m.unresolved {
		if s.terms.ttl == Infinite {
			return Infinite
		}
	}
	return min(m.settings.HeartbeatTimeout, time.Hour)
}
