package lock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/serf-sbr/serf-sbr/lease"
)

// ManagerConfig says where a Manager finds locks, and what they are like.
type ManagerConfig struct {
	// Open opens the store of one lock; its lease.Spec is filled in. Required.
	// The factory of a backend fits, and lease.Open with the key filled in.
	Open lease.Factory
	// System is the first part of each lock's identity: the cluster or application that they belong to.
	System string
	// Decode fills the backend's own configuration. Nil: it uses its defaults.
	Decode func(into any) error
	// Lock is the Config of each lock; its Name and Type are filled in.
	Lock Config
}

// Manager opens locks by name. Locks of different names have nothing to do with each other; each call returns
// another Lock, which contends with those of the same name. It is safe for concurrent use.
type Manager struct {
	cfg ManagerConfig

	mu     sync.Mutex
	closed bool
	locks  map[*Lock]struct{}
	names  map[string]struct{}
}

// NewManager returns a manager without locks. It calls nothing.
func NewManager(cfg ManagerConfig) (*Manager, error) {
	var errs []error
	if cfg.Open == nil {
		errs = append(errs, errors.New("lock: a factory of stores is required: ManagerConfig.Open"))
	}
	if err := cfg.Lock.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("lock: %w", err))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Manager{cfg: cfg, locks: map[*Lock]struct{}{}, names: map[string]struct{}{}}, nil
}

// Lock opens the single-entrant lock called name. The error is the factory's, or wraps ErrClosed.
func (m *Manager) Lock(ctx context.Context, name string) (*Lock, error) {
	return m.open(ctx, name, SingleEntrant)
}

// ReentrantLock opens the lock called name as a re-entrant one.
func (m *Manager) ReentrantLock(ctx context.Context, name string) (*Lock, error) {
	return m.open(ctx, name, Reentrant)
}

// OverridingLock opens the lock called name for an administrator.
func (m *Manager) OverridingLock(ctx context.Context, name string) (*Lock, error) {
	return m.open(ctx, name, Overriding)
}

func (m *Manager) open(ctx context.Context, name string, t Type) (*Lock, error) {
	if name == "" {
		return nil, errors.New("lock: a name is required")
	}
	cfg := m.cfg.Lock
	cfg.Name, cfg.Type = name, t
	full := cfg.filled()
	cfg.Owner = full.Owner // the same that the store is told
	store, err := m.cfg.Open(ctx, lease.Spec{
		System: m.cfg.System, Name: name, Owner: cfg.Owner, Settings: full.settings(), Logger: cfg.Logger,
		Decode: m.cfg.Decode,
	})
	if err != nil {
		return nil, fmt.Errorf("lock %q: %w", name, err)
	}
	k, err := open(store, cfg, "the lock "+name)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %q: %w", name, err), closeStore(store))
	}
	k.onClose = sync.OnceValue(func() error {
		m.mu.Lock()
		delete(m.locks, k)
		m.mu.Unlock()
		return closeStore(store)
	})
	m.mu.Lock()
	closed := m.closed
	if !closed {
		m.locks[k], m.names[name] = struct{}{}, struct{}{}
	}
	m.mu.Unlock()
	if closed {
		return nil, errors.Join(fmt.Errorf("lock %q: the manager: %w", name, ErrClosed), k.Close())
	}
	return k, nil
}

func closeStore(s lease.Store) error {
	if c, ok := s.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// ForceRelease frees the lock called name, of any owner, as Lock.ForceRelease does.
func (m *Manager) ForceRelease(ctx context.Context, name string) (bool, error) {
	k, err := m.OverridingLock(ctx, name)
	if err != nil {
		return false, err
	}
	ok, err := k.ForceRelease(ctx)
	return ok, errors.Join(err, k.Close())
}

// ForceReleaseAll does so for each lock that this Manager was ever asked for, and returns the names of those
// that were held, sorted. It covers no other lock: a store cannot be asked for its names. All are tried; the
// error joins those of all that failed.
func (m *Manager) ForceReleaseAll(ctx context.Context) (released []string, err error) {
	m.mu.Lock()
	names := slices.Sorted(maps.Keys(m.names))
	m.mu.Unlock()
	var errs []error
	for _, name := range names {
		ok, err := m.ForceRelease(ctx, name)
		if ok {
			released = append(released, name)
		}
		errs = append(errs, err)
	}
	return released, errors.Join(errs...)
}

// Close closes all locks that are still open, and what was opened for them. It releases nothing.
func (m *Manager) Close() error {
	m.mu.Lock()
	m.closed = true
	locks := slices.Collect(maps.Keys(m.locks))
	m.mu.Unlock()
	var errs []error
	for _, k := range locks {
		errs = append(errs, k.Close())
	}
	return errors.Join(errs...)
}
