package lease_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
)

var errWork = errors.New("the work failed")

func TestDo_RunsUnderTheLeaseAndReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		require.ErrorIs(t, a.Do(t.Context(), func(context.Context) error {
			assert.True(t, a.Check())
			assert.Equal(t, "a", w.record().Holder)
			return errWork
		}), errWork)
		assert.False(t, a.Check())
		assert.Empty(t, w.record().Holder)
	})
}

func TestDo_RunsNothingWithoutTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := w.lease("b")
		never := func(context.Context) error { t.Error("it ran"); return nil }
		w.granted(w.lease("a"))
		err := b.Do(t.Context(), never)
		require.ErrorIs(t, err, lease.ErrHeld)
		assert.EqualError(t, err, `lease: held by "a" (token 1)`)
		w.view("b").SetUnavailable(true)
		err = b.Do(t.Context(), never)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.NotErrorIs(t, err, lease.ErrHeld)
	})
}

func TestDo_ContextEndsWhenTheLeaseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		time.AfterFunc(time.Minute, w.store.Delete)
		start := time.Now()
		err := a.Do(t.Context(), func(ctx context.Context) error {
			<-ctx.Done()
			assert.False(t, a.Check())
			assert.ErrorIs(t, context.Cause(ctx), lease.ErrLost)
			return errWork
		})
		assert.ErrorIs(t, err, errWork)
		assert.ErrorIs(t, err, lease.ErrLost)
		assert.LessOrEqual(t, time.Since(start), time.Minute+interval)
	})
}

// The work did not look at its context. Whoever called must learn that its end was not protected.
func TestDo_TellsOfALossThatTheWorkIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		w.view("a").SetUnavailable(false)
		err := a.Do(t.Context(), func(context.Context) error {
			w.view("a").SetUnavailable(true)
			time.Sleep(window)
			return nil
		})
		assert.ErrorIs(t, err, lease.ErrLost)
	})
}

func TestDo_ReleasesAfterAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		assert.PanicsWithValue(t, "oh", func() {
			_ = a.Do(t.Context(), func(context.Context) error { panic("oh") })
		})
		assert.Empty(t, w.record().Holder)
	})
}

func TestDo_ReleasesAlthoughTheCallerIsInAHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		err := w.lease("a").Do(ctx, func(ctx context.Context) error { cancel(); return ctx.Err() })
		assert.ErrorIs(t, err, context.Canceled)
		assert.NotErrorIs(t, err, lease.ErrLost)
		assert.Empty(t, w.record().Holder)
	})
}

// Two goroutines of one process have one owner between them; the work must not run twice all the same.
func TestDo_IsSingleEntrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		require.NoError(t, a.Do(t.Context(), func(ctx context.Context) error {
			assert.ErrorIs(t, a.Do(ctx, func(context.Context) error { t.Error("it ran"); return nil }), lease.ErrHeld)
			return nil
		}))
	})
}

func TestDoWait_OneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		leases := []*lease.Lease{w.lease("a"), w.lease("b"), w.lease("c")}
		var running, ran atomic.Int32
		var all sync.WaitGroup
		for i := range 12 {
			all.Go(func() {
				assert.NoError(t, leases[i%3].DoWait(t.Context(), func(context.Context) error {
					assert.EqualValues(t, 1, running.Add(1))
					time.Sleep(time.Second)
					running.Add(-1)
					ran.Add(1)
					return nil
				}))
			})
		}
		all.Wait()
		assert.EqualValues(t, 12, ran.Load())
	})
}

func TestDoWait_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.granted(w.lease("a"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := w.lease("b").DoWait(ctx, func(context.Context) error { t.Error("it ran"); return nil })
		assert.ErrorIs(t, err, lease.ErrHeld)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// Work that outlives its grant ends while the next one runs: that one's grant is not its own to release.
func TestDo_ReleasesOnlyItsOwnGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		first := make(chan error, 1)
		go func() {
			first <- a.Do(t.Context(), func(context.Context) error { time.Sleep(10 * time.Minute); return nil })
		}()
		synctest.Wait()
		w.view("a").SetUnavailable(true)
		time.Sleep(5 * time.Minute) // lost; the work does not look
		w.view("a").Heal()
		require.NoError(t, a.DoWait(t.Context(), func(ctx context.Context) error {
			require.ErrorIs(t, <-first, lease.ErrLost)
			require.True(t, a.Check())
			return ctx.Err()
		}))
	})
}
