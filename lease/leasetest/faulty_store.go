package leasetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Store returns the connection. It is a lease.Watcher and a lease.Limiter exactly if the store is: a lease behaves differently
// over a store that cannot be watched, and would be unsafe over one whose limit is hidden.
func (f *Faulty) Store() lease.Store {
	store := faultyStore{f}
	w, watches := f.inner.(lease.Watcher)
	l, limits := f.inner.(lease.Limiter)
	switch {
	case watches && limits:
		return struct {
			faultyStore
			faultyWatcher
			lease.Limiter
		}{store, faultyWatcher{f, w}, l}
	case watches:
		return struct {
			faultyStore
			faultyWatcher
		}{store, faultyWatcher{f, w}}
	case limits:
		return struct {
			faultyStore
			lease.Limiter
		}{store, l}
	default:
		return store
	}
}

type faultyStore struct{ f *Faulty }

// Read implements lease.Store.
func (s faultyStore) Read(ctx context.Context) (lease.Snapshot, error) {
	return s.f.send(false).meet(ctx, func() (lease.Snapshot, error) { return s.f.inner.Read(ctx) })
}

// Write implements lease.Store.
func (s faultyStore) Write(ctx context.Context, r lease.Record, prev lease.Version) (lease.Snapshot, error) {
	fate := s.f.send(true)
	if fate.fault == CommitLate && ctx.Err() == nil {
		s.f.commitLate(r, prev, fate.lateness)
		return lost(ctx, CommitLate)
	}
	return fate.meet(ctx, func() (lease.Snapshot, error) { return s.f.inner.Write(ctx, r, prev) })
}

// meet sends a request by way of its fate.
func (t fate) meet(ctx context.Context, send func() (lease.Snapshot, error)) (lease.Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return lease.Snapshot{}, err
	}
	switch t.fault {
	case Unavailable:
		return lease.Snapshot{}, fmt.Errorf("%w: %v", ErrInjected, Unavailable)
	case Conflict:
		return lease.Snapshot{}, fmt.Errorf("%w (%w)", lease.ErrConflict, ErrInjected)
	case Refuse:
		return lease.Snapshot{}, fmt.Errorf("%w (%w)", lease.ErrRefused, ErrInjected)
	case LoseRequest:
		return lost(ctx, LoseRequest)
	}
	if err := pause(ctx, t.delay/2); err != nil {
		return lease.Snapshot{}, err
	}
	s, err := send()
	switch t.fault {
	case LoseResponse:
		return lost(ctx, LoseResponse)
	case BreakResponse:
		return lease.Snapshot{}, fmt.Errorf("%w: %v", ErrInjected, BreakResponse)
	}
	if slow := pause(ctx, t.delay-t.delay/2); slow != nil {
		return lease.Snapshot{}, slow
	}
	return s, err
}

// lost waits for an answer that never comes.
func lost(ctx context.Context, fault Fault) (lease.Snapshot, error) {
	<-ctx.Done()
	return lease.Snapshot{}, fmt.Errorf("%w: %v: %w", ErrInjected, fault, ctx.Err())
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lateTimeout bounds a late write, which nobody waits for.
const lateTimeout = 10 * time.Second

func (f *Faulty) commitLate(r lease.Record, prev lease.Version, after time.Duration) {
	r.Verdict = r.Verdict.Clone()
	f.late.Go(func() {
		if pause(f.root, after) != nil {
			return
		}
		ctx, cancel := context.WithTimeout(f.root, lateTimeout)
		defer cancel()
		_, _ = f.inner.Write(ctx, r, prev)
	})
}

type faultyWatcher struct {
	f *Faulty
	w lease.Watcher
}

// Watch implements lease.Watcher.
func (w faultyWatcher) Watch(ctx context.Context, fn func(lease.Snapshot)) error {
	w.f.mu.Lock()
	w.f.counters.Watches++
	w.f.mu.Unlock()
	return w.w.Watch(ctx, func(s lease.Snapshot) {
		if w.f.passes(ctx) {
			fn(s)
		}
	})
}

// passes holds a report back while watches are silent. It reports false when ctx has ended.
func (f *Faulty) passes(ctx context.Context) bool {
	for {
		f.mu.Lock()
		silent, delay, changed := f.silent, f.delay/2, f.changed
		for _, r := range f.rules {
			silent = silent || (r.fault == Unavailable && r.left < 0 && r.on.include(false))
		}
		f.mu.Unlock()
		if !silent {
			return pause(ctx, delay) == nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// chance draws fates.
type chance struct {
	seed    uint64
	p       float64
	longest time.Duration
}

// draw settles the fate of the n-th read or write.
func (c *chance) draw(t *fate, write bool, n uint64) {
	choices := []Fault{Unavailable, LoseRequest, LoseResponse, BreakResponse, Slow}
	n *= 2
	if write {
		n++
		choices = append(choices, Conflict, Refuse, CommitLate)
	}
	r := rand.New(rand.NewPCG(c.seed, n))
	if r.Float64() >= c.p {
		return
	}
	t.fault = choices[r.IntN(len(choices))]
	if c.longest > 0 {
		t.lateness = time.Duration(r.Int64N(int64(c.longest)))
	}
	if t.fault == Slow {
		t.delay += t.lateness
	}
}
