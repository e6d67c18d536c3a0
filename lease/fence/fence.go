package fence

import (
	"context"
	"fmt"
	"sync/atomic"
)

// Storage keeps the largest accepted token of one Fence across restarts. A Fence makes one call at a time.
type Storage interface {
	// Load returns the token of the last Save, and zero if there never was one. What cannot be read is an
	// error, never zero. A Save that failed or was killed may count or not.
	Load() (uint64, error)
	// Save replaces the token. It returns nil only when a crash cannot undo that any more.
	Save(token uint64) error
}

// Fence stands before one resource: it accepts tokens that never get smaller. Its methods are safe for
// concurrent use.
type Fence struct {
	// turn has one element while a call is inside.
	turn    chan struct{}
	storage Storage
	newest  atomic.Uint64
	// saved is the token that this Fence has saved itself; turn guards it. A token loaded at open does not
	// count: the former process may have been killed before it was durable.
	saved uint64
}

// New returns a Fence that has accepted nothing yet and forgets when the process ends. It is enough for a
// resource that ends with it.
func New() *Fence { return &Fence{turn: make(chan struct{}, 1)} }

// Open returns a Fence that goes on from what storage holds.
func Open(storage Storage) (*Fence, error) {
	newest, err := storage.Load()
	if err != nil {
		return nil, err
	}
	f := New()
	f.storage = storage
	f.newest.Store(newest)
	return f, nil
}

// Newest returns the largest token accepted so far, zero if there was none. It never blocks.
func (f *Fence) Newest() uint64 { return f.newest.Load() }

// Do runs effect if token is at least as large as each one accepted before, and keeps all other calls out
// until effect has returned or panicked. It returns effect's error. Otherwise effect is not run and the error
// says why: a *StaleError, one that wraps ErrToken, the cause of ctx, which bounds the wait for the turn, or
// that of a Storage.
//
// An accepted token stays accepted when effect fails. An effect must not use its own Fence: it would wait for
// itself.
func (f *Fence) Do(ctx context.Context, token uint64, effect func() error) error {
	if err := f.refuse(token); err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	select {
	case f.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-f.turn }()
	if err := f.accept(token); err != nil {
		return err
	}
	return effect()
}

// Check is Do without an effect. It raises the fence: when it returns nil no effect with a smaller token is
// under way or will begin. It says nothing about what the caller does next, which may come too late; see Do.
func (f *Fence) Check(ctx context.Context, token uint64) error {
	return f.Do(ctx, token, func() error { return nil })
}

// refuse needs no turn: what is stale now is stale for ever.
func (f *Fence) refuse(token uint64) error {
	if err := valid(token); err != nil {
		return err
	}
	if newest := f.newest.Load(); token < newest {
		return &StaleError{Token: token, Newest: newest}
	}
	return nil
}

// accept needs the turn.
func (f *Fence) accept(token uint64) error {
	if err := f.refuse(token); err != nil {
		return err
	}
	if f.storage != nil && token != f.saved {
		if err := f.storage.Save(token); err != nil {
			return fmt.Errorf("fence: token %d is not admitted because it cannot be remembered: %w", token, err)
		}
		f.saved = token
	}
	f.newest.Store(token)
	return nil
}
