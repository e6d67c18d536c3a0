package lease

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// Machine is the algorithm of a lease, without a clock, a goroutine or a request of its own: it is told what
// happens and answers what is to be done. Lease drives one over a store. It is not safe for concurrent use.
//
// Operations that write wait for each other, so that one conditional write is under way at a time. A request
// that has failed is repeated, after a read, until the operation's time is over.
type Machine struct {
	owner    string
	settings Settings
	// window is how long one heartbeat is trusted; limited says that a Limiter has shortened it.
	window  time.Duration
	limited bool
	backoff func(repetition int) time.Duration

	now    time.Time
	out    []Effect
	closed bool

	observed observedRecord
	// tenure is the present time of holding the lease, holding what Check reads of it. Both are nil where
	// there is none.
	tenure  *tenure
	holding *validity
	tenures uint64
	// owedUntil is when a holder that the last write here has replaced, by Proposal.TakeOver, stops believing
	// that it holds the lease. Until then this owner holds the record, so that no other owner gets it, and
	// may not use it. See owe.
	owedUntil  time.Time
	unresolved map[string]unresolvedGrant
	gaveUp     uint64 // counts the changes to unresolved
	freed      string // the last nonce whose grant a write that may have been committed has ended
	tidying    tidying

	// ops are all that are not finished, queue those that wait for their turn, active the operation whose
	// turn it is.
	ops, queue []*operation
	active     *operation
	requests   map[RequestID]*request
	sent       RequestID
}

// operation is an unfinished operation.
type operation struct {
	id       OpID // zero: the machine's own
	do       any  // as in Begin, or *beat, or undo
	deadline time.Time
	hurry    time.Time
	// cause is why it was given up, nil if it was not.
	cause error
	// tries counts the repetitions, last is the last failure. request is under way, zero for none. A pause
	// ends at resumeAt.
	tries    int
	last     error
	request  RequestID
	resumeAt time.Time

	attempt attempt
	// followers are plain Acquires that share the attempt of this one, leader is whose attempt this one
	// shares.
	followers []*operation
	leader    *operation
	// releasing is the nonce of the grant that is released, freeing says that a write that frees it may have
	// been committed.
	releasing string
	freeing   bool
	// found is the record as a ForceRelease has seen it last, expired as in ForceRelease. sentAt is the
	// version that a write was sent for, to end the grant in found; empty if none was.
	found   Record
	expired bool
	sentAt  Version
}

// request is a request under way.
type request struct {
	op   *operation
	send Send
	at   time.Time
	// seq and gaveUp are the state of what is known when it was sent.
	seq    int
	gaveUp uint64
}

// NewMachine returns the machine of an owner. window is how long one heartbeat is trusted: see Limiter.
// backoff is as in Options.
func NewMachine(owner string, s Settings, window time.Duration,
	backoff func(repetition int) time.Duration) *Machine {
	return &Machine{
		owner: owner, settings: s, window: min(window, s.Window()), limited: window < s.Window(), backoff: backoff,
		observed: observedRecord{mentioned: map[warning]any{}}, unresolved: map[string]unresolvedGrant{},
		requests: map[RequestID]*request{},
	}
}

// Step handles an event. It looks at its clock first: what is due is done whatever the event.
func (m *Machine) Step(now time.Time, e Event) []Effect {
	if now.After(m.now) {
		m.now = now
	}
	m.out = nil
	switch e := e.(type) {
	case Begin:
		m.begin(e)
	case Cancel:
		if i := slices.IndexFunc(m.ops, func(op *operation) bool { return op.id == e.Op }); i >= 0 {
			m.giveUpOn(m.ops[i], e.Cause)
		}
	case Answered:
		m.answered(e)
	case Failed:
		if q := m.take(e.Request); q != nil {
			m.failed(q, e.Err)
		}
	case Heard:
		m.heard(e.Snapshot)
	case Closed:
		m.close()
	}
	m.timers()
	m.nextTurn()
	return m.out
}

// Deadline is when the next Tick is due; ok is false if none is.
func (m *Machine) Deadline() (at time.Time, ok bool) {
	sooner := func(t time.Time) {
		if !t.IsZero() && (!ok || t.Before(at)) {
			at, ok = t, true
		}
	}
	for _, op := range m.ops {
		if op.cause == nil {
			sooner(op.deadline)
		}
		sooner(op.resumeAt)
	}
	if t := m.tenure; t != nil {
		if !m.holding.forever {
			sooner(m.holding.deadline)
		}
		if t.beating == nil {
			sooner(t.beatAt)
		}
	}
	if m.tidying.on && !m.tidying.busy {
		sooner(m.tidying.at)
	}
	return at, ok
}

// timers does what is due.
func (m *Machine) timers() {
	for _, op := range slices.Clone(m.ops) {
		if op.cause == nil && !m.now.Before(op.deadline) {
			m.giveUpOn(op, errTimeout)
		}
	}
	if op := m.active; op != nil && !op.resumeAt.IsZero() && !m.now.Before(op.resumeAt) {
		op.resumeAt = time.Time{}
		m.look(op)
	}
	m.expire()
	m.beatIfDue()
	m.tidyIfDue()
}

func (m *Machine) emit(e Effect) { m.out = append(m.out, e) }

func (m *Machine) warn(text string, args ...any) {
	m.emit(Note{Level: slog.LevelWarn, Text: text, Args: args})
}

// begin takes an operation on.
func (m *Machine) begin(e Begin) {
	op := &operation{id: e.Op, do: e.Do, deadline: e.Deadline, hurry: e.Hurry, cause: e.Cause}
	m.ops = append(m.ops, op)
	switch do := op.do.(type) {
	case AcquireOp:
		if !m.beginAcquire(op, do) {
			return
		}
	case ReleaseOp:
		m.expire()
		if m.isOver(op) {
			return
		}
		op.releasing = m.giveUp() // before waiting for a turn: its heartbeat ends at once
	case ForceOp:
		m.giveUpFor(do)
	}
	if m.closed && op.cause == nil {
		op.cause = ErrClosed
	}
	_, reads := op.do.(ReadOp)
	switch {
	case op.cause != nil:
		m.abandon(op, op.cause, false)
	case reads:
		m.look(op)
	default:
		m.queue = append(m.queue, op)
	}
}

// nextTurn lets the next operation have its turn.
func (m *Machine) nextTurn() {
	for m.active == nil && len(m.queue) > 0 {
		op := m.queue[0]
		m.queue = m.queue[1:]
		m.active = op
		m.start(op)
	}
}

func (m *Machine) start(op *operation) {
	switch do := op.do.(type) {
	case AcquireOp:
		m.startAcquire(op)
	case ReleaseOp:
		m.startRelease(op)
	case *beat:
		m.startBeat(op)
	case undo:
		m.startUndo(op)
	case ForceOp:
		m.giveUpFor(do) // an Acquire that was under way when ForceRelease was called
		m.look(op)
	default:
		m.look(op)
	}
}

// lookUnlessKnown goes on with what is known already, which spares a read.
func (m *Machine) lookUnlessKnown(op *operation) {
	if s, known := m.cached(); known {
		m.proceed(op, s, false)
	} else {
		m.look(op)
	}
}

// look reads the record.
func (m *Machine) look(op *operation) { m.send(op, Send{}) }

// write sends one conditional write.
func (m *Machine) write(op *operation, r Record, prev Version) {
	r.Behind = false
	m.send(op, Send{Write: true, Record: r, Prev: prev})
}

func (m *Machine) send(op *operation, s Send) {
	if op.cause != nil {
		m.abandon(op, op.cause, true)
		return
	}
	m.sent++
	s.Op, s.Request = op.id, m.sent
	left := op.deadline.Sub(m.now)
	if !op.hurry.IsZero() {
		left = min(left, op.hurry.Sub(m.now))
	}
	s.Timeout = m.settings.requestTime(left)
	op.request = s.Request
	m.requests[s.Request] = &request{op: op, send: s, at: m.now, seq: m.observed.seq, gaveUp: m.gaveUp}
	m.emit(s)
}

func (m *Machine) take(id RequestID) *request {
	q := m.requests[id]
	if q != nil {
		delete(m.requests, id)
		q.op.request = 0
	}
	return q
}

func (m *Machine) answered(e Answered) {
	q := m.take(e.Request)
	if q == nil {
		return
	}
	if q.send.Write {
		s := Snapshot{Record: q.send.Record, Version: e.Snapshot.Version}
		m.wrote(s)
		m.written(q.op, s, q.at)
		return
	}
	if err := e.Snapshot.Record.spent(); err != nil {
		m.failed(q, err) // nothing of it is learnt: what is known would outlive the repair
		return
	}
	m.proceed(q.op, m.learn(e.Snapshot, q), true)
}

// proceed does what can be done with the state s: at most one write. fresh says that it was read for this
// operation.
func (m *Machine) proceed(op *operation, s Snapshot, fresh bool) {
	switch do := op.do.(type) {
	case AcquireOp:
		m.tryAcquire(op, s, fresh)
	case ReleaseOp:
		m.tryRelease(op, s, fresh)
	case ForceOp:
		m.tryForce(op, do, s)
	case ChangeOp:
		m.tryChange(op, do, s)
	case ReadOp:
		m.finish(op, Finished{Snapshot: s.clone()})
	case *beat:
		m.tryBeat(op, do, s)
	case undo:
		m.tryUndo(op, s)
	}
}

// written goes on after a successful write, which was sent at the time at.
func (m *Machine) written(op *operation, s Snapshot, at time.Time) {
	switch do := op.do.(type) {
	case AcquireOp:
		m.wroteAcquire(op, s, at)
		return
	case ReleaseOp, undo:
		m.freed = s.Record.Nonce
	case *beat:
		if m.tenure == do.tenure && s.Record.Nonce == m.tenure.nonce {
			m.hold(&s.Record, at)
		}
	}
	m.finish(op, Finished{Snapshot: s.clone()})
}

// failed goes on after a request that has failed.
func (m *Machine) failed(q *request, err error) {
	op, inDoubt := q.op, q.send.Write && !errors.Is(err, ErrConflict)
	ends := op.cause != nil || errors.Is(err, ErrRefused)
	switch op.do.(type) {
	case AcquireOp:
		m.failedAcquire(op, q, err)
		return
	case ReadOp:
		ends = true
	case *beat:
		ends = inDoubt || !q.send.Write // else a heartbeat whose answer was lost, a foreign edit, or the end
	case ReleaseOp, undo:
		if inDoubt {
			m.freed, op.freeing = q.send.Record.Nonce, true // it may have been committed
		}
		_, undoes := op.do.(undo)
		ends = ends || undoes // the next look sees what became of it
	}
	if ends {
		m.abandon(op, following(err, op.last), true)
		return
	}
	op.last = telling(op.last, err)
	m.retry(op)
}

// retry reads again, after a pause: the backoff's, or that which the server asked for.
func (m *Machine) retry(op *operation) {
	op.tries++
	switch d := m.backoff(op.tries); {
	case op.cause != nil:
		m.abandon(op, following(op.cause, op.last), true)
	case d <= 0:
		m.look(op)
	default:
		op.resumeAt = m.now.Add(max(d, Postponed(op.last)))
	}
}

// giveUpOn ends an operation. A request that is under way is waited for: it may have been committed.
func (m *Machine) giveUpOn(op *operation, cause error) {
	if op.cause != nil || !slices.Contains(m.ops, op) {
		return
	}
	op.cause = cause
	switch {
	case op.request != 0:
		m.emit(Abort{Request: op.request, Cause: cause})
	case op == m.active:
		m.abandon(op, following(cause, op.last), true)
	default:
		m.abandon(op, cause, false)
	}
}

// abandon finishes an operation with an unknown outcome. begun is false if it never had its turn.
func (m *Machine) abandon(op *operation, err error, begun bool) {
	switch op.do.(type) {
	case AcquireOp:
		if begun {
			m.unknown(op, err)
			return
		}
	case ReleaseOp:
		m.abandonRelease(op, err, begun)
		return
	case ForceOp:
		if len(m.unresolved) > 0 {
			m.tidyAfter(m.settings.OperationTimeout)
		}
	}
	m.finish(op, Finished{Err: err})
}

// finish ends an operation.
func (m *Machine) finish(op *operation, f Finished) {
	is := func(o *operation) bool { return o == op }
	m.ops, m.queue = slices.DeleteFunc(m.ops, is), slices.DeleteFunc(m.queue, is)
	if op == m.active {
		m.active = nil
	}
	op.resumeAt = time.Time{}
	if l := op.leader; l != nil {
		l.followers = slices.DeleteFunc(l.followers, is)
	}
	switch do := op.do.(type) {
	case AcquireOp:
		if a := &op.attempt; a.pending {
			m.addUnresolved(a.nonce, unresolvedGrant{attempt: true, prev: a.pendingVersion, started: a.started,
				terms: a.terms}, m.grace())
		}
	case ForceOp:
		f.Snapshot, f.Expired = Snapshot{Record: op.found}, op.expired
	case *beat:
		m.beaten(do.tenure, f.Err)
	case undo:
		m.tidied()
	}
	if f.Op = op.id; f.Op != 0 {
		m.emit(f)
	}
	m.answerFollowers(op, f)
}

// close ends the tenure, and gives everything up.
func (m *Machine) close() {
	m.closed = true
	if m.tenure != nil {
		m.endTenure(fmt.Errorf("%w: %w", ErrLost, ErrClosed))
	}
	for _, op := range slices.Clone(m.ops) {
		m.giveUpOn(op, ErrClosed)
	}
}

// tryChange writes what the change makes of the record.
func (m *Machine) tryChange(op *operation, do ChangeOp, s Snapshot) {
	r, writes, err := do.Next(s.Record, m.now)
	if err != nil || !writes {
		m.finish(op, Finished{Snapshot: s.clone(), Err: err})
		return
	}
	m.write(op, r, s.Version)
}
