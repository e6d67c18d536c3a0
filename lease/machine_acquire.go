package lease

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// errMoved says that the record had moved on before a grant could be used.
var errMoved = errors.New("lease: the record has moved on")

// attempt is what an Acquire does.
type attempt struct {
	proposal Proposal
	terms    terms
	// nonce marks everything this attempt writes. started is when its first write was sent, zero before.
	nonce   string
	started time.Time
	// pendingVersion is the version an unanswered write was sent for, if there is one.
	pendingVersion Version
	pending        bool
	// renewing: the write that is under way is to make an earlier grant usable again. A failure of that ends
	// adopting.
	renewing, adoptsNoMore bool
}

// beginAcquire answers what needs no turn. It reports whether the operation goes on to wait for one.
func (m *Machine) beginAcquire(op *operation, do AcquireOp) (goesOn bool) {
	a := &op.attempt
	a.proposal, a.nonce = do.Proposal.clone(), do.Nonce
	if f, ok := m.present(op); ok {
		m.finish(op, f)
		return false
	}
	var err error
	if a.terms, err = m.terms(&a.proposal); err != nil {
		m.finish(op, Finished{Err: err})
		return false
	}
	return op.cause != nil || !m.join(op)
}

// join makes a plain Acquire share the attempt of an Acquire that waits for its turn: its first read, which
// is not sent yet, is not older than the call.
func (m *Machine) join(op *operation) bool {
	if !op.attempt.proposal.plain() {
		return false
	}
	for _, leader := range m.queue {
		if _, acquires := leader.do.(AcquireOp); acquires && leader.attempt.proposal.plain() {
			op.leader, leader.followers = leader, append(leader.followers, op)
			return true
		}
	}
	return false
}

// grantOf is the answer to the holder by the record r.
func (m *Machine) grantOf(r Record) Finished {
	return Finished{Tenure: m.tenure.id, Snapshot: Snapshot{Record: r.clone()}}
}

// refusal is the answer that for certain nothing was granted. wait is as in HeldError.
func (m *Machine) refusal(r Record, superseded bool, wait time.Duration) Finished {
	f := Finished{Err: &HeldError{Record: r.clone(), Superseded: superseded, RetryAfter: wait}}
	if m.tenure != nil && r.Holder == m.owner {
		f.Tenure = m.tenure.id
	}
	return f
}

// answerFollowers answers all calls that shared the attempt. A grant that is gone again, or a leader that ran
// out of time, is no answer for a call that has time left.
func (m *Machine) answerFollowers(op *operation, answer Finished) {
	followers, err, held := op.followers, answer.Err, (*HeldError)(nil)
	op.followers = nil
	for _, f := range followers {
		f.leader = nil
		switch {
		case errors.As(err, &held):
			own := *held
			m.finish(f, Finished{Tenure: answer.Tenure, Err: &own})
			continue
		case final(err):
			m.finish(f, Finished{Err: err})
			continue
		case err == nil:
			if granted, ok := m.present(f); ok {
				m.finish(f, granted)
				continue
			}
		}
		if !m.join(f) {
			m.queue = append(m.queue, f)
		}
	}
}

// final reports whether another try would end the same way.
func final(err error) bool {
	return errors.Is(err, ErrRefused) || errors.Is(err, ErrTokenSpent) || errors.Is(err, ErrClosed)
}

// present answers a holder that needs no request: a plain Acquire is granted, an exclusive one refused.
func (m *Machine) present(op *operation) (Finished, bool) {
	p := &op.attempt.proposal
	if !p.plain() && (p.Verdict != nil || !p.Exclusive || p.Override) || m.tenure == nil ||
		!m.holding.live(m.now) {
		return Finished{}, false
	}
	r := m.observed.reconcile(m.observed.snap).Record
	if owed := m.owed(); p.Exclusive || owed > 0 && p.needsCheck() {
		return m.refusal(r, false, owed), true
	}
	return m.grantOf(r), true
}

func (m *Machine) startAcquire(op *operation) {
	if f, ok := m.present(op); ok {
		m.finish(op, f)
		return
	}
	m.expire()
	m.shorten(op.attempt.terms)
	m.lookUnlessKnown(op)
}

// shorten prepares a holder for other terms: once the write is sent, the record may say the shorter time of
// the two.
func (m *Machine) shorten(next terms) {
	deadline, finite := next.deadline(m.now)
	if g := m.holding; m.tenure != nil && finite && (g.forever || deadline.Before(g.deadline)) {
		m.holding = &validity{token: g.token, from: g.from, deadline: deadline}
		m.reschedule()
	}
}

func (m *Machine) unknown(op *operation, err error) {
	err = following(err, op.last)
	switch {
	case errors.Is(err, ErrRefused):
		m.warn("lease: the store refused", "error", err)
	case errors.Is(err, ErrTokenSpent):
		m.emit(Note{Level: slog.LevelError, Text: "lease: no grant is possible", Args: []any{"error", err}})
	}
	if op.attempt.pending && errors.Is(err, ErrRefused) {
		err = fmt.Errorf("lease: an earlier write of this attempt is in doubt: %v",
			err) //nolint:errorlint // ErrRefused would say: nothing was written
	}
	m.finish(op, Finished{Err: err})
}

// tryAcquire does what can be done with the state s: at most one write.
func (m *Machine) tryAcquire(op *operation, s Snapshot, fresh bool) {
	a, r := &op.attempt, &s.Record
	if r.Nonce == a.nonce && r.Holder == m.owner {
		m.granted(op, s, a.started) // an earlier write of this attempt was committed, its answer lost
		return
	}
	if a.pending && fresh && s.Version != a.pendingVersion {
		a.pending = false // the version it was sent for is gone, and it did not get it
	}
	if fresh && r.Holder == m.owner && m.adopt(op, s) {
		return
	}
	proposal := a.proposal
	proposal.Exclusive = proposal.Exclusive && !m.isUnresolved(r) // no owner holds what came late
	check, wait := m.rule(&proposal, s)
	switch {
	case check == mayTake:
		m.owe(&proposal, s)
		m.takeIt(op, s)
		return
	case wait == Infinite:
		wait = 0
	}
	if fresh && !a.pending {
		m.finish(op, m.refusal(*r, check == superseded, wait))
		return
	}
	// "for certain not" takes a state that was read for this attempt, and no write that may still be committed
	m.retry(op)
}

// takeIt sends the one conditional write. If its outcome is unknown the next try sends it again, for the same
// version: only one of the two can win, and both are this attempt's.
func (m *Machine) takeIt(op *operation, s Snapshot) {
	a := &op.attempt
	if a.started.IsZero() {
		a.started = m.now
	}
	if s.Record.Token >= MaxToken {
		m.unknown(op, fmt.Errorf("%w: it is %d: see sbr lease reset", ErrTokenSpent, s.Record.Token))
		return
	}
	m.write(op, m.draft(a, s.Record), s.Version)
}

// draft is what the attempt writes over r: the same content for the same r, however often it is sent.
func (m *Machine) draft(a *attempt, r Record) Record {
	began := wall(a.started)
	next := Record{
		Holder: m.owner, Token: r.Token + 1, Nonce: a.nonce, TTL: a.terms.recorded(),
		Acquired: began, Renewed: began, Verdict: r.Verdict,
	}
	if a.proposal.Verdict != nil {
		next.Verdict = a.proposal.Verdict.Clone()
		next.Verdict.Token = next.Token
	}
	return next
}

func (m *Machine) wroteAcquire(op *operation, s Snapshot, at time.Time) {
	a := &op.attempt
	if !a.renewing {
		m.granted(op, s, at)
		return
	}
	a.renewing = false
	if err := m.beginTenure(op, s, at); err != nil {
		op.last, a.adoptsNoMore = err, true
		m.retry(op)
		return
	}
	m.adopted(op, s)
}

func (m *Machine) failedAcquire(op *operation, q *request, err error) {
	a, write := &op.attempt, q.send.Write
	switch {
	case write && a.renewing:
		a.renewing, a.adoptsNoMore, op.last = false, true, err
	case write && errors.Is(err, ErrConflict):
		op.last = err
	case errors.Is(err, ErrRefused), !write && (op.cause != nil || final(err)):
		m.unknown(op, err)
		return
	default:
		op.last = telling(op.last, err)
		if !write {
			break
		}
		if a.pendingVersion, a.pending = q.send.Prev, true; op.cause != nil {
			m.unknown(op, err)
			return
		}
	}
	m.retry(op)
}

// granted turns a committed write of the attempt into holding.
func (m *Machine) granted(op *operation, s Snapshot, start time.Time) {
	a := &op.attempt
	a.pending = false
	switch err := m.beginTenure(op, s, start); {
	case err == nil:
		m.finish(op, m.grantOf(s.Record))
	case errors.Is(err, errMoved):
		op.last = err
		m.retry(op)
	default:
		a.pendingVersion, a.pending = s.Version, true // it stands in the store all the same
		m.unknown(op, fmt.Errorf("after a committed write: %w", err))
	}
}

// adopt takes on a grant that an earlier attempt of this lease got after its failure had been reported. It
// reports false when there is none, or when the proposal goes on to write anyway: so does an attempt whose own
// write for this version may still come, and would replace what was adopted.
func (m *Machine) adopt(op *operation, s Snapshot) bool {
	a := &op.attempt
	if a.adoptsNoMore || a.pending || a.proposal.Verdict != nil && s.Record.Token == a.proposal.Base {
		return false
	}
	late, ok := m.unresolved[s.Record.Nonce]
	if !ok || !late.attempt || late.terms != a.terms {
		return false
	}
	switch err := m.beginTenure(op, s, late.started); {
	case err == nil:
		m.adopted(op, s)
	case errors.Is(err, ErrTooLate):
		a.renewing = true
		m.write(op, renewed(s.Record, a.terms, m.now), s.Version)
	default:
		op.last = err
		return false
	}
	return true
}

func (m *Machine) adopted(op *operation, s Snapshot) {
	switch owed, p := m.owed(), &op.attempt.proposal; {
	case p.Verdict != nil:
		m.finish(op, m.refusal(s.Record, true, 0))
	case owed > 0 && p.needsCheck():
		m.finish(op, m.refusal(s.Record, false, owed))
	default:
		m.finish(op, m.grantOf(s.Record))
	}
}

// terms are the times of one grant.
type terms struct {
	// ttl is what the record says: how long others wait for a silent holder. Infinite: for ever.
	ttl time.Duration
	// window is how long the holder trusts one write, counted from the moment it was sent. Infinite: for
	// ever.
	window time.Duration
	// interval is the time between two heartbeats. Zero: none, the grant ends with its window.
	interval time.Duration
}

// terms returns those that p asks for. The error wraps ErrRefused when they would not hold: others judge by
// the settings.
func (m *Machine) terms(p *Proposal) (terms, error) {
	switch {
	case p.For == 0 && p.KeepAlive:
		return terms{}, fmt.Errorf("%w: Proposal.KeepAlive needs Proposal.For; without either the settings' heartbeats apply", ErrRefused)
	case p.For == 0:
		return terms{m.settings.HeartbeatTimeout, m.window, m.settings.Interval()}, nil
	case len(p.TakeOver) > 0:
		return terms{}, fmt.Errorf("%w: Proposal.For and Proposal.TakeOver exclude each other: the holder that is replaced may believe longer", ErrRefused)
	case p.For < 0:
		return terms{}, fmt.Errorf("%w: Proposal.For is %v: it must be positive", ErrRefused, p.For)
	case m.limited:
		return terms{}, fmt.Errorf("%w: Proposal.For is %v: other users of this store expire holders by a rule of their own", ErrRefused, p.For)
	case p.For > m.settings.HeartbeatTimeout:
		return terms{}, fmt.Errorf("%w: Proposal.For is %v: others wait no longer than heartbeat-timeout (%v)",
			ErrRefused, p.For, m.settings.HeartbeatTimeout)
	}
	s := Settings{HeartbeatTimeout: p.For, OperationTimeout: m.settings.OperationTimeout}
	t := terms{ttl: p.For, window: s.Window()}
	if p.KeepAlive {
		if t.interval = m.settings.Interval(); p.For != Infinite {
			t.interval = p.For / 10
		}
	}
	return t, nil
}

// recorded is the ttl as a record says it.
func (t terms) recorded() time.Duration {
	if t.ttl == Infinite {
		return 0
	}
	return t.ttl
}

// deadline is how long a write that was sent at start keeps the lease; ok is false if for ever.
func (t terms) deadline(start time.Time) (deadline time.Time, ok bool) {
	if t.window == Infinite {
		return time.Time{}, false
	}
	return start.Add(t.window), true
}

// proposalCheck is what a proposal may do with a record.
type proposalCheck uint8

const (
	// mayTake: the record may be replaced.
	mayTake proposalCheck = iota
	// heldByOther: a holder that may not be replaced.
	heldByOther
	// superseded: the verdict builds on another token than the record's.
	superseded
)

// judge is the whole rule of replacing a holder. silent is for how long the record was seen unchanged from
// here, by the local clock; no time in the record is looked at.
func judge(p *Proposal, r *Record, owner string, silent, patience time.Duration) proposalCheck {
	switch {
	case p.Verdict != nil && (r.Token != p.Base ||
		r.Behind): // what the store has lost may have been newer than Base
		return superseded
	case p.Verdict != nil && p.BaseBy != "" && r.Verdict != nil && string(r.Verdict.DecidedBy) != p.BaseBy:
		return superseded
	case r.Holder == "", r.Holder == owner && !p.Exclusive, p.Override, slices.Contains(p.TakeOver, r.Holder):
		return mayTake
	case patience != Infinite && silent >= patience:
		return mayTake
	default:
		return heldByOther
	}
}

// rule judges p by what is known, and says how long it has to wait where the lease is held. Infinite: for
// ever, as far as is known.
func (m *Machine) rule(p *Proposal, s Snapshot) (r proposalCheck, wait time.Duration) {
	silent, patience := m.silence(s)
	switch r = judge(p, &s.Record, m.owner, silent, patience); {
	case r == mayTake && s.Record.Holder == m.owner && !p.Override && p.needsCheck() && m.owed() > 0:
		return heldByOther, m.owed()
	case r == heldByOther && patience != Infinite:
		return r, patience - silent
	default:
		return r, Infinite
	}
}

// Wait is for how long an Acquire of p would be in vain, as far as is known, at most a heartbeat interval.
func (m *Machine) Wait(now time.Time, p *Proposal) time.Duration {
	if now.After(m.now) {
		m.now = now
	}
	s, known := m.cached()
	if !known {
		return 0
	}
	check, wait := m.rule(p, s)
	if check != heldByOther {
		return 0
	}
	return min(wait, m.settings.Interval())
}

// Pause is for how long AcquireWait waits after so many failures in a row.
func (m *Machine) Pause(failures int) time.Duration {
	return min(m.settings.Interval(), m.backoff(failures+1)<<min(failures, 10))
}

// silence is for how long the holder of s was silent, and for how long it may be.
func (m *Machine) silence(s Snapshot) (silent, patience time.Duration) {
	return m.observed.silent(&s.Record, m.now), m.settings.patience(s.Record.TTL)
}

// A take-over replaces a holder that lives. Its verdict counts at once; but the former holder may believe in
// its last heartbeat until its time is over, as observed from here, exactly as if it had crashed. Until then
// three things hold, so that no two owners ever believe at once: Check is false, a plain Acquire of the new
// holder is Held, and its Release leaves the record as it is, for the next holder would not know of the
// former one. A take-over from the new holder waits out the new holder's time, which ends later.

// owe notes, before a write of p that replaces s, until when another owner may believe in s.
func (m *Machine) owe(p *Proposal, s Snapshot) {
	silent, patience := m.silence(s)
	switch r := &s.Record; {
	case r.Holder == m.owner && !p.Override: // what is owed stays owed
	case r.Holder == "", p.Override, patience != Infinite && silent >= patience:
		// A free record says that no owner believes that it holds the lease: it was not freed before.
		// Override is an operator's word.
		m.owedUntil = time.Time{}
	default:
		m.owedUntil = m.now.Add(patience - silent)
	}
}

// owed is for how long a former holder may still believe that it holds the lease.
func (m *Machine) owed() time.Duration { return max(0, m.owedUntil.Sub(m.now)) }

// needsCheck reports whether p asks for a lease that can be used at once. The others are for the verdict that
// they write.
func (p *Proposal) needsCheck() bool { return p.For != 0 || p.Verdict == nil && len(p.TakeOver) == 0 }
