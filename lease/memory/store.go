package memory

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Store is one record. It is safe for concurrent use, by any number of parties.
type Store struct {
	mu       sync.Mutex
	snap     lease.Snapshot
	serial   uint64
	history  []lease.Record
	onCommit []func(lease.Record)
	// changed is closed and replaced at each change.
	changed chan struct{}
}

var (
	_ lease.Store      = (*Store)(nil)
	_ lease.Watcher    = (*Store)(nil)
	_ lease.Identified = (*Store)(nil)
	_ lease.Located    = (*Store)(nil)
)

// NewStore returns a store without a record.
func NewStore() *Store { return &Store{changed: make(chan struct{})} }

// Identity implements lease.Identified.
func (s *Store) Identity(context.Context) (string, error) { return s.Location(), nil }

// Location implements lease.Located.
func (s *Store) Location() string { return fmt.Sprintf("the record in memory at %p", s) }

// Read implements lease.Store.
func (s *Store) Read(ctx context.Context) (lease.Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return lease.Snapshot{}, err
	}
	return s.Snapshot(), nil
}

// Write implements lease.Store.
func (s *Store) Write(ctx context.Context, r lease.Record, prev lease.Version) (lease.Version, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if prev != s.snap.Version {
		return "", lease.ErrConflict
	}
	return s.commit(r).Version, nil
}

// Watch implements lease.Watcher.
func (s *Store) Watch(ctx context.Context, fn func(lease.Snapshot)) error {
	var last lease.Version
	for first := true; ; {
		s.mu.Lock()
		now, changed := clone(s.snap), s.changed
		s.mu.Unlock()
		if first || now.Version != last {
			first, last = false, now.Version
			fn(now)
			continue // the state may have changed meanwhile
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Snapshot returns the present state.
func (s *Store) Snapshot() lease.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return clone(s.snap)
}

// History returns every record that was ever committed, oldest first. A deletion is a zero Record.
func (s *Store) History() []lease.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := slices.Clone(s.history)
	for i := range h {
		h[i].Verdict = h[i].Verdict.Clone()
	}
	return h
}

// OnCommit calls fn with each record at the moment it is committed, before it can be read. fn must not use
// the store.
func (s *Store) OnCommit(fn func(lease.Record)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onCommit = append(s.onCommit, fn)
}

// Restore puts r in place of the record without any condition, as an operator or a backup would.
func (s *Store) Restore(r lease.Record) lease.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commit(r)
}

// Delete takes the record away.
func (s *Store) Delete() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commit(lease.Record{})
	s.snap = lease.Snapshot{}
}

// Touch changes the version and nothing else, as an edit of foreign fields would.
func (s *Store) Touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.snap.Version != "" {
		s.snap.Version = s.nextVersion()
		s.wake()
	}
}

// commit is called under mu.
func (s *Store) commit(r lease.Record) lease.Snapshot {
	r.Verdict = r.Verdict.Clone()
	s.snap = lease.Snapshot{Record: r, Version: s.nextVersion()}
	s.history = append(s.history, r)
	for _, fn := range s.onCommit {
		fn(r)
	}
	s.wake()
	return clone(s.snap)
}

func (s *Store) nextVersion() lease.Version {
	s.serial++
	return lease.Version(strconv.FormatUint(s.serial, 10))
}

func (s *Store) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func clone(s lease.Snapshot) lease.Snapshot {
	s.Record.Verdict = s.Record.Verdict.Clone()
	return s
}

// Factory returns an implementation for lease.Register. The leases of one factory that have the same system
// and name are one record.
func Factory() lease.Factory {
	var mu sync.Mutex
	stores := map[[2]string]*Store{}
	return func(_ context.Context, spec lease.Spec) (lease.Store, error) {
		mu.Lock()
		defer mu.Unlock()
		id := [2]string{spec.System, spec.Name}
		if stores[id] == nil {
			stores[id] = NewStore()
		}
		return stores[id], nil
	}
}
