package lease

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Options are what a Lease can do without. The zero Options is ready for use.
type Options struct {
	// Clock replaces the machine's clock. Nil: SystemClock.
	Clock Clock
	// Nonce returns a text that no other attempt of any owner uses. Nil: 128 random bits.
	Nonce func() string
	// Pace is how often Watch asks.
	Pace Pace
	// OnWatch is called when a Watch is interrupted, with the reason, and with nil when it goes on. It must
	// not block. May be nil.
	OnWatch func(error)
	// OnHeld is called by AcquireWait with the record whenever an Acquire finds the lease held. It must not
	// block. May be nil.
	OnHeld func(Record)
	// Use says what the lease is for, as an error names it ("the singleton mailer of payments"). One record
	// serves one use: New refuses another one in this process (ErrInUse), until all leases of the first are
	// closed. Several members of one use may live in one process. Empty: the caller knows that the record is
	// its own.
	Use string
	// Logger receives warnings (a record that went backwards, a lease lost). Nil: silence.
	Logger *slog.Logger
}

// Lease is one owner's view of one record: it drives a Machine over a Store. It is safe for concurrent use.
type Lease struct {
	store    Store
	owner    string
	settings Settings
	opts     Options
	clock    Clock
	log      *slog.Logger

	// root ends with Close; every goroutine of the lease lives under it and is counted in running.
	root    context.Context
	stop    context.CancelCauseFunc
	running sync.WaitGroup

	// holding is what Check reads, without a lock.
	holding atomic.Pointer[validity]

	// mu guards the fields below. It is never held during a call to the store, the clock or a callback.
	mu      sync.Mutex
	machine *Machine
	last    OpID
	calls   map[OpID]*call
	// held is the present time of holding the lease, as far as an Acquire has been told of it. Nil: none.
	held     *hold
	requests map[RequestID]context.CancelCauseFunc
	// alarm wakes the machine. Nil: nothing is due.
	alarm *alarm
	// unclaim ends the use of the record.
	unclaim func()
}

// call is an operation whose caller waits, and sends its requests meanwhile.
type call struct {
	ctx  context.Context
	work chan func()
	done chan finished
}

// finished is the end of an operation, with the hold that an Acquire has begun or joined.
type finished struct {
	Finished
	hold *hold
}

// New returns the lease of owner over store. It calls nothing: the first request is sent by the first
// operation. An owner names one life of one process (a node that restarts is another owner): two lives with
// one name displace each other.
func New(store Store, owner string, s Settings, o Options) (*Lease, error) {
	var errs []error
	if store == nil {
		errs = append(errs, errors.New("lease: a store is required"))
	}
	if owner == "" {
		errs = append(errs, errors.New("lease: an owner is required"))
	}
	if err := errors.Join(append(errs, s.Validate())...); err != nil {
		return nil, err
	}
	window := s.Window()
	if limiter, ok := store.(Limiter); ok {
		limit, err := limiter.Window(s)
		if err != nil {
			return nil, err
		}
		window = limit
	}
	o.Clock = cmp.Or(o.Clock, SystemClock())
	if o.Nonce == nil {
		o.Nonce = rand.Text
	}
	o.Pace = o.Pace.filled()
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	unclaim, err := claim(store, o.Use)
	if err != nil {
		return nil, err
	}
	root, stop := context.WithCancelCause(context.Background())
	return &Lease{
		store: store, owner: owner, settings: s, opts: o, clock: o.Clock, log: o.Logger.With("owner", owner),
		root: root, stop: stop, unclaim: unclaim,
		machine: NewMachine(owner, s, window, DefaultBackoff(s, mathrand.N[time.Duration])),
		calls:   map[OpID]*call{}, requests: map[RequestID]context.CancelCauseFunc{},
	}, nil
}

// DefaultBackoff returns the pause before the given repetition (1, 2, …) inside one operation: the first at
// once, then about 10 ms doubling up to an eighth of OperationTimeout. draw returns a random time from zero
// up to, but not including, its argument.
func DefaultBackoff(s Settings, draw func(time.Duration) time.Duration) func(repetition int) time.Duration {
	ceiling := s.OperationTimeout / 8
	return func(repetition int) time.Duration {
		if repetition <= 1 {
			return 0
		}
		d := min(ceiling, 10*time.Millisecond<<min(repetition-2, 20))
		return d/2 + draw(d/2+1)
	}
}

// Owner returns the name this lease is acquired under.
func (l *Lease) Owner() string { return l.owner }

// Settings returns the times in effect.
func (l *Lease) Settings() Settings { return l.settings }

// Check reports whether this owner certainly holds the lease at this moment. It never blocks and sends
// nothing: it compares the clock with a deadline that ends before another party may take over, so it answers
// false also when this process got no notice of the end (a pause, a dead connection).
func (l *Lease) Check() bool {
	g := l.holding.Load()
	return g != nil && g.valid(l.clock.Now())
}

// Token returns the fencing token of the present grant, zero when Check is false. Hand it to whatever the
// lease protects and let that refuse smaller ones: it is the one guard that also covers what was sent just
// before the lease was lost.
func (l *Lease) Token() uint64 {
	if g := l.holding.Load(); g != nil && g.valid(l.clock.Now()) {
		return g.token
	}
	return 0
}

// ValidUntil returns until when Check stays true without another heartbeat, zero for ever; ok is false when
// Check is. It is for work that takes time to stop: begin to stop before that moment, and have stopped at it.
// Each heartbeat moves it. It never blocks.
func (l *Lease) ValidUntil() (until time.Time, ok bool) {
	g := l.holding.Load()
	if g == nil || !g.valid(l.clock.Now()) {
		return time.Time{}, false
	}
	return g.deadline, true
}

// Acquire tries once to get the lease, within ctx and OperationTimeout, and says truthfully what became of
// it. Without an error it is granted, and this owner holds it; after a take-over it may not use it yet
// (Proposal.TakeOver). A *HeldError says that for certain nothing was granted, and why. Any other error means
// that the outcome is unknown: the store may have granted, or may still. But after an error that wraps
// ErrRefused nothing was written. See OutcomeOf.
//
// It is re-entrant: a plain Acquire of a holder is granted at once and without a request; with a verdict or a
// time, which must be recorded, it is a write. Concurrent plain calls share one attempt, all others queue up;
// each gets an answer.
//
// A grant that arrives after an error was returned is undone, unless a later Acquire finds and adopts it. The
// adopting one returns a HeldError with that grant if its own verdict came too late: the lease is held then.
func (l *Lease) Acquire(ctx context.Context, p Proposal) (*Grant, error) {
	f := l.do(ctx, AcquireOp{Proposal: p, Nonce: l.opts.Nonce()})
	held := (*HeldError)(nil)
	switch {
	case f.Err == nil:
		return &Grant{lease: l, hold: f.hold, record: f.Snapshot.Record}, nil
	case f.Tenure != 0 && errors.As(f.Err, &held):
		held.Grant = &Grant{lease: l, hold: f.hold, record: held.Record}
	}
	return nil, f.Err
}

// Release gives the lease up. Check is false, and the grant's Done closed, before the write is sent, whatever
// becomes of it. It may be called at any time and any number of times. Token and verdict stay in the record.
//
// Nil: for certain the record names this owner no more. ErrNotHeld: there was nothing to release, neither a
// held lease nor a grant that may still come late, and no request was sent. Any other error: the record may
// still name this owner, perhaps because it must (Proposal.TakeOver); Release may be called again, else the
// record is tidied up in the background, or runs out.
func (l *Lease) Release(ctx context.Context) error { return l.do(ctx, ReleaseOp{}).Err }

// ForceRelease frees the record although another owner holds it: an operator's act. The former holder learns
// with its next heartbeat, or by a running Watch at once; until then both may work, so make sure that it has
// ended. Token and verdict stay.
//
// holder names the expected holder; empty: any holder. was is the record as it stood, expired says that its
// holder had been silent for its whole time already, as seen from here. The errors are those of Release:
// ErrNotHeld if it has no holder, or ErrOtherHolder. A lease that this Lease holds itself is released.
func (l *Lease) ForceRelease(ctx context.Context, holder string) (was Record, expired bool, err error) {
	f := l.do(ctx, ForceOp{holder})
	return f.Snapshot.Record, f.Expired, f.Err
}

// Read returns the record as it is in the store now. If the store went backwards (deleted, restored from a
// backup) it carries the newest token and verdict this lease has seen, and Record.Behind.
func (l *Lease) Read(ctx context.Context) (Record, error) {
	s, err := l.fetch(ctx)
	return s.Record, err
}

func (l *Lease) fetch(ctx context.Context) (Snapshot, error) {
	f := l.do(ctx, ReadOp{})
	return f.Snapshot, f.Err
}

// Close stops the heartbeats and all goroutines and waits for them. It does not release: a lease that is
// still held runs out for the others. Check is false from here on, and its grants have ended.
func (l *Lease) Close() {
	l.step(Closed{})
	l.stop(ErrClosed)
	l.mu.Lock()
	for _, cancel := range l.requests {
		cancel(ErrClosed)
	}
	if l.alarm != nil {
		l.alarm.stop()
		l.alarm = nil
	}
	l.mu.Unlock()
	l.running.Wait()
	l.unclaim()
}

// do carries an operation out and waits for its end.
func (l *Lease) do(ctx context.Context, what any) finished {
	now, cause := l.clock.Now(), context.Cause(ctx)
	begin := Begin{Do: what, Deadline: now.Add(l.settings.OperationTimeout), Cause: cause}
	if end, ok := ctx.Deadline(); ok {
		begin.Hurry = now.Add(time.Until(end))
	}
	c := &call{ctx: ctx, work: make(chan func(), 1), done: make(chan finished, 1)}
	l.mu.Lock()
	l.last++
	begin.Op = l.last
	l.calls[begin.Op] = c
	l.mu.Unlock()
	l.step(begin)
	if cause == nil {
		defer context.AfterFunc(ctx, func() { l.step(Cancel{Op: begin.Op, Cause: context.Cause(ctx)}) })()
	}
	answered := false
	defer func() {
		if !answered {
			l.desert(begin.Op, c) // the store has panicked, or ended the goroutine
		}
	}()
	for {
		select {
		case f := <-c.done:
			answered = true
			return f
		case request := <-c.work:
			request()
		}
	}
}

// desert goes on with an operation whose caller does not wait any more.
func (l *Lease) desert(op OpID, c *call) {
	l.step(Cancel{Op: op, Cause: context.Canceled})
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.calls, op)
	select {
	case request := <-c.work:
		go request()
	default:
	}
}

// step lets the machine handle an event, and carries out its effects.
func (l *Lease) step(e Event) (news *Record) {
	now := l.clock.Now()
	var notes []Note
	l.mu.Lock()
	effects := l.machine.Step(now, e)
	l.holding.Store(l.machine.holding) // before any caller is told
	for _, effect := range effects {
		switch effect := effect.(type) {
		case Send:
			l.send(effect)
		case Abort:
			if cancel := l.requests[effect.Request]; cancel != nil {
				cancel(effect.Cause)
			}
		case Finished:
			l.finish(effect)
		case Ended:
			if l.held != nil && l.held.tenure == effect.Tenure {
				l.held.end(effect.Reason)
				l.held = nil
			}
		case News:
			news = &effect.Record
		case Note:
			notes = append(notes, effect)
		}
	}
	l.wake()
	l.mu.Unlock()
	for _, n := range notes {
		l.log.Log(context.Background(), n.Level, n.Text, n.Args...)
	}
	return news
}

// finish answers the caller of an operation. Called under mu.
func (l *Lease) finish(f Finished) {
	c := l.calls[f.Op]
	if c == nil {
		return
	}
	if f.Tenure != 0 && (l.held == nil || l.held.tenure != f.Tenure) {
		l.held = &hold{tenure: f.Tenure}
		l.held.Context, l.held.end = context.WithCancelCause(context.Background())
	}
	c.done <- finished{f, l.held}
	delete(l.calls, f.Op)
}

// send sends one request: on the caller's goroutine, where a caller waits for the operation. Called under mu.
func (l *Lease) send(s Send) {
	ctx, c := context.Background(), l.calls[s.Op]
	if c != nil {
		ctx = context.WithoutCancel(c.ctx) // for its values
	}
	ctx, cancel := context.WithCancelCause(ctx)
	if l.root.Err() != nil { // Close has cancelled all that were sent before
		cancel(ErrClosed)
	}
	l.requests[s.Request] = cancel
	if c == nil {
		l.running.Go(func() { l.request(ctx, cancel, s) })
		return
	}
	l.running.Add(1)
	c.work <- func() {
		defer l.running.Done()
		l.request(ctx, cancel, s)
	}
}

func (l *Lease) request(ctx context.Context, cancel context.CancelCauseFunc, s Send) {
	var e Event = Failed{Request: s.Request,
		Err: errors.New("lease: the store ended the goroutine of the request")}
	defer func() {
		cancel(context.Canceled)
		l.mu.Lock()
		delete(l.requests, s.Request)
		l.mu.Unlock()
		l.step(e)
	}()
	bounded, stop := withTimeout(ctx, l.clock, s.Timeout, errTimeout)
	defer stop()
	var snapshot Snapshot
	var err error
	if s.Write {
		snapshot.Version, err = l.store.Write(bounded, s.Record, s.Prev)
	} else {
		if snapshot, err = l.store.Read(bounded); err == nil {
			err = snapshot.Record.away()
		}
	}
	if e = (Answered{Request: s.Request, Snapshot: snapshot}); err != nil {
		e = Failed{Request: s.Request, Err: because(bounded, err)}
	}
}

// alarm is a Tick to come.
type alarm struct {
	at   time.Time
	stop func()
}

// wake sets the alarm for what is due next. Called under mu.
func (l *Lease) wake() {
	at, ok := l.machine.Deadline()
	switch {
	case l.alarm != nil && ok && !at.Before(l.alarm.at):
		return // it finds nothing to do, and sets the next one
	case l.alarm != nil:
		l.alarm.stop()
		l.alarm = nil
	}
	if !ok || l.root.Err() != nil {
		return
	}
	a := &alarm{at: at}
	l.alarm = a
	a.stop = l.after(at.Sub(l.clock.Now()), func() {
		l.mu.Lock()
		if l.alarm == a {
			l.alarm = nil
		}
		l.mu.Unlock()
		l.step(Tick{})
	})
}

// after calls f when d is over, unless it is stopped. It starts a goroutine for the time of f alone, where
// the clock lets it: each request sets alarms, and to start a goroutine for one of them takes longer than all
// else that is done for it here.
func (l *Lease) after(d time.Duration, f func()) (stop func()) {
	if _, ok := l.clock.(systemClock); ok {
		l.running.Add(1)
		t := time.AfterFunc(d, func() {
			defer l.running.Done()
			f()
		})
		return func() {
			if t.Stop() {
				l.running.Done()
			}
		}
	}
	ctx, cancel := context.WithCancel(l.root)
	l.running.Go(func() {
		defer cancel()
		if sleep(ctx, l.clock, d) == nil {
			f()
		}
	})
	return cancel
}
