package leasetest_test

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/lease/lock"
)

// A mock that lacks a method cannot stand in for the real thing.
func TestMock_HasTheMethodsOfTheRealOne(t *testing.T) {
	real, mock := reflect.TypeFor[*lock.Lock](), reflect.TypeFor[*leasetest.Mock]()
	require.NotZero(t, real.NumMethod())
	for method := range real.Methods() {
		mocked, ok := mock.MethodByName(method.Name)
		if assert.True(t, ok, "the mock lacks %s", method.Name) {
			assert.Equal(t, signature(method.Type), signature(mocked.Type), method.Name)
		}
	}
}

// signature is that of a method without its receiver.
func signature(f reflect.Type) (out []string) {
	for i := 1; i < f.NumIn(); i++ {
		out = append(out, f.In(i).String())
	}
	for result := range f.Outs() {
		out = append(out, "-> "+result.String())
	}
	return out
}

func counts(m *leasetest.Mock) []int { return []int{m.Attempts(), m.Acquired(), m.Released()} }

func TestMock_Open(t *testing.T) {
	m := leasetest.Open()
	assert.False(t, m.Held())
	released, err := m.Release(t.Context())
	require.NoError(t, err)
	assert.False(t, released)
	assert.False(t, m.WasReleased())
	assert.True(t, m.TryAcquire(t.Context()))
	assert.True(t, m.Held())
	assert.EqualValues(t, 1, m.Token())
	require.NoError(t, m.AcquireWaitFor(t.Context(), time.Hour))
	assert.EqualValues(t, 2, m.Token())
	released, err = m.Release(t.Context())
	require.NoError(t, err)
	assert.True(t, released)
	assert.True(t, m.WasReleased())
	assert.False(t, m.Held())
	assert.Zero(t, m.Token())
	assert.Equal(t, []int{2, 2, 1}, counts(m))
	assert.True(t, m.TryAcquire(t.Context()))
	assert.False(t, m.WasReleased(), "it is held again")
	require.NoError(t, m.Close())
	assert.False(t, m.Held())
	assert.ErrorIs(t, m.Do(t.Context(), func(context.Context) error { return m.Close() }), lock.ErrLost)
	assert.ErrorIs(t, leasetest.Broken(nil).Do(t.Context(), nil), leasetest.ErrInjected)
	assert.Panics(t, func() { leasetest.Scripted() })
}

func TestMock_DoEndsWhenItIsLost(t *testing.T) {
	work, cause := errors.New("the work failed"), errors.New("cut off")
	m := leasetest.Open()
	err := m.Do(t.Context(), func(ctx context.Context) error {
		m.Lose(cause)
		<-ctx.Done()
		assert.False(t, m.Held(), "before")
		assert.ErrorIs(t, context.Cause(ctx), lease.ErrLost)
		assert.ErrorIs(t, context.Cause(ctx), cause)
		return work
	})
	assert.ErrorIs(t, err, work)
	assert.ErrorIs(t, err, lease.ErrLost)
	assert.False(t, m.WasReleased(), "it was lost, not released")
	assert.ErrorIs(t, m.Do(t.Context(), func(context.Context) error { m.Lose(nil); return nil }), lease.ErrLost)
	release := func(ctx context.Context) error { _, err := m.Release(ctx); return err }
	assert.ErrorIs(t, m.Do(t.Context(), release), lease.ErrLost)
}

func TestMock_DoReleases(t *testing.T) {
	m := leasetest.Open()
	assert.NoError(t, m.Do(t.Context(), func(outer context.Context) error {
		assert.True(t, m.Held())
		assert.NoError(t, m.DoWait(outer, func(ctx context.Context) error { return ctx.Err() }))
		assert.True(t, m.Held(), "the last one releases")
		return outer.Err()
	}))
	assert.True(t, m.WasReleased())
	assert.Equal(t, 1, m.Released())
	assert.Panics(t, func() { _ = m.Do(t.Context(), func(context.Context) error { panic("oh") }) })
	assert.Equal(t, 2, m.Released())
}

func TestMock_WaitsForAnotherScript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := leasetest.Scripted(leasetest.ErrInjected, leasetest.Held("b"))
		done := make(chan error, 1)
		go func() { done <- m.AcquireWait(t.Context()) }()
		synctest.Wait()
		require.Empty(t, done)
		m.Script(nil)
		assert.NoError(t, <-done)

		closed := leasetest.Closed()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := closed.AcquireWait(ctx)
		assert.ErrorIs(t, err, lock.ErrHeld)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorIs(t, closed.DoWait(ctx, nil), context.DeadlineExceeded)
		assert.ErrorIs(t, leasetest.Scripted(lease.ErrClosed).AcquireWait(t.Context()), lease.ErrClosed, "futile")
	})
}

func TestMock_IsSafeForConcurrentUse(t *testing.T) {
	m := leasetest.Open()
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			switch i % 5 {
			case 0:
				m.Lose(nil)
			case 1:
				_, _ = m.Release(t.Context())
			case 2:
				m.Script(nil)
			default:
				_ = m.Do(t.Context(), func(context.Context) error { m.Held(); return nil })
			}
		})
	}
	all.Wait()
	assert.Equal(t, 20, m.Acquired())
	m.Lose(nil)
	assert.False(t, m.Held())
}
