package lock

import (
	"context"
	"errors"
	"fmt"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Do acquires the lock for the default duration, runs fn and releases the lock. If it is held already nothing
// is run, and the error wraps ErrHeld; if the outcome is unknown, nothing is run either.
//
// fn's context ends when the lock is lost or released, or its time is over, with a context.Cause that wraps
// ErrLost. The error is fn's, joined by the loss if there was one: then the end of the work may have run
// unprotected, which only the fencing token guards against. The lock is released after fn also when it
// panics; a release that fails is logged, the lock runs out then.
//
// A Reentrant or Overriding Lock may run several Do at once, one inside another too: the last one to end
// releases.
func (k *Lock) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	return k.do(ctx, fn, k.try)
}

// DoWait is Do that waits until the lock is free, as AcquireWait does.
func (k *Lock) DoWait(ctx context.Context, fn func(ctx context.Context) error) error {
	return k.do(ctx, fn, k.lease.AcquireWait)
}

func (k *Lock) do(ctx context.Context, fn func(context.Context) error, by acquire) error {
	if err := k.enter(ctx); err != nil {
		return k.refused(err)
	}
	var g *lease.Grant
	defer func() { k.leave(context.WithoutCancel(ctx), g) }() // the release is bounded by the operation timeout
	g, err := k.acquire(ctx, k.cfg.Duration, by)
	if err != nil {
		return k.refused(err)
	}
	running, cancel := g.Context(ctx)
	defer cancel()
	err = fn(running)
	loss := g.Err()
	switch {
	case errors.Is(err, ErrLost):
		return err
	case loss == nil && k.Held():
		return err
	case loss == nil:
		loss = fmt.Errorf("%w: its time was over when the work ended", ErrLost)
	}
	if err == nil {
		return loss
	}
	return fmt.Errorf("%w; %w", err, loss)
}

// enter announces a Do. It waits for a release that the last Do has begun: that would end what this one is
// about to enter again.
func (k *Lock) enter(ctx context.Context) (err error) {
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
			return err
		}
	}
	k.entered++
	return nil
}

// leave ends a Do. A single-entrant one releases its own grant, nil for none; of the others the last one
// releases the lock, unless none has acquired it: then what is held is the caller's.
func (k *Lock) leave(ctx context.Context, g *lease.Grant) {
	release := k.lease.Release
	k.mu.Lock()
	k.entered--
	k.granted = k.granted || g != nil
	switch {
	case k.cfg.Type == SingleEntrant && g != nil:
		release = g.Release
	case k.cfg.Type == SingleEntrant, k.entered > 0, !k.granted:
		release = nil
	default:
		k.granted = false
		k.leaving = make(chan struct{})
	}
	k.mu.Unlock()
	if release == nil {
		return
	}
	if k.cfg.Type != SingleEntrant {
		defer func() {
			k.mu.Lock()
			defer k.mu.Unlock()
			close(k.leaving)
			k.leaving = nil
		}()
	}
	if err := release(ctx); err != nil && !errors.Is(err, lease.ErrNotHeld) {
		k.cfg.Logger.Warn("lock: not released after the work; it runs out", "error", err)
	}
}
