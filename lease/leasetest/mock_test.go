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
	"github.com/serf-sbr/serf-sbr/sbr"
)

// A mock that lacks a method cannot stand in for the real thing.
func TestMock_HasTheMethodsOfTheRealOne(t *testing.T) {
	for name, c := range map[string]struct {
		real, mock reflect.Type
		but        []string
	}{
		"lease": {reflect.TypeFor[*lease.Lease](), reflect.TypeFor[*leasetest.Mock](), []string{"Read", "Watch", "Settings", "ValidUntil", "Restore", "Amend"}},
		"lock":  {reflect.TypeFor[*lock.Lock](), reflect.TypeFor[*leasetest.LockMock](), nil},
	} {
		t.Run(name, func(t *testing.T) {
			require.NotZero(t, c.real.NumMethod())
			for real := range c.real.Methods() {
				mocked, ok := c.mock.MethodByName(real.Name)
				if !ok {
					assert.Contains(t, c.but, real.Name, "the mock lacks it")
					continue
				}
				assert.Equal(t, signature(real.Type), signature(mocked.Type), real.Name)
			}
		})
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

func kind(t *testing.T, m *leasetest.Mock) lease.Kind {
	return m.Acquire(t.Context(), lease.Proposal{}, nil).Kind
}

func TestMock_Open(t *testing.T) {
	m := leasetest.Open()
	assert.False(t, m.Check())
	assert.Equal(t, lease.NotReleased, m.Release(t.Context()).Kind)
	assert.False(t, m.WasReleased())
	p := lease.Proposal{Verdict: &sbr.Verdict{Survivors: []sbr.ID{"a"}}}
	out := m.Acquire(t.Context(), p, nil)
	require.Equal(t, lease.Granted, out.Kind)
	assert.Equal(t, m.Owner(), out.Record.Holder)
	assert.EqualValues(t, 1, out.Record.Verdict.Token)
	assert.Zero(t, p.Verdict.Token, "the caller's is left alone")
	assert.True(t, m.Check())
	assert.EqualValues(t, 1, m.Token())
	assert.True(t, m.TryAcquire(t.Context()))
	assert.EqualValues(t, 2, m.Token())
	assert.Equal(t, lease.Released, m.Release(t.Context()).Kind)
	assert.True(t, m.WasReleased())
	assert.False(t, m.Check())
	assert.Zero(t, m.Token())
	assert.Equal(t, []int{2, 2, 1}, []int{m.Attempts(), m.Acquired(), m.Released()})
	assert.Equal(t, lease.Granted, kind(t, m))
	assert.False(t, m.WasReleased(), "it is held again")
	assert.Equal(t, lease.Released, m.ForceRelease(t.Context(), "whoever").Kind)
}

func TestMock_Closed(t *testing.T) {
	m := leasetest.Closed()
	out := m.Acquire(t.Context(), lease.Proposal{}, nil)
	assert.Equal(t, lease.Held, out.Kind)
	assert.Equal(t, "somebody else", out.Record.Holder)
	assert.NoError(t, out.Err)
	assert.False(t, m.TryAcquire(t.Context()))
	assert.ErrorIs(t, m.Do(t.Context(), nil), lease.ErrHeld)
	assert.False(t, m.Check())
	assert.Equal(t, []int{3, 0, 0}, []int{m.Attempts(), m.Acquired(), m.Released()})
}

func TestMock_Broken(t *testing.T) {
	down := errors.New("down")
	m := leasetest.Broken(down)
	out := m.Acquire(t.Context(), lease.Proposal{}, nil)
	assert.Equal(t, lease.Unknown, out.Kind)
	assert.ErrorIs(t, out.Err, down)
	assert.ErrorIs(t, m.Do(t.Context(), nil), down)
	assert.ErrorIs(t, leasetest.Broken(nil).Do(t.Context(), nil), leasetest.ErrInjected)
	zero := leasetest.Scripted(lease.Outcome{})
	assert.ErrorIs(t, zero.Do(t.Context(), nil), leasetest.ErrInjected, "what nobody filled in is no grant")
}

func TestMock_ScriptedOneAfterAnotherAndTheLastRepeats(t *testing.T) {
	m := leasetest.Scripted(leasetest.Held("b"), leasetest.Unknown(nil), leasetest.Granted(), leasetest.Held("c"))
	for _, want := range []lease.Kind{lease.Held, lease.Unknown, lease.Granted, lease.Held, lease.Held} {
		assert.Equal(t, want, kind(t, m))
	}
	m.Script(leasetest.Granted())
	assert.Equal(t, lease.Granted, kind(t, m))
	assert.Panics(t, func() { leasetest.Scripted() })
}

func TestMock_LoseTellsTheHolderOnce(t *testing.T) {
	m := leasetest.Open()
	var told []error
	lost := func(reason error) {
		assert.False(t, m.Check(), "the flag is cleared first")
		told = append(told, reason)
	}
	m.Lose(nil)
	assert.Empty(t, told, "nothing is held")
	m.Acquire(t.Context(), lease.Proposal{}, lost)
	cause := errors.New("cut off")
	m.Lose(cause)
	m.Lose(cause)
	require.Len(t, told, 1)
	assert.ErrorIs(t, told[0], lease.ErrLost)
	assert.ErrorIs(t, told[0], cause)
	assert.Equal(t, lease.NotReleased, m.Release(t.Context()).Kind)
	m.Acquire(t.Context(), lease.Proposal{}, lost)
	m.Release(t.Context())
	m.Lose(nil)
	m.Acquire(t.Context(), lease.Proposal{}, lost)
	m.Close()
	m.Lose(nil)
	assert.Len(t, told, 1, "after a release and a close there is nothing to lose")
}

func TestMock_DoEndsWhenItIsLost(t *testing.T) {
	work := errors.New("the work failed")
	m := leasetest.Open()
	err := m.Do(t.Context(), func(ctx context.Context) error {
		m.Lose(errors.New("cut off"))
		<-ctx.Done()
		assert.ErrorIs(t, context.Cause(ctx), lease.ErrLost)
		return work
	})
	assert.ErrorIs(t, err, work)
	assert.ErrorIs(t, err, lease.ErrLost)
	assert.False(t, m.WasReleased(), "it was lost, not released")
	assert.ErrorIs(t, m.Do(t.Context(), func(context.Context) error { m.Lose(nil); return nil }), lease.ErrLost)
	assert.ErrorIs(t, m.Do(t.Context(), func(context.Context) error { m.Release(t.Context()); return nil }), lease.ErrLost)
}

func TestMock_DoReleases(t *testing.T) {
	m := leasetest.Open()
	assert.NoError(t, m.Do(t.Context(), func(outer context.Context) error {
		assert.True(t, m.Check())
		assert.NoError(t, m.DoWait(outer, func(ctx context.Context) error { return ctx.Err() }))
		assert.True(t, m.Check(), "the last one releases")
		return outer.Err()
	}))
	assert.True(t, m.WasReleased())
	assert.Equal(t, 1, m.Released())
	assert.Panics(t, func() { _ = m.Do(t.Context(), func(context.Context) error { panic("oh") }) })
	assert.Equal(t, 2, m.Released())
}

func TestMock_BreakRelease(t *testing.T) {
	m, down := leasetest.Open(), errors.New("down")
	kind(t, m)
	m.BreakRelease(down)
	out := m.Release(t.Context())
	assert.Equal(t, lease.ReleaseUnknown, out.Kind)
	assert.ErrorIs(t, out.Err, down)
	assert.False(t, m.Check())
	assert.False(t, m.WasReleased())
	_, err := m.Lock().Release(t.Context())
	assert.ErrorIs(t, err, down)
	m.BreakRelease(nil)
	kind(t, m)
	assert.Equal(t, lease.Released, m.Release(t.Context()).Kind)
}

func TestMock_WaitsForAnotherScript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := leasetest.Scripted(leasetest.Unknown(nil), leasetest.Held("b"))
		done := make(chan lease.Outcome, 1)
		go func() { done <- m.AcquireWait(t.Context(), lease.Proposal{}, nil) }()
		synctest.Wait()
		require.Empty(t, done)
		m.Script(leasetest.Granted())
		assert.Equal(t, lease.Granted, (<-done).Kind)

		closed := leasetest.Closed()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := closed.Lock().AcquireWait(ctx)
		assert.ErrorIs(t, err, lock.ErrHeld)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorIs(t, closed.DoWait(ctx, nil), context.DeadlineExceeded)
		out := leasetest.Scripted(leasetest.Unknown(lease.ErrClosed)).AcquireWait(t.Context(), lease.Proposal{}, nil)
		assert.ErrorIs(t, out.Err, lease.ErrClosed, "futile")
	})
}

func TestLockMock_AnswersAsALockDoes(t *testing.T) {
	ctx, down := t.Context(), errors.New("down")
	m := leasetest.Scripted(leasetest.Granted(), leasetest.Held("b"), leasetest.Unknown(down)).Lock()
	ok, err := m.Acquire(ctx)
	require.NoError(t, err)
	assert.True(t, ok)
	assert.True(t, m.Held())
	ok, err = m.AcquireFor(ctx, time.Hour)
	require.NoError(t, err)
	assert.False(t, ok)
	ok, err = m.AcquireForever(ctx)
	require.ErrorIs(t, err, down)
	assert.ErrorContains(t, err, "could not acquire lock: ")
	assert.False(t, ok)
	ok, err = m.Release(ctx)
	require.NoError(t, err)
	assert.True(t, ok)
	ok, err = m.ForceRelease(ctx)
	require.NoError(t, err)
	assert.False(t, ok)
	assert.True(t, m.WasReleased())
	open := leasetest.Open().Lock()
	require.NoError(t, open.AcquireWaitFor(ctx, time.Hour))
	require.NoError(t, open.Close())
	assert.False(t, open.Held())
	assert.ErrorIs(t, open.Do(ctx, func(context.Context) error { return open.Close() }), lock.ErrLost)
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
				m.Release(t.Context())
			case 2:
				m.Script(leasetest.Granted())
			default:
				_ = m.Do(t.Context(), func(context.Context) error { m.Check(); return nil })
			}
		})
	}
	all.Wait()
	assert.Equal(t, 20, m.Acquired())
	m.Release(t.Context())
	assert.False(t, m.Check())
}
