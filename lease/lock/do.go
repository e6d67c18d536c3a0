package lock

import (
	"context"
	"errors"
	"fmt"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Do acquires the lock for the default duration, runs fn and releases the lock. If somebody holds it nothing is run, and the
// error wraps ErrHeld; if nobody knows, nothing is run either.
//
// fn's context ends when the lock is lost or released, or its time is over, with a context.Cause that wraps ErrLost. The error
// is fn's, joined by the loss if there was one: then the end of the work may have run unprotected, which only the fencing token
// guards against.
// The lock is released after fn also when it panics; a release that fails is logged, the lock runs out then.
//
// A Reentrant or Overriding Lock may run several Do at once, one inside another too: the last one to end releases.
func (k *Lock) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	return k.do(ctx, fn, k.try)
}

// DoWait is Do that waits until the lock is free, as AcquireWait does.
func (k *Lock) DoWait(ctx context.Context, fn func(ctx context.Context) error) error {
	return k.do(ctx, fn, k.lease.AcquireWait)
}

// work is one fn that runs.
type work struct {
	token  uint64
	cancel context.CancelCauseFunc
}

func all(*work) bool { return true }

// cancel ends the context of those works, for good. Called under mu.
func (k *Lock) cancel(reason error, which func(*work) bool) {
	for w := range k.works {
		if which(w) {
			w.cancel(reason)
			delete(k.works, w)
		}
	}
}

func (k *Lock) do(ctx context.Context, fn func(context.Context) error, by acquire) error {
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := &work{cancel: cancel}
	releases, err := k.enter(ctx)
	if err != nil {
		return k.refused(lease.Outcome{Err: err})
	}
	defer k.leave(ctx, w)
	out := k.acquire(ctx, k.cfg.Duration, by, func(token uint64) { k.start(w, token, releases) })
	if err := k.refused(out); err != nil {
		return err
	}
	err = fn(running)
	loss := context.Cause(running)
	switch {
	case errors.Is(err, ErrLost):
		return err
	case errors.Is(loss, ErrLost):
	case k.Held():
		return err
	default:
		loss = fmt.Errorf("%w: its time was over when the work ended", ErrLost)
	}
	if err == nil {
		return loss
	}
	return fmt.Errorf("%w; %w", err, loss)
}

// enter announces a Do, and returns the count of releases so far. It waits for a release that the last Do has begun: that would
// end what this one is about to enter again.
func (k *Lock) enter(ctx context.Context) (releases int, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.leaving != nil {
		leaving := k.leaving
		k.mu.Unlock()
		select {
		case <-leaving:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		k.mu.Lock()
		if err != nil {
			return 0, err
		}
	}
	k.entered++
	return k.releases, nil
}

// start makes w known to whoever ends the grant, or ends it at once if that has happened since enter.
func (k *Lock) start(w *work, token uint64, releases int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	w.token = token
	now := k.lease.Token() // under mu: a release that ends the grant after this will find w
	// A larger token is that of a concurrent Do, which has entered the same grant again, or has got another one.
	if now == token || (now > token && k.cfg.Type != SingleEntrant && releases == k.releases) {
		k.works[w] = struct{}{}
		return
	}
	w.cancel(fmt.Errorf("%w: ended before the work began", ErrLost))
}

// leave ends a Do. It releases its own grant, unless others are inside it; what came after that is not touched.
func (k *Lock) leave(ctx context.Context, w *work) {
	if !k.left(w) {
		return
	}
	done := k.releasing()
	defer func() {
		done()
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.leaving != nil {
			close(k.leaving)
			k.leaving = nil
		}
	}()
	// The caller's ctx may be over; the release is bounded by the operation timeout.
	if out := k.lease.Release(context.WithoutCancel(ctx)); out.Kind == lease.ReleaseUnknown {
		k.cfg.Logger.Warn("lock: not released after the work; it runs out", "error", out.Err)
	}
}

// left takes w out, and reports whether there is something to release.
func (k *Lock) left(w *work) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.works, w)
	k.entered--
	now := k.lease.Token()
	if k.cfg.Type == SingleEntrant {
		return now != 0 && now == w.token
	}
	if now == 0 || k.entered > 0 {
		return false
	}
	k.leaving = make(chan struct{})
	return true
}
