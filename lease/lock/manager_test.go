package lock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/lease/lock"
	"github.com/serf-sbr/serf-sbr/lease/memory"
)

func manager(t *testing.T, open lease.Factory, change ...func(*lock.Config)) *lock.Manager {
	t.Helper()
	cfg := lock.ManagerConfig{Open: open, System: "billing"}
	for _, c := range change {
		c(&cfg.Lock)
	}
	m, err := lock.NewManager(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

func opened(t *testing.T, open func(context.Context, string) (*lock.Lock, error), name string) *lock.Lock {
	t.Helper()
	k, err := open(t.Context(), name)
	require.NoError(t, err)
	return k
}

func TestManager_DifferentNamesDoNotBlockEachOther(t *testing.T) {
	m := manager(t, memory.Factory())
	for _, name := range []string{"a", "b"} {
		ok, err := opened(t, m.Lock, name).Acquire(t.Context())
		require.NoError(t, err)
		assert.True(t, ok, name)
		ok, err = opened(t, m.ReentrantLock, name).Acquire(t.Context())
		require.NoError(t, err)
		assert.False(t, ok, "the same name does, whatever the type: %s", name)
		ok, err = opened(t, m.OverridingLock, name).Acquire(t.Context())
		require.NoError(t, err)
		assert.True(t, ok, name)
	}
}

func TestManager_ForceReleaseAllCoversWhatItHasOpened(t *testing.T) {
	factory := memory.Factory()
	m, other := manager(t, factory), manager(t, factory)
	for _, name := range []string{"b", "a", "free", "elsewhere"} {
		from := m
		if name == "elsewhere" {
			from = other
		}
		k := opened(t, from.Lock, name)
		if name != "free" {
			_, err := k.Acquire(t.Context())
			require.NoError(t, err)
		}
		require.NoError(t, k.Close())
	}
	released, err := m.ForceReleaseAll(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b"}, released)
	released, err = m.ForceReleaseAll(t.Context())
	require.NoError(t, err)
	assert.Empty(t, released)
	ok, err := m.ForceRelease(t.Context(), "elsewhere")
	require.NoError(t, err)
	assert.True(t, ok, "by its name")
}

func TestManager_ForceReleaseAllTriesAll(t *testing.T) {
	down := errors.New("down")
	broken := false
	inner := memory.Factory()
	m := manager(t, func(ctx context.Context, spec lease.Spec) (lease.Store, error) {
		if broken && spec.Name == "a" {
			return nil, down
		}
		return inner(ctx, spec)
	})
	for _, name := range []string{"a", "b"} {
		_, err := opened(t, m.Lock, name).Acquire(t.Context())
		require.NoError(t, err)
	}
	broken = true
	released, err := m.ForceReleaseAll(t.Context())
	assert.Equal(t, []string{"b"}, released)
	require.ErrorIs(t, err, down)
	assert.ErrorContains(t, err, `lock "a"`)
}

// closing counts what is open.
type closing struct {
	lease.Store
	open *int
	err  error
}

func (c closing) Close() error { *c.open--; return c.err }

func TestManager_ClosesWhatItHasOpened(t *testing.T) {
	open, inner := 0, memory.Factory()
	var failure error
	m := manager(t, func(ctx context.Context, spec lease.Spec) (lease.Store, error) {
		open++
		s, err := inner(ctx, spec)
		return closing{s, &open, failure}, err
	})
	k := opened(t, m.Lock, "a")
	opened(t, m.Lock, "b")
	require.NoError(t, k.Close())
	require.NoError(t, k.Close(), "a second time")
	assert.Equal(t, 1, open)
	_, err := m.ForceRelease(t.Context(), "a")
	require.NoError(t, err)
	assert.Equal(t, 1, open)
	require.NoError(t, m.Close())
	assert.Zero(t, open)
	_, err = m.Lock(t.Context(), "a")
	require.ErrorIs(t, err, lock.ErrClosed)
	assert.Zero(t, open)
	failure = errors.New("disk full")
	_, err = m.Lock(t.Context(), "a")
	require.ErrorIs(t, err, failure, "told, not swallowed")
}

func TestManager_ErrorsNameTheLock(t *testing.T) {
	_, err := lock.NewManager(lock.ManagerConfig{Lock: lock.Config{Duration: -1}})
	require.ErrorContains(t, err, "ManagerConfig.Open")
	require.ErrorContains(t, err, "duration is -1ns")
	m := manager(t, func(ctx context.Context, spec lease.Spec) (
		lease.Store, error) {
		return lease.Open(ctx, "etcd", spec)
	})
	_, err = m.Lock(t.Context(), "jobs")
	require.ErrorIs(t, err, lease.ErrUnknownImplementation)
	require.ErrorContains(t, err, `lock "jobs"`)
	_, err = m.Lock(t.Context(), "")
	require.ErrorContains(t, err, "a name is required")
	refuses := manager(t, func(context.Context, lease.Spec) (lease.Store, error) {
		return limited{Faulty: leasetest.NewMemory().View("x"), window: 1}, nil
	})
	_, err = refuses.Lock(t.Context(), "jobs")
	require.ErrorContains(t, err, `lock "jobs": lock: other users`)
}

func TestManager_TellsTheFactoryWhatItOpens(t *testing.T) {
	inner := memory.Factory()
	var spec lease.Spec
	m := manager(t, func(ctx context.Context, s lease.Spec) (lease.Store, error) {
		spec = s
		return inner(ctx, s)
	})
	k := opened(t, m.Lock, "jobs")
	assert.Equal(t, lease.Spec{
		System: "billing", Name: "jobs", Owner: k.Owner(),
		Settings: lease.Settings{HeartbeatTimeout: lease.Infinite,
			OperationTimeout: lock.DefaultConfig().OperationTimeout},
	}, spec)
}
