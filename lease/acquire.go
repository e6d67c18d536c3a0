package lease

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errMoved says that the record had moved on before a grant could be used.
var errMoved = errors.New("lease: the record has moved on")

// attempt is one Acquire.
type attempt struct {
	proposal Proposal
	terms    terms
	lost     func(error)
	// returned is closed when the Acquire returns.
	returned chan struct{}
	// nonce marks everything this attempt writes. started is when its first write was sent, zero before.
	nonce   string
	started time.Time
	// adrift is the version an unanswered write was sent for, if there is one.
	adrift   Version
	isAdrift bool
	// last is the last failure.
	last error
}

// Acquire tries once to get the lease, within ctx and OperationTimeout, and says truthfully what became of it: Granted, Held
// or Unknown. It is re-entrant: a plain Acquire of a holder is granted at once and without a request; with a verdict or a time,
// which must be recorded, it is a write. Concurrent plain calls share one attempt, all others queue up; each gets an answer.
//
// A grant that arrives after Unknown was returned is undone, unless a later Acquire finds and adopts it. The adopting one
// answers Held, with this owner as the Record.Holder, if its own verdict came too late: the lease is held then.
//
// lost may be nil. It is called once, on a goroutine of its own, with a reason that wraps ErrLost, when a held lease is lost
// other than by Release or Close; Check is false before. An Acquire while the lease is held replaces it, unless it is nil.
func (l *Lease) Acquire(ctx context.Context, p Proposal, lost func(error)) Outcome {
	a := &attempt{proposal: p.clone(), lost: lost, returned: make(chan struct{})}
	defer close(a.returned) // the last thing that is done
	if out, ok := l.present(a); ok {
		return out
	}
	var err error
	if a.terms, err = l.terms(&p); err != nil {
		return Outcome{Kind: Unknown, Err: err}
	}
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	if a.proposal.plain() {
		return l.jointly(ctx, a)
	}
	return l.attempt(ctx, a, nil)
}

// attempt is one Acquire on its own, or for all who have joined it.
func (l *Lease) attempt(ctx context.Context, a *attempt, j *joint) Outcome {
	if err := l.lock(ctx); err != nil {
		l.begun(j)
		return Outcome{Kind: Unknown, Err: err}
	}
	defer l.unlock()
	l.begun(j)
	if out, ok := l.present(a); ok {
		return out
	}
	l.overdue(nil)
	l.shorten(a.terms)
	a.nonce = l.opts.Nonce()
	l.try(a.nonce)
	defer l.try("")
	out := l.run(ctx, a)
	out.Record = out.Record.clone()
	if a.isAdrift {
		l.stray(a.nonce, stray{attempt: true, prev: a.adrift, started: a.started, terms: a.terms}, l.grace())
	}
	return out
}

// try says which attempt is under way. Its write may be seen before its answer, by a watch or a concurrent Read.
func (l *Lease) try(nonce string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trying = nonce
}

// present answers a holder who needs no request: a plain Acquire is granted, an exclusive one refused.
func (l *Lease) present(a *attempt) (Outcome, bool) {
	p := &a.proposal
	if !p.plain() && (p.Verdict != nil || !p.Exclusive || p.Override) {
		return Outcome{}, false
	}
	owed, now := l.owed(), l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	t, g := l.tenure, l.holding.Load()
	if t == nil || !g.live(now) {
		return Outcome{}, false
	}
	out := Outcome{Kind: Granted, Record: l.know.reconcile(l.know.snap).Record.clone()}
	if p.Exclusive || owed > 0 && p.needsCheck() {
		out.Kind, out.RetryAfter = Held, owed
		return out, true
	}
	if a.lost != nil {
		t.lost, t.returned = a.lost, a.returned
	}
	return out, true
}

// shorten prepares a holder for other terms: once the write is sent, the record may say the shorter time of the two.
func (l *Lease) shorten(next terms) {
	deadline, finite := next.deadline(l.clock.Now())
	l.mu.Lock()
	defer l.mu.Unlock()
	t, g := l.tenure, l.holding.Load()
	if t == nil || !finite || (!g.forever && g.deadline.Before(deadline)) {
		return
	}
	l.holding.Store(&grant{token: g.token, from: g.from, deadline: deadline})
	wake(t.changed)
}

// run repeats read and step until there is an answer or ctx ends. A state that is known already spares the first read.
func (l *Lease) run(ctx context.Context, a *attempt) Outcome {
	s, warm := l.cached()
	for n := 0; ; n++ {
		if err := l.pause(ctx, n); err != nil {
			return l.unknown(a, err)
		}
		if !warm {
			var err error
			if s, err = l.fetch(ctx); err != nil {
				if ctx.Err() != nil || final(err) {
					return l.unknown(a, err)
				}
				a.last = telling(a.last, err)
				continue
			}
		}
		if out, done := l.step(ctx, a, s, !warm); done {
			return out
		}
		warm = false
	}
}

func (l *Lease) unknown(a *attempt, err error) Outcome {
	s, _ := l.cached()
	err = following(err, a.last)
	switch {
	case errors.Is(err, ErrRefused):
		l.log.Warn("lease: the store refused", "error", err)
	case errors.Is(err, ErrTokenSpent):
		l.log.Error("lease: no grant is possible", "error", err)
	}
	if a.isAdrift && errors.Is(err, ErrRefused) {
		err = fmt.Errorf("lease: an earlier write of this attempt is in doubt: %v", err) //nolint:errorlint // ErrRefused would say: nothing was written
	}
	return Outcome{Kind: Unknown, Record: s.Record, Err: err}
}

// step does what can be done with the state s: at most one write. done is false when the record must be read again.
func (l *Lease) step(ctx context.Context, a *attempt, s Snapshot, fresh bool) (out Outcome, done bool) {
	r := &s.Record
	if r.Nonce == a.nonce && r.Holder == l.owner {
		return l.grant(a, s, a.started) // an earlier write of this attempt was committed, its answer lost
	}
	if a.isAdrift && fresh && s.Version != a.adrift {
		a.isAdrift = false // the version it was sent for is gone, and it did not get it
	}
	if fresh && r.Holder == l.owner {
		if out, done = l.adopt(ctx, a, s); done {
			return out, true
		}
	}
	proposal := a.proposal
	proposal.Exclusive = proposal.Exclusive && !l.isStray(r) // what came late is nobody's
	switch ruling, wait := l.rule(&proposal, s); ruling {
	case mayTake:
		l.owe(&proposal, s)
		return l.take(ctx, a, s)
	case superseded:
		out = Outcome{Kind: Held, Record: *r, Superseded: true}
	case heldByOther:
		out = Outcome{Kind: Held, Record: *r}
		if wait != Infinite {
			out.RetryAfter = wait
		}
	}
	// "For certain not" takes a state that was read for this attempt, and no write that may still be committed.
	return out, fresh && !a.isAdrift
}

// silence is for how long the holder of s was silent, and for how long it may be.
func (l *Lease) silence(s Snapshot) (silent, patience time.Duration) {
	patience = l.settings.patience(s.Record.TTL)
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.know.silent(&s.Record, now), patience
}

// take sends the one conditional write. If its fate is unknown the next step sends it again, for the same version: only one
// of the two can win, and both are this attempt's.
func (l *Lease) take(ctx context.Context, a *attempt, s Snapshot) (out Outcome, done bool) {
	start := l.clock.Now()
	if a.started.IsZero() {
		a.started = start
	}
	if s.Record.Token >= MaxToken {
		return l.unknown(a, fmt.Errorf("%w: it is %d: see sbr lease reset", ErrTokenSpent, s.Record.Token)), true
	}
	got, err := l.write(ctx, l.draft(a, s.Record), s.Version)
	switch {
	case err == nil:
		return l.grant(a, got, start)
	case errors.Is(err, ErrConflict):
		a.last = err
	case errors.Is(err, ErrRefused):
		return l.unknown(a, err), true
	default:
		a.adrift, a.isAdrift, a.last = s.Version, true, telling(a.last, err)
		if ctx.Err() != nil {
			return l.unknown(a, err), true
		}
	}
	return Outcome{}, false
}

// draft is what the attempt writes over r: the same content for the same r, however often it is sent.
func (l *Lease) draft(a *attempt, r Record) Record {
	began := wall(a.started)
	next := Record{
		Holder: l.owner, Token: r.Token + 1, Nonce: a.nonce, TTL: a.terms.recorded(),
		Acquired: began, Renewed: began, Verdict: r.Verdict,
	}
	if a.proposal.Verdict != nil {
		next.Verdict = a.proposal.Verdict.Clone()
		next.Verdict.Token = next.Token
	}
	return next
}

// grant turns a committed write of the attempt into holding.
func (l *Lease) grant(a *attempt, s Snapshot, start time.Time) (out Outcome, done bool) {
	a.isAdrift = false
	switch err := l.begin(a, s, start); {
	case err == nil:
		return Outcome{Kind: Granted, Record: s.Record}, true
	case errors.Is(err, errMoved):
		a.last = err
		return Outcome{}, false
	default:
		a.adrift, a.isAdrift = s.Version, true // it stands in the store all the same
		return l.unknown(a, fmt.Errorf("after a committed write: %w", err)), true
	}
}

// adopt takes on a grant that an earlier attempt of this lease got after its failure had been reported. done is false when
// there is none, or when the proposal goes on to write anyway.
func (l *Lease) adopt(ctx context.Context, a *attempt, s Snapshot) (out Outcome, done bool) {
	if a.proposal.Verdict != nil && s.Record.Token == a.proposal.Base {
		return Outcome{}, false
	}
	start, ok := l.lateGrant(s.Record.Nonce, a.terms)
	if !ok {
		return Outcome{}, false
	}
	err := l.begin(a, s, start)
	if errors.Is(err, ErrTooLate) {
		start = l.clock.Now()
		var got Snapshot
		if got, err = l.write(ctx, l.renewed(s.Record, a.terms), s.Version); err == nil {
			s, err = got, l.begin(a, got, start)
		}
	}
	if err != nil {
		a.last = err
		return Outcome{}, false
	}
	owed := l.owed()
	switch p := &a.proposal; {
	case p.Verdict != nil:
		return Outcome{Kind: Held, Record: s.Record, Superseded: true}, true
	case owed > 0 && p.needsCheck():
		return Outcome{Kind: Held, Record: s.Record, RetryAfter: owed}, true
	default:
		return Outcome{Kind: Granted, Record: s.Record}, true
	}
}
