package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Errors that a Lock returns. They are those of package lease, under the names that a user of locks looks for.
var (
	// ErrHeld is wrapped by Do, DoWait and AcquireWait when somebody else held the lock: for certain nothing was acquired or run.
	ErrHeld = lease.ErrHeld
	// ErrLost is wrapped by the cause of a context that Do has cancelled, and by Do, when the lock was lost or its time was over.
	ErrLost = lease.ErrLost
	// ErrClosed is wrapped when the Lock or the Manager was closed.
	ErrClosed = lease.ErrClosed
)

// Lock is one party's handle on one lock. It is safe for concurrent use; what it may do is said by its Type.
type Lock struct {
	cfg     Config
	lease   *lease.Lease
	onClose func() error

	// mu guards the fields below. It is not held while the lease asks the store.
	mu sync.Mutex
	// works are the Do that run, entered counts those that run or are about to. leaving is there while the last one releases.
	works   map[*work]struct{}
	entered int
	leaving chan struct{}
	// releases counts the beginnings and ends of releases.
	releases int
}

// New returns a lock over store. It calls nothing: the first request is sent by the first operation. Several locks over one
// record, here or elsewhere, contend for it. Close it after use.
//
// A store that is shared with programs which expire holders by a rule of their own (lease.Limiter) is refused: they know
// nothing of a lock's duration.
func New(store lease.Store, cfg Config) (*Lock, error) { return open(store, cfg, "") }

// open is New for a use of the record (lease.Options.Use).
func open(store lease.Store, cfg Config, use string) (*Lock, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	cfg = cfg.filled()
	settings := cfg.settings()
	if l, ok := store.(lease.Limiter); ok {
		if limit, err := l.Window(settings); err != nil {
			return nil, fmt.Errorf("lock: %w", err)
		} else if limit < lease.Infinite {
			return nil, errors.New("lock: other users of this store expire holders by a rule of their own: use a store of its own")
		}
	}
	l, err := lease.New(store, cfg.Owner, settings, lease.Options{Use: use, Clock: cfg.Clock, Nonce: cfg.Nonce, Logger: cfg.Logger})
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	return &Lock{cfg: cfg, lease: l, onClose: func() error { return nil }, works: map[*work]struct{}{}}, nil
}

// Owner returns the owner id.
func (k *Lock) Owner() string { return k.cfg.Owner }

// Held reports whether this lock is certainly held by this object at this moment. It asks nobody and never blocks.
func (k *Lock) Held() bool { return k.lease.Check() }

// Token returns the fencing token, zero when Held is false. It grows with each acquire, whoever it is. Hand it to what the
// lock protects and let that refuse smaller ones.
func (k *Lock) Token() uint64 { return k.lease.Token() }

// Acquire tries once to get the lock for the default duration. True: it is held. False: for certain not, somebody holds it.
// An error: nobody knows, since the store did not answer, or refused, or the duration is not valid.
// A lock that comes although an error was returned is given back, unless the next Acquire takes it on.
func (k *Lock) Acquire(ctx context.Context) (bool, error) {
	return k.AcquireFor(ctx, k.cfg.Duration)
}

// AcquireFor is Acquire for the duration d, in whole milliseconds, or Forever.
func (k *Lock) AcquireFor(ctx context.Context, d time.Duration) (bool, error) {
	out := k.acquire(ctx, d, k.try, nil)
	if out.Kind == lease.Unknown {
		return false, k.refused(out)
	}
	return out.Kind == lease.Granted, nil
}

// AcquireForever is AcquireFor(ctx, Forever): if its holder dies the lock stays, until somebody forces its release.
func (k *Lock) AcquireForever(ctx context.Context) (bool, error) {
	return k.AcquireFor(ctx, Forever)
}

// TryAcquire is Acquire for those to whom "nobody knows" is the same as no. The reason goes to the log.
func (k *Lock) TryAcquire(ctx context.Context) bool {
	ok, err := k.Acquire(ctx)
	if err != nil {
		k.cfg.Logger.Warn("lock: not acquired", "error", err)
	}
	return ok
}

// AcquireWait acquires the lock for the default duration as soon as it is free. It returns nil when it is held, else the
// reason, which wraps ErrHeld if somebody else held it to the end: ctx's, or at once that waiting is futile.
// Which of many waiting parties is next is open. A store that does not answer is asked again and again.
func (k *Lock) AcquireWait(ctx context.Context) error {
	return k.AcquireWaitFor(ctx, k.cfg.Duration)
}

// AcquireWaitFor is AcquireWait for the duration d, in whole milliseconds, or Forever.
func (k *Lock) AcquireWaitFor(ctx context.Context, d time.Duration) error {
	return k.refused(k.acquire(ctx, d, k.lease.AcquireWait, nil))
}

type acquire func(context.Context, lease.Proposal, func(error)) lease.Outcome

// acquire gets the lock by one of the lease's methods. granted, if given, is called before a loss of the grant can be told.
func (k *Lock) acquire(ctx context.Context, d time.Duration, by acquire, granted func(token uint64)) lease.Outcome {
	if err := checkDuration(d); err != nil {
		return lease.Outcome{Kind: lease.Unknown, Err: fmt.Errorf("%w: %w", lease.ErrRefused, err)}
	}
	// The loss may be told before the token is known here.
	var token uint64
	known := make(chan struct{})
	defer close(known)
	out := by(ctx, lease.Proposal{
		For: d, KeepAlive: k.cfg.KeepAlive, Exclusive: k.cfg.Type == SingleEntrant, Override: k.cfg.Type == Overriding,
	}, func(reason error) {
		<-known
		k.mu.Lock()
		defer k.mu.Unlock()
		k.cancel(reason, func(w *work) bool { return w.token <= token })
	})
	if out.Kind == lease.Granted {
		token = out.Record.Token
		if granted != nil {
			granted(token)
		}
	}
	return out
}

// try tries once. A single-entrant holder would be refused by what it knows; the store may know better, so it is asked first.
func (k *Lock) try(ctx context.Context, p lease.Proposal, lost func(error)) lease.Outcome {
	if p.Exclusive && k.lease.Check() {
		if _, err := k.lease.Read(ctx); err != nil {
			return lease.Outcome{Kind: lease.Unknown, Err: err}
		}
	}
	return k.lease.Acquire(ctx, p, lost)
}

// refused is the error of an outcome, nil for a grant.
func (k *Lock) refused(out lease.Outcome) error {
	err := out.Err
	switch {
	case out.Kind == lease.Granted:
		return nil
	case out.Kind == lease.Held && err == nil:
		err = fmt.Errorf("%w by %q (token %d)", ErrHeld, out.Record.Holder, out.Record.Token)
	case out.Kind == lease.Held:
		err = fmt.Errorf("%w by %q (token %d): %w", ErrHeld, out.Record.Holder, out.Record.Token, err)
	}
	return fmt.Errorf("could not acquire lock%s: %w", k.named(), err)
}

func (k *Lock) named() string {
	if k.cfg.Name == "" {
		return ""
	}
	return fmt.Sprintf(" %q", k.cfg.Name)
}

// Close ends the renewal of the lock and all goroutines, and waits for them; a Do that runs is cancelled. It does not release:
// a lock that is still held runs out for the others. What a Manager has opened for the lock is closed as well; the error is from
// there.
func (k *Lock) Close() error {
	k.lease.Close()
	k.mu.Lock()
	k.cancel(fmt.Errorf("%w: %w", ErrLost, ErrClosed), all)
	k.mu.Unlock()
	return k.onClose()
}
