package lock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/lease/lock"
)

var errWork = errors.New("the work failed")

func TestDo_RunsUnderTheLockAndReleases(t *testing.T) {
	each(t, kinds, func(t *testing.T, w *world, kind lock.Type) {
		k := w.lock("a", kind)
		require.ErrorIs(t, k.Do(t.Context(), func(ctx context.Context) error {
			assert.NoError(t, ctx.Err())
			assert.True(t, k.Held())
			return errWork
		}), errWork)
		assert.False(t, k.Held())
		assert.Empty(t, w.record().Holder)
		assert.False(t, w.release(k))
		assert.NoError(t, k.DoWait(t.Context(), func(context.Context) error { return nil }))
		assert.Panics(t, func() { _ = k.Do(t.Context(), func(context.Context) error { panic("oh") }) })
		assert.Empty(t, w.record().Holder)
	})
}

func TestDo_RunsNothingWithoutTheLock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		require.True(t, w.acquire(w.lock("a", lock.SingleEntrant)))
		for _, kind := range []lock.Type{lock.SingleEntrant, lock.Reentrant} {
			b := w.lock("b", kind)
			require.ErrorIs(t, b.Do(t.Context(), never(t)), lock.ErrHeld)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			err := b.DoWait(ctx, never(t))
			cancel()
			require.ErrorIs(t, err, lock.ErrHeld)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			w.store.View("b").SetUnavailable(true)
			err = b.Do(t.Context(), never(t))
			require.ErrorContains(t, err, "could not acquire lock")
			require.NotErrorIs(t, err, lock.ErrHeld)
			w.store.View("b").Heal()
		}
		assert.Equal(t, "a", w.record().Holder)
	})
}

func TestDo_ContextEndsWhenTheLockIsGone(t *testing.T) {
	type how struct {
		change func(*lock.Config)
		take   func(w *world, k *lock.Lock)
		within time.Duration
	}
	for name, c := range map[string]how{
		"its time is over": {func(*lock.Config) {}, func(*world, *lock.Lock) {}, usable},
		"taken by an administrator": {keepAlive, func(w *world, _ *lock.Lock) {
			w.acquire(w.lock("admin", lock.Overriding))
		}, d / 10},
		"no renewal gets through": {keepAlive, func(w *world, _ *lock.Lock) { w.store.View("a").SetUnavailable(true) }, usable},
		"released meanwhile":      {keepAlive, func(w *world, k *lock.Lock) { w.release(k) }, 0},
		"forced meanwhile":        {keepAlive, func(w *world, k *lock.Lock) { w.sure(k.ForceRelease(w.t.Context())) }, 0},
		"closed meanwhile":        {keepAlive, func(w *world, k *lock.Lock) { assert.NoError(w.t, k.Close()) }, 0},
	} {
		for _, kind := range []lock.Type{lock.SingleEntrant, lock.Reentrant, lock.Overriding} {
			t.Run(name+", "+kind.String(), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					k := w.lock("a", kind, c.change)
					err := k.Do(t.Context(), func(ctx context.Context) error {
						start := time.Now()
						c.take(w, k)
						<-ctx.Done()
						assert.ErrorIs(t, context.Cause(ctx), lock.ErrLost)
						assert.False(t, k.Held())
						assert.LessOrEqual(t, time.Since(start), c.within)
						return errWork
					})
					assert.ErrorIs(t, err, errWork)
					assert.ErrorIs(t, err, lock.ErrLost)
				})
			})
		}
	}
}

func TestDo_TellsOfALossThatTheWorkIgnored(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		err := w.lock("a", lock.SingleEntrant).Do(t.Context(),
			func(context.Context) error { time.Sleep(usable); return nil })
		assert.ErrorIs(t, err, lock.ErrLost)
	})
}

// The work was too slow, and the lock has gone to another call on the same object. The first one must leave
// that alone.
func TestDo_ReleasesOnlyItsOwnGrant(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		k := w.lock("a", lock.SingleEntrant)
		first := make(chan error, 1)
		go func() {
			first <- k.Do(t.Context(), func(context.Context) error { time.Sleep(d + time.Minute); return nil })
		}()
		time.Sleep(d)
		require.NoError(t, k.Do(t.Context(), func(ctx context.Context) error {
			assert.ErrorIs(t, <-first, lock.ErrLost)
			assert.NoError(t, ctx.Err())
			assert.True(t, k.Held())
			return nil
		}))
	})
}

// An administrator's work ends. What another administrator has taken meanwhile is not freed by that.
func TestDo_OfAnAdministratorReleasesOnlyItsOwnGrant(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.lock("a", lock.Overriding), w.lock("b", lock.Overriding)
		require.NoError(t, a.Do(t.Context(), func(context.Context) error { w.acquire(b); return nil }))
		assert.Equal(t, "b", w.record().Holder)
	})
}

func TestDo_SingleEntrantRefusesItself(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		k := w.lock("a", lock.SingleEntrant)
		require.NoError(t, k.Do(t.Context(), func(ctx context.Context) error {
			assert.ErrorIs(t, k.Do(ctx, never(t)), lock.ErrHeld)
			assert.True(t, k.Held())
			return ctx.Err()
		}))
	})
}

// The point of a re-entrant lock: what needs it may call what needs it. The last to end releases.
func TestDo_ReentrantInsideItself(t *testing.T) {
	each(t, kinds[1:], func(t *testing.T, w *world, kind lock.Type) {
		k := w.lock("a", kind)
		require.NoError(t, k.Do(t.Context(), func(outer context.Context) error {
			assert.NoError(t, k.Do(outer, func(inner context.Context) error { return inner.Err() }))
			assert.True(t, k.Held())
			return outer.Err()
		}))
		assert.Empty(t, w.record().Holder)
	})
}

// A Do that gets no answer has acquired nothing. What its caller has acquired stays.
func TestDo_ThatAcquiresNothingReleasesNothing(t *testing.T) {
	each(t, kinds, func(t *testing.T, w *world, kind lock.Type) {
		k, v := w.lock("a", kind), w.store.View("a")
		require.True(t, w.acquire(k))
		v.SetUnavailable(true)
		require.Error(t, k.Do(t.Context(), never(t)))
		v.Heal()
		require.True(t, k.Held())
		require.Equal(t, "a", w.record().Holder)
		require.True(t, w.release(k))
	})
}

// The work of one Do ends while another one waits for its answer, which does not come: nobody else is there to
// release what the first one has acquired.
func TestDo_TheLastOneReleasesAlthoughItAcquiresNothing(t *testing.T) {
	each(t, kinds[1:], func(t *testing.T, w *world, kind lock.Type) {
		k, v := w.lock("a", kind), w.store.View("a")
		second := make(chan error, 1)
		require.NoError(t, k.Do(t.Context(), func(context.Context) error {
			v.Inject(leasetest.All, leasetest.LoseRequest, leasetest.Always)
			go func() { second <- k.Do(t.Context(), never(t)) }()
			time.Sleep(time.Second)
			return nil
		}))
		require.True(t, k.Held())
		require.Error(t, <-second)
		require.False(t, k.Held())
		v.Heal()
		require.NoError(t, k.Do(t.Context(), func(context.Context) error { return nil }))
		require.Empty(t, w.record().Holder)
	})
}

func TestDo_ALossReachesEveryEntry(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		k := w.lock("a", lock.Reentrant, keepAlive)
		err := k.Do(t.Context(), func(outer context.Context) error {
			return k.Do(outer, func(inner context.Context) error {
				w.store.Delete()
				<-inner.Done()
				<-outer.Done()
				return context.Cause(outer)
			})
		})
		assert.ErrorIs(t, err, lock.ErrLost)
	})
}

// Work must not run while the record is being freed: it is told before.
func TestDo_IsToldBeforeTheReleaseIsSent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		k := w.lock("a", lock.SingleEntrant)
		freed := 0
		err := k.Do(t.Context(), func(ctx context.Context) error {
			w.store.OnCommit(func(lease.Record) {
				freed++
				assert.ErrorIs(t, context.Cause(ctx), lock.ErrLost)
				assert.False(t, k.Held())
			})
			assert.True(t, w.release(k))
			return nil
		})
		assert.ErrorIs(t, err, lock.ErrLost)
		assert.Equal(t, 1, freed)
	})
}

// A release may come at any moment of a beginning Do. Whenever it does, no work goes on under a lock that is
// not held.
func TestDo_AgainstConcurrentReleases(t *testing.T) {
	each(t, kinds, func(t *testing.T, w *world, kind lock.Type) {
		k := w.lock("a", kind)
		for range 2000 {
			var all sync.WaitGroup
			for range 2 {
				all.Go(func() {
					_ = k.Do(t.Context(), func(ctx context.Context) error {
						time.Sleep(time.Millisecond) // until the release is over
						assert.True(t, k.Held() || ctx.Err() != nil)
						return nil
					})
				})
			}
			all.Go(func() { _, _ = k.Release(t.Context()) })
			all.Wait()
			assert.False(t, k.Held())
		}
	})
}

// Many goroutines go in and out of one re-entrant lock, at any moment: the end of one never spoils the
// beginning of another.
func TestDo_InAndOutAtTheSameMoment(t *testing.T) {
	each(t, kinds[1:], func(t *testing.T, w *world, kind lock.Type) {
		k := w.lock("a", kind)
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for n := range 500 {
					assert.NoError(t, k.Do(t.Context(), func(ctx context.Context) error {
						time.Sleep(time.Duration((n+i)%2) * time.Millisecond)
						assert.True(t, k.Held())
						return ctx.Err()
					}))
					time.Sleep(time.Duration(n%3) * time.Millisecond)
				}
			})
		}
		all.Wait()
		assert.Empty(t, w.record().Holder)
	})
}

func TestDo_GivesUpWaitingForTheLastOneToLeave(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		k := w.lock("a", lock.Reentrant)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		second := make(chan error, 1)
		require.NoError(t, k.Do(t.Context(), func(context.Context) error {
			// the release takes its time
			w.store.View("a").Inject(leasetest.All, leasetest.LoseRequest, leasetest.Always)
			time.AfterFunc(time.Second, func() { second <- k.Do(ctx, never(t)) })
			return nil
		}))
		require.ErrorIs(t, <-second, context.DeadlineExceeded)
		w.store.View("a").Heal()
		assert.NoError(t, k.Do(t.Context(), func(context.Context) error { return nil }))
	})
}

// A store that panics in the release ends that Do, and not the ones that come after it.
func TestDo_AfterAReleaseThatPanicked(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		k := w.lock("a", lock.Reentrant)
		assert.Panics(t, func() {
			_ = k.Do(t.Context(), func(context.Context) error {
				var first sync.Once // what is sent after it, nobody waits for
				w.store.View("a").OnRequest(func(bool) { first.Do(func() { panic("oh") }) })
				return nil
			})
		})
		w.store.View("a").OnRequest(nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		assert.NoError(t, k.DoWait(ctx, func(context.Context) error { return nil }))
	})
}
