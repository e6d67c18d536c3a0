package memory_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/memory"
)

var held = lease.Record{Holder: "a", Token: 1}

// within runs f with a context that ends after d and returns how long f took.
func within(t *testing.T, d time.Duration, f func(context.Context)) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	start := time.Now()
	f(ctx)
	return time.Since(start)
}

func TestView_OneNameIsOneConnection(t *testing.T) {
	s := memory.NewStore()
	assert.Same(t, s.View("a"), s.View("a"))
	assert.NotSame(t, s.View("a"), s.View("b"))
}

func TestView_Unavailable(t *testing.T) {
	s := memory.NewStore()
	a, b := s.View("a"), s.View("b")
	a.SetUnavailable(true)
	_, err := a.Read(t.Context())
	require.ErrorIs(t, err, memory.ErrUnavailable)
	_, err = a.Write(t.Context(), held, "")
	require.ErrorIs(t, err, memory.ErrUnavailable)
	require.NotErrorIs(t, err, lease.ErrConflict)
	_, err = b.Write(t.Context(), held, "")
	require.NoError(t, err, "others are not hit")
	a.SetUnavailable(false)
	got, err := a.Read(t.Context())
	require.NoError(t, err)
	assert.Equal(t, held, got.Record)
	assert.Equal(t, memory.Counters{Reads: 2, Writes: 1}, a.Counters())
}

func TestView_LostRequestsAreNotCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.NewStore()
		a := s.View("a")
		a.LoseRequests(1)
		took := within(t, time.Second, func(ctx context.Context) {
			_, err := a.Write(ctx, held, "")
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		})
		assert.Equal(t, time.Second, took, "it waits as for a dead connection")
		assert.Zero(t, s.Snapshot())
		_, err := a.Write(t.Context(), held, "")
		assert.NoError(t, err, "only one was lost")
	})
}

func TestView_LostResponsesAreCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.NewStore()
		a := s.View("a")
		a.LoseResponses(memory.Always)
		for range 3 {
			took := within(t, time.Second, func(ctx context.Context) {
				_, err := a.Write(ctx, held, s.Snapshot().Version)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			})
			assert.Equal(t, time.Second, took)
		}
		assert.Len(t, s.History(), 3)
	})
}

func TestView_LateCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.NewStore()
		a := s.View("a")
		a.CommitLate(1, 3*time.Second)
		within(t, time.Second, func(ctx context.Context) {
			_, err := a.Write(ctx, held, "")
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		})
		assert.Zero(t, s.Snapshot(), "a re-read that shows the old state proves nothing")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.Equal(t, held, s.Snapshot().Record)

		a.CommitLate(1, 3*time.Second)
		before := s.Snapshot()
		within(t, time.Second, func(ctx context.Context) { _, _ = a.Write(ctx, lease.Record{Token: 2}, before.Version) })
		_, err := s.View("b").Write(t.Context(), lease.Record{Token: 7}, before.Version)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.EqualValues(t, 7, s.Snapshot().Record.Token, "its condition holds no more")
	})
}

func TestView_Delay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.NewStore()
		a := s.View("a")
		a.SetDelay(2 * time.Second)
		committed := time.Duration(0)
		start := time.Now()
		s.OnCommit(func(lease.Record) { committed = time.Since(start) })
		took := within(t, time.Minute, func(ctx context.Context) {
			_, err := a.Write(ctx, held, "")
			assert.NoError(t, err)
		})
		assert.Equal(t, 2*time.Second, took)
		assert.Equal(t, time.Second, committed)
		took = within(t, 1500*time.Millisecond, func(ctx context.Context) {
			_, err := a.Write(ctx, lease.Record{Token: 2}, s.Snapshot().Version)
			assert.Error(t, err)
		})
		assert.Equal(t, 1500*time.Millisecond, took)
		assert.EqualValues(t, 2, s.Snapshot().Record.Token, "the answer was too slow, the write was not")
	})
}

func TestView_ConflictsAndRefusals(t *testing.T) {
	s := memory.NewStore()
	a := s.View("a")
	a.Conflict(1)
	a.Refuse(1)
	_, err := a.Write(t.Context(), held, "")
	require.ErrorIs(t, err, lease.ErrConflict)
	_, err = a.Write(t.Context(), held, "")
	require.ErrorIs(t, err, lease.ErrRefused)
	require.Zero(t, s.Snapshot())
	_, err = a.Write(t.Context(), held, "")
	require.NoError(t, err)
}

func TestView_SpareReadsAndWrites(t *testing.T) {
	s := memory.NewStore()
	a := s.View("a")
	a.SetUnavailable(true)
	a.SpareReads(true)
	_, err := a.Read(t.Context())
	require.NoError(t, err)
	_, err = a.Write(t.Context(), held, "")
	require.ErrorIs(t, err, memory.ErrUnavailable)
	a.SpareReads(false)
	a.SpareWrites(true)
	_, err = a.Read(t.Context())
	require.ErrorIs(t, err, memory.ErrUnavailable)
	_, err = a.Write(t.Context(), held, "")
	require.NoError(t, err)
}

func TestView_WatchUnderFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.NewStore()
		a := s.View("a")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var mu sync.Mutex
		var tokens []uint64
		seen := func() []uint64 {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(tokens)
		}
		go func() {
			_ = a.Watch(ctx, func(got lease.Snapshot) {
				mu.Lock()
				defer mu.Unlock()
				tokens = append(tokens, got.Record.Token)
			})
		}()
		write := func(token uint64) { s.Restore(lease.Record{Token: token}); synctest.Wait() }
		synctest.Wait()
		write(1)
		a.SilenceWatch(true)
		write(2)
		write(3)
		a.SilenceWatch(false)
		synctest.Wait()
		a.SetUnavailable(true)
		write(4)
		assert.Equal(t, []uint64{0, 1, 3}, seen(), "states may be skipped, never the last one")
		a.Heal()
		synctest.Wait()
		assert.Equal(t, []uint64{0, 1, 3, 4}, seen())
		a.SetDelay(2 * time.Second)
		write(5)
		assert.Len(t, seen(), 4)
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []uint64{0, 1, 3, 4, 5}, seen())
		assert.Equal(t, 1, a.Counters().Watches)
	})
}

func TestStore_AdministratorsTools(t *testing.T) {
	s := memory.NewStore()
	s.Touch()
	assert.Zero(t, s.Snapshot(), "there is nothing to touch")
	first := s.Restore(held)
	s.Touch()
	assert.NotEqual(t, first.Version, s.Snapshot().Version)
	assert.Equal(t, held, s.Snapshot().Record)
	s.Delete()
	assert.Zero(t, s.Snapshot())
	assert.NotEqual(t, first.Version, s.Restore(held).Version, "versions never repeat")
	assert.Equal(t, []lease.Record{held, {}, held}, s.History())
}

func TestFactory_OneNameIsOneRecord(t *testing.T) {
	open := memory.Factory()
	get := func(system, name, owner string) lease.Store {
		s, err := open(t.Context(), lease.Spec{System: system, Name: name, Owner: owner})
		require.NoError(t, err)
		return s
	}
	_, err := get("s", "n", "a").Write(t.Context(), held, "")
	require.NoError(t, err)
	for _, other := range []struct {
		system, name string
		want         lease.Record
	}{{"s", "n", held}, {"s", "m", lease.Record{}}, {"r", "n", lease.Record{}}} {
		got, err := get(other.system, other.name, "b").Read(t.Context())
		require.NoError(t, err)
		assert.Equal(t, other.want, got.Record)
	}
}
