package lease

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Options are what a Lease can do without. The zero Options is ready for use.
type Options struct {
	// Clock replaces the machine's clock. Nil: SystemClock.
	Clock Clock
	// Nonce returns a text that no other attempt of any owner uses. Nil: 128 random bits.
	Nonce func() string
	// Backoff returns the pause before the given repetition (1, 2, …) inside one operation.
	// Nil: the first at once, then about 10 ms doubling up to an eighth of OperationTimeout, jittered.
	Backoff func(repetition int) time.Duration
	// Pace is how often Watch asks.
	Pace Pace
	// OnWatch is called when a Watch is interrupted, with the reason, and with nil when it goes on. It must not block. May be nil.
	OnWatch func(error)
	// Use says what the lease is for, as an error names it ("the singleton mailer of payments"). One record serves one use: New refuses
	// another one in this process (ErrInUse), until all leases of the first are closed. Several members of one use may live in one
	// process. Empty: whoever calls knows that the record is its own.
	Use string
	// Logger receives warnings (a record that went backwards, a lease lost). Nil: silence.
	Logger *slog.Logger
}

// Lease is one owner's view of one record: the algorithm over a Store. It is safe for concurrent use.
type Lease struct {
	store    Store
	owner    string
	settings Settings
	// window is how long one heartbeat is trusted; limited says that a Limiter has shortened it.
	window  time.Duration
	limited bool
	opts    Options
	clock   Clock
	log     *slog.Logger

	// root ends with Close; every goroutine of the lease lives under it and is counted in running.
	root    context.Context
	stop    context.CancelCauseFunc
	running sync.WaitGroup

	// op admits one writer at a time. It is a channel so that waiting for it can be given up.
	op chan struct{}

	// holding is what Check reads, without a lock: nil, or the grant and its deadline. Written under mu.
	holding atomic.Pointer[grant]

	// mu guards the fields below. It is never held during a call to the store, the clock or a callback.
	mu      sync.Mutex
	closed  bool
	tenure  *tenure
	know    knowledge
	strays  map[string]stray
	gaveUp  uint64 // counts the changes to strays
	tidying bool
	freed   string // the last nonce whose grant a write that may have been committed has ended
	next    *joint // the attempt that waits for its turn and may still be joined
	trying  string // the nonce of the attempt under way
	// owedUntil is when a holder that the last write here has replaced, by Proposal.TakeOver, stops believing that it holds the
	// lease. Until then this owner holds the record, so that nobody else gets it, and may not use it. See takeover.go.
	owedUntil time.Time
	// unclaim ends the use of the record.
	unclaim func()
}

// New returns the lease of owner over store. It calls nothing: the first request is sent by the first operation.
// An owner names one life of one process (a node that restarts is another owner): two lives with one name displace each other.
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
	limited := false
	if limiter, ok := store.(Limiter); ok {
		limit, err := limiter.Window(s)
		if err != nil {
			return nil, err
		}
		limited, window = limit < window, min(window, limit)
	}
	if o.Clock == nil {
		o.Clock = SystemClock()
	}
	if o.Nonce == nil {
		o.Nonce = rand.Text
	}
	if o.Backoff == nil {
		o.Backoff = defaultBackoff(s.OperationTimeout / 8)
	}
	o.Pace = o.Pace.filled()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	unclaim, err := claim(store, o.Use)
	if err != nil {
		return nil, err
	}
	root, stop := context.WithCancelCause(context.Background())
	return &Lease{
		store: store, owner: owner, settings: s, window: window, limited: limited,
		opts: o, clock: o.Clock, log: o.Logger.With("owner", owner),
		root: root, stop: stop, op: make(chan struct{}, 1), strays: map[string]stray{}, unclaim: unclaim,
	}, nil
}

func defaultBackoff(ceiling time.Duration) func(int) time.Duration {
	return func(repetition int) time.Duration {
		if repetition <= 1 {
			return 0
		}
		d := min(ceiling, 10*time.Millisecond<<min(repetition-2, 20))
		return d/2 + mathrand.N(d/2+1)
	}
}

// Owner returns the name this lease is acquired under.
func (l *Lease) Owner() string { return l.owner }

// Settings returns the times in effect.
func (l *Lease) Settings() Settings { return l.settings }

// Check reports whether this owner certainly holds the lease at this moment. It never blocks and asks nobody: it compares
// the clock with a deadline that ends before anybody else may take over, so it answers false also when nothing told this
// process that it is over (a pause, a dead connection).
func (l *Lease) Check() bool {
	g := l.holding.Load()
	return g != nil && g.valid(l.clock.Now())
}

// Token returns the fencing token of the present grant, zero when Check is false. Hand it to whatever the lease protects
// and let that refuse smaller ones: it is the one guard that also covers what was sent just before the lease was lost.
func (l *Lease) Token() uint64 {
	if g := l.holding.Load(); g != nil && g.valid(l.clock.Now()) {
		return g.token
	}
	return 0
}

// ValidUntil returns until when Check stays true without another heartbeat, zero for ever; ok is false when Check is. It is for work that
// takes time to stop: begin to stop before that moment, and have stopped at it. Each heartbeat moves it. It never blocks.
func (l *Lease) ValidUntil() (until time.Time, ok bool) {
	g := l.holding.Load()
	if g == nil || !g.valid(l.clock.Now()) {
		return time.Time{}, false
	}
	return g.deadline, true
}

// Read returns the record as it is in the store now. If the store went backwards (deleted, restored from a backup) it
// carries the newest token and verdict this lease has seen, and Record.Behind.
func (l *Lease) Read(ctx context.Context) (Record, error) {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	if err := context.Cause(ctx); err != nil {
		return Record{}, err
	}
	s, err := l.fetch(ctx)
	if err != nil {
		return Record{}, err
	}
	return s.Record.clone(), nil
}

// clone returns a copy that shares nothing with r.
func (r Record) clone() Record {
	r.Verdict = r.Verdict.Clone()
	return r
}

// Close stops the heartbeats and all goroutines and waits for them. It does not release: a lease that is still held runs
// out for the others. Check is false from here on and the lost callback is not called.
func (l *Lease) Close() {
	l.mu.Lock()
	first := !l.closed
	l.closed = true
	if t := l.tenure; t != nil {
		l.endTenure(t)
	}
	l.mu.Unlock()
	l.stop(ErrClosed)
	l.running.Wait()
	if first {
		l.unclaim()
	}
}

// bounded limits ctx to OperationTimeout and to the life of the lease.
func (l *Lease) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(l.root, func() { cancel(ErrClosed) })
	ctx, stop := withTimeout(ctx, l.clock, l.settings.OperationTimeout, errTimeout)
	return ctx, func() {
		unhook()
		stop()
		cancel(context.Canceled)
	}
}

// lock admits the caller as the one writer.
func (l *Lease) lock(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if l.root.Err() != nil {
		return ErrClosed
	}
	select {
	case l.op <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *Lease) unlock() { <-l.op }

// fetch reads the record, learns from it and returns it as this lease sees it (see knowledge.reconcile).
func (l *Lease) fetch(ctx context.Context) (Snapshot, error) {
	sent := l.moment()
	cctx, cancel := l.call(ctx)
	defer cancel()
	s, err := l.store.Read(cctx)
	if err != nil {
		return Snapshot{}, because(cctx, err)
	}
	if err := s.Record.spent(); err != nil {
		return Snapshot{}, err // nothing of it is learnt: what is known would outlive the repair
	}
	return l.learn(s, sent), nil
}

// wall is t as a record keeps it.
func wall(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// write sends one conditional write and learns from its success.
func (l *Lease) write(ctx context.Context, r Record, prev Version) (Snapshot, error) {
	cctx, cancel := l.call(ctx)
	defer cancel()
	r.Behind = false
	v, err := l.store.Write(cctx, r, prev)
	if err != nil {
		return Snapshot{}, because(cctx, err)
	}
	s := Snapshot{Record: r, Version: v}
	l.wrote(s)
	return s, nil
}

// call bounds one request.
func (l *Lease) call(ctx context.Context) (context.Context, context.CancelFunc) {
	left := l.settings.OperationTimeout
	if end, ok := ctx.Deadline(); ok {
		left = time.Until(end)
	}
	return withTimeout(ctx, l.clock, l.settings.RequestTime(left), errTimeout)
}

// pause waits before the n-th repetition of an operation; there is none before the first try.
func (l *Lease) pause(ctx context.Context, n int) error {
	if n == 0 {
		return nil
	}
	return sleep(ctx, l.clock, l.opts.Backoff(n))
}

// newest returns the later of two verdicts. Of two with one token, which only a store that forgot can bring about, it is b, the one that was
// read last.
func newest(a, b *sbr.Verdict) *sbr.Verdict {
	if a == nil || (b != nil && b.Token >= a.Token) {
		return b
	}
	return a
}
