package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Errors that a Lock returns. They are those of package lease, under the names that a user of locks looks
// for.
var (
	// ErrHeld is wrapped by Do, DoWait and AcquireWait when the lock was held already: for certain nothing
	// was acquired or run.
	ErrHeld = lease.ErrHeld
	// ErrLost is wrapped by the cause of a context that Do has cancelled, and by Do, when the lock was lost
	// or its time was over.
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
	// entered counts the Do that run or are about to, granted says that one of them has acquired the lock.
	// leaving is there while the last one releases.
	entered int
	granted bool
	leaving chan struct{}
}

// New returns a lock over store. It calls nothing: the first request is sent by the first operation. Several
// locks over one record, here or elsewhere, contend for it. Close it after use.
//
// A store that is shared with programs which expire holders by a rule of their own (lease.Limiter) is
// refused: they know nothing of a lock's duration.
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
	l, err := lease.New(store, cfg.Owner, settings,
		lease.Options{Use: use, Clock: cfg.Clock, Logger: cfg.Logger})
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	return &Lock{cfg: cfg, lease: l, onClose: func() error { return nil }}, nil
}

// Owner returns the owner id.
func (k *Lock) Owner() string { return k.cfg.Owner }

// Held reports whether this lock is certainly held by this object at this moment. It sends nothing and never
// blocks.
func (k *Lock) Held() bool { return k.lease.Check() }

// Token returns the fencing token, zero when Held is false. It grows with each acquire, of any owner. Hand it
// to what the lock protects and let that refuse smaller ones.
func (k *Lock) Token() uint64 { return k.lease.Token() }

// Acquire tries once to get the lock for the default duration. True: it is held. False: for certain not,
// it was taken already. An error: the outcome is unknown, since the store did not answer, or refused, or the
// duration is not valid. A lock that comes although an error was returned is given back, unless the next
// Acquire takes it on.
func (k *Lock) Acquire(ctx context.Context) (bool, error) {
	return k.AcquireFor(ctx, k.cfg.Duration)
}

// AcquireFor is Acquire for the duration d, in whole milliseconds, or Forever.
func (k *Lock) AcquireFor(ctx context.Context, d time.Duration) (bool, error) {
	switch _, err := k.acquire(ctx, d, k.try); {
	case err == nil:
		return true, nil
	case errors.Is(err, ErrHeld):
		return false, nil
	default:
		return false, k.refused(err)
	}
}

// AcquireForever is AcquireFor(ctx, Forever): if its holder dies the lock stays, until its release is forced.
func (k *Lock) AcquireForever(ctx context.Context) (bool, error) {
	return k.AcquireFor(ctx, Forever)
}

// TryAcquire is Acquire for callers that treat an unknown outcome as no. The reason goes to the log.
func (k *Lock) TryAcquire(ctx context.Context) bool {
	ok, err := k.Acquire(ctx)
	if err != nil {
		k.cfg.Logger.Warn("lock: not acquired", "error", err)
	}
	return ok
}

// AcquireWait acquires the lock for the default duration as soon as it is free. It returns nil when it is
// held, else the reason, which wraps ErrHeld if it was held to the end: ctx's, or at once that waiting is
// futile. Which of many waiting parties is next is open. A store that does not answer is asked again and
// again.
func (k *Lock) AcquireWait(ctx context.Context) error {
	return k.AcquireWaitFor(ctx, k.cfg.Duration)
}

// AcquireWaitFor is AcquireWait for the duration d, in whole milliseconds, or Forever.
func (k *Lock) AcquireWaitFor(ctx context.Context, d time.Duration) error {
	if _, err := k.acquire(ctx, d, k.lease.AcquireWait); err != nil {
		return k.refused(err)
	}
	return nil
}

type acquire func(context.Context, lease.Proposal) (*lease.Grant, error)

// acquire gets the lock by one of the lease's methods.
func (k *Lock) acquire(ctx context.Context, d time.Duration, by acquire) (*lease.Grant, error) {
	if err := checkDuration(d); err != nil {
		return nil, fmt.Errorf("%w: %w", lease.ErrRefused, err)
	}
	return by(ctx, lease.Proposal{
		For: d, KeepAlive: k.cfg.KeepAlive, Exclusive: k.cfg.Type == SingleEntrant,
		Override: k.cfg.Type == Overriding,
	})
}

// try tries once. A single-entrant holder would be refused by what it knows; the store may know better, so it
// is asked first.
func (k *Lock) try(ctx context.Context, p lease.Proposal) (*lease.Grant, error) {
	if p.Exclusive && k.lease.Check() {
		if _, err := k.lease.Read(ctx); err != nil {
			return nil, err
		}
	}
	return k.lease.Acquire(ctx, p)
}

// refused says of which lock err speaks.
func (k *Lock) refused(err error) error {
	return fmt.Errorf("could not acquire lock%s: %w", k.named(), err)
}

func (k *Lock) named() string {
	if k.cfg.Name == "" {
		return ""
	}
	return fmt.Sprintf(" %q", k.cfg.Name)
}

// Release gives the lock up. True: it was held, by this owner, and is free now; an Overriding lock frees any
// owner's lock. False: for certain there was no such lock, or its time was over. An error: the outcome is
// unknown. Held is false before anything is sent, and a Do that runs is cancelled.
func (k *Lock) Release(ctx context.Context) (bool, error) {
	if k.cfg.Type == Overriding {
		return k.force(ctx, "")
	}
	if err := k.lease.Release(ctx); !errors.Is(err, lease.ErrNotHeld) {
		return k.freed(false, err)
	}
	// Not this object's, as far as it knows, but perhaps its owner's: of another object with that id, or of
	// this one in the last part of its duration, which only others may still believe in.
	return k.force(ctx, k.cfg.Owner)
}

// ForceRelease frees the lock of any owner, as Release of an Overriding lock does. Make sure that the holder
// has ended: it learns of this with its next renewal, without KeepAlive not before its next call.
func (k *Lock) ForceRelease(ctx context.Context) (bool, error) {
	return k.force(ctx, "")
}

func (k *Lock) force(ctx context.Context, holder string) (bool, error) {
	_, expired, err := k.lease.ForceRelease(ctx, holder)
	return k.freed(expired, err)
}

func (k *Lock) freed(expired bool, err error) (bool, error) {
	switch {
	case err == nil:
		return !expired, nil
	case errors.Is(err, lease.ErrNotHeld):
		return false, nil
	default:
		return false, fmt.Errorf("could not release lock%s: %w", k.named(), err)
	}
}

// Close ends the renewal of the lock and all goroutines, and waits for them; a Do that runs is cancelled. It
// does not release: a lock that is still held runs out for the others. What a Manager has opened for the lock
// is closed as well; the error is from there.
func (k *Lock) Close() error {
	k.lease.Close()
	return k.onClose()
}
