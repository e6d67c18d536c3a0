package lease

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// validity is what Check looks at: how long a grant may be used. It is never changed, only replaced.
type validity struct {
	token uint64
	// from is the moment at which a former holder that was replaced knows it for certain: see Machine.owe.
	from     time.Time
	deadline time.Time
	forever  bool
}

// live reports whether the time is not over yet, valid whether the grant may be used.
func (v *validity) live(now time.Time) bool  { return v.forever || now.Before(v.deadline) }
func (v *validity) valid(now time.Time) bool { return v.live(now) && !now.Before(v.from) }

// Check is Lease.Check at the moment now.
func (m *Machine) Check(now time.Time) bool { return m.holding != nil && m.holding.valid(now) }

// tenure is one time of holding the lease, from the grant to its loss or release.
type tenure struct {
	id    uint64
	nonce string
	token uint64
	terms terms
	// beatAt is when the next heartbeat is due, zero for never: a grant for a fixed time is only watched
	// over. beating is the heartbeat under way. doubt asks for one at once: something looks as if the lease
	// were gone.
	beatAt  time.Time
	beating *operation
	doubt   bool
	// failures counts the heartbeats in a row that have failed, last is the last failure.
	failures int
	last     error
}

// beat is a heartbeat, undo looks for a grant that came late.
type (
	beat struct{ tenure *tenure }
	undo struct{}
)

// hold sets what Check reads after a write of the tenure's record that was sent at start.
func (m *Machine) hold(r *Record, start time.Time) {
	t := m.tenure
	t.token = r.Token
	deadline, finite := t.terms.deadline(start)
	m.holding = &validity{token: r.Token, from: m.owedUntil, deadline: deadline, forever: !finite}
}

// beginTenure starts or goes on with a tenure for the record s, whose write was sent at start. The error is
// ErrTooLate when the time is over already, errMoved when the record has moved on meanwhile, ErrClosed when
// the lease was closed.
func (m *Machine) beginTenure(op *operation, s Snapshot, start time.Time) error {
	a := &op.attempt
	deadline, finite := a.terms.deadline(start)
	switch {
	case m.closed:
		return ErrClosed
	case m.observed.token > s.Record.Token:
		return errMoved
	case finite && !m.now.Before(deadline):
		return ErrTooLate
	}
	t, before := m.tenure, terms{}
	if t == nil {
		m.tenures++
		t = &tenure{id: m.tenures}
		m.tenure = t
	} else {
		before = t.terms
	}
	t.nonce, t.terms = s.Record.Nonce, a.terms
	delete(m.unresolved, t.nonce)
	m.hold(&s.Record, start)
	if t.terms != before {
		m.reschedule()
	}
	return nil
}

// endTenure clears the flag, says so and stops the heartbeats.
func (m *Machine) endTenure(reason error) {
	t := m.tenure
	m.tenure, m.holding = nil, nil
	m.emit(Ended{Tenure: t.id, Reason: reason})
	if t.beating != nil {
		m.giveUpOn(t.beating, errEnded)
	}
}

var errEnded = errors.New("lease: the lease is not held any more")

// lose ends the tenure without a request from here.
func (m *Machine) lose(reason error) {
	m.warn("lease: lost", "token", m.tenure.token, "reason", reason)
	m.endTenure(reason)
}

// expire ends the tenure if its deadline has passed.
func (m *Machine) expire() {
	t := m.tenure
	if t == nil || m.holding.live(m.now) {
		return
	}
	reason := fmt.Errorf("%w: no heartbeat was confirmed for %v", ErrLost, t.terms.window)
	if t.terms.interval == 0 {
		reason = fmt.Errorf("%w: its time is over (%v, of which %v may be used)", ErrLost, t.terms.ttl,
			t.terms.window)
	}
	if t.last != nil {
		reason = fmt.Errorf("%w: %w", reason, t.last)
	}
	m.lose(reason)
}

// recognises reports whether r still is the tenure's. A committed write whose answer was lost is recognised
// by its nonce.
func (m *Machine) recognises(r *Record) bool {
	t := m.tenure
	if r.Holder != m.owner || highest(r) < m.observed.token {
		return false
	}
	if r.Nonce == t.nonce {
		return true
	}
	if op := m.active; op != nil && op.attempt.nonce != "" && r.Nonce == op.attempt.nonce {
		return true // its write may be seen before its answer, by a watch or a concurrent Read
	}
	s, ok := m.unresolved[r.Nonce]
	if ok && s.attempt {
		t.nonce, t.terms = r.Nonce, s.terms
		delete(m.unresolved, r.Nonce)
		m.hold(r, s.started)
		m.reschedule()
		return true
	}
	return false
}

func (m *Machine) lossReason(r *Record, v Version) error {
	switch {
	case v == "":
		return fmt.Errorf("%w: the record was deleted", ErrLost)
	case r.Token < m.tenure.token:
		return fmt.Errorf("%w: the record went back from token %d to %d", ErrLost, m.tenure.token, r.Token)
	case r.Holder == "":
		return fmt.Errorf("%w: somebody freed the record", ErrLost)
	case r.Holder == m.owner:
		return fmt.Errorf("%w: displaced by another life of the same owner under token %d", ErrLost, r.Token)
	default:
		return fmt.Errorf("%w: held by %q under token %d", ErrLost, r.Holder, r.Token)
	}
}

// left is how long the tenure may still be trusted.
func (m *Machine) left() time.Duration {
	if m.holding.forever {
		return Infinite
	}
	return m.holding.deadline.Sub(m.now)
}

// reschedule says when the next heartbeat is due: after an interval; after a quarter of it once one has
// failed, then a half, then the whole. A heartbeat that is under way does that when it ends.
func (m *Machine) reschedule() {
	t := m.tenure
	if t.beating != nil {
		return
	}
	if t.beatAt = (time.Time{}); t.terms.interval == 0 {
		return
	}
	wait, left := t.terms.interval, m.left()
	if t.failures > 0 {
		wait >>= max(0, 3-t.failures)
	}
	if wait >= left && left/2 > m.settings.OperationTimeout/10 {
		wait = left / 2 // the time is running out: rather one more try than to sleep over the end
	}
	t.beatAt = m.now.Add(max(min(wait, left), time.Millisecond))
}

// beatIfDue begins a heartbeat. It fails inside the window, which ends before another owner may take over; at
// its end the lease is lost, with or without a notice.
func (m *Machine) beatIfDue() {
	t := m.tenure
	if t == nil || t.beating != nil || !t.doubt && (t.beatAt.IsZero() || m.now.Before(t.beatAt)) {
		return
	}
	t.doubt = false
	t.beating = &operation{do: &beat{t}, deadline: m.now.Add(min(m.left(), m.settings.OperationTimeout))}
	m.ops, m.queue = append(m.ops, t.beating), append(m.queue, t.beating)
}

func (m *Machine) startBeat(op *operation) {
	if s, known := m.cached(); known && m.recognises(&s.Record) {
		m.write(op, renewed(s.Record, m.tenure.terms, m.now), s.Version)
		return
	}
	m.look(op)
}

// tryBeat goes on after a read. If the record is not the tenure's any more, the tenure ends here, while no
// other write is under way.
func (m *Machine) tryBeat(op *operation, do *beat, s Snapshot) {
	switch {
	case m.tenure != do.tenure:
		m.finish(op, Finished{Err: errEnded})
	case !m.recognises(&s.Record):
		m.lose(m.lossReason(&s.Record, s.Version))
		m.finish(op, Finished{Err: errEnded})
	default:
		m.write(op, renewed(s.Record, m.tenure.terms, m.now), s.Version)
	}
}

// beaten schedules the next heartbeat after the last has ended.
func (m *Machine) beaten(t *tenure, err error) {
	t.beating = nil
	if m.tenure != t {
		return
	}
	t.last, t.failures = err, t.failures+1
	if err == nil {
		t.failures = 0
	}
	if m.reschedule(); err != nil {
		m.emit(Note{Level: slog.LevelInfo, Text: "lease: heartbeat failed",
			Args: []any{"error", err, "next-in", t.beatAt.Sub(m.now)}})
	}
}

// renewed is r with a new sign of life of a holder with these terms.
func renewed(r Record, t terms, now time.Time) Record {
	r = touched(r, now)
	r.TTL = t.recorded()
	return r
}
