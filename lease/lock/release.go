package lock

import (
	"context"
	"fmt"

	"github.com/serf-sbr/serf-sbr/lease"
)

var errReleased = fmt.Errorf("%w: released while the work ran", ErrLost)

// Release gives the lock up. True: it was held, by this owner, and is free now; an Overriding lock frees whoever's lock.
// False: for certain there was no such lock, or its time was over. An error: nobody knows.
// Held is false before anything is sent, and a Do that runs is cancelled.
func (k *Lock) Release(ctx context.Context) (bool, error) {
	defer k.releasing()()
	if k.cfg.Type == Overriding {
		return k.freed(k.lease.ForceRelease(ctx, ""))
	}
	out := k.lease.Release(ctx)
	if out.Kind == lease.NotReleased {
		// Not this object's, as far as it knows, but perhaps its owner's: of another object with that id, or of this one
		// in the last part of its duration, which only others may still believe in.
		out = k.lease.ForceRelease(ctx, k.cfg.Owner)
	}
	return k.freed(out)
}

// ForceRelease frees the lock whoever holds it, as Release of an Overriding lock does. Make sure that the holder has ended: it
// learns of this with its next renewal, without KeepAlive not before its next call.
func (k *Lock) ForceRelease(ctx context.Context) (bool, error) {
	defer k.releasing()()
	return k.freed(k.lease.ForceRelease(ctx, ""))
}

func (k *Lock) freed(out lease.ReleaseOutcome) (bool, error) {
	if out.Kind == lease.ReleaseUnknown {
		return false, fmt.Errorf("could not release lock%s: %w", k.named(), out.Err)
	}
	return out.Kind == lease.Released && !out.Expired, nil
}

// releasing cancels what runs now. The function it returns does so again with what began meanwhile, unless its grant came
// after the release.
func (k *Lock) releasing() (done func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.releases++
	k.cancel(errReleased, all)
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.releases++
		now := k.lease.Token()
		k.cancel(errReleased, func(w *work) bool { return w.token != now })
	}
}
