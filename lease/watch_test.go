package lease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/memory"
)

// watching collects what a Watch of l reports; stop ends it and returns its error.
func watching(t *testing.T, l *lease.Lease) (seen func() []lease.Record, stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	records := make(chan []lease.Record, 1)
	records <- nil
	done := make(chan error, 1)
	go func() {
		done <- l.Watch(ctx, func(r lease.Record) { records <- append(<-records, r) })
	}()
	seen = func() []lease.Record {
		r := <-records
		records <- r
		return r
	}
	stop = func() error { cancel(); return <-done }
	t.Cleanup(cancel)
	return seen, stop
}

// plainStore hides the Watch of a view.
type plainStore struct{ lease.Store }

// unwatchable refuses to be watched.
type unwatchable struct{ lease.Store }

func (unwatchable) Watch(context.Context, func(lease.Snapshot)) error {
	return errors.Join(errors.New("no right to watch"), lease.ErrRefused)
}

func TestWatch_ReportsThePresentAndChanges(t *testing.T) {
	stores := map[string]func(*memory.View) lease.Store{
		"watcher":     func(v *memory.View) lease.Store { return v },
		"polled":      func(v *memory.View) lease.Store { return plainStore{v} },
		"unwatchable": func(v *memory.View) lease.Store { return unwatchable{v} },
	}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a, b := w.lease("a"), w.leaseOver(open(w.view("b")), "b")
				seen, stop := watching(t, b)
				settle := func() { time.Sleep(time.Second); synctest.Wait() }
				settle()
				require.Len(t, seen(), 1)
				assert.Zero(t, seen()[0], "no record is reported as well")
				require.Equal(t, lease.Granted, a.Acquire(t.Context(), verdict(0, "a", "a"), nil).Kind)
				settle()
				require.Len(t, seen(), 2)
				assert.Equal(t, w.record(), seen()[1])
				seen()[1].Verdict.Survivors[0] = "x"
				w.view("b").SetUnavailable(true)
				a.Release(t.Context())
				settle()
				require.Len(t, seen(), 2, "cut off")
				w.view("b").Heal()
				settle()
				require.Len(t, seen(), 3)
				assert.Equal(t, w.record(), seen()[2])
				assert.ErrorIs(t, stop(), context.Canceled)
			})
		})
	}
}

func TestWatch_EndsWithTheLease(t *testing.T) {
	for _, polled := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			var s lease.Store = w.view("a")
			if polled {
				s = plainStore{s}
			}
			a := w.leaseOver(s, "a")
			time.AfterFunc(time.Minute, a.Close)
			assert.ErrorIs(t, a.Watch(t.Context(), func(lease.Record) {}), lease.ErrClosed)
		})
	}
}

func TestWatch_MakesAcquireOneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.lease("a"), w.lease("b")
		_, stop := watching(t, b)
		require.Equal(t, lease.Granted, a.Acquire(t.Context(), verdict(0, "a", "a", "b"), nil).Kind)
		a.Release(t.Context())
		synctest.Wait()
		n := requests(w.view("b"), func() {
			require.Equal(t, lease.Granted, b.Acquire(t.Context(), verdict(1, "b", "b"), nil).Kind)
		})
		assert.Equal(t, memory.Counters{Writes: 1}, n)
		_ = stop()
	})
}

func TestWatch_NoticesALossWhenItHappens(t *testing.T) {
	changes := map[string]func(*memory.Store){
		"taken":   func(s *memory.Store) { s.Restore(lease.Record{Holder: "x", Token: 9, Nonce: "n"}) },
		"freed":   func(s *memory.Store) { r := s.Snapshot().Record; r.Holder = ""; s.Restore(r) },
		"deleted": (*memory.Store).Delete,
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a, lost := holder(w)
				_, stop := watching(t, a)
				time.Sleep(time.Second)
				start := time.Now()
				change(w.store)
				synctest.Wait()
				assert.False(t, a.Check())
				assert.Len(t, lost.all(), 1)
				assert.Equal(t, start, lost.at[0])
				_ = stop()
			})
		})
	}
}

func TestWatch_OldReportsAreNotBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		v := w.view("a")
		a := w.lease("a")
		seen, stop := watching(t, a)
		synctest.Wait()
		w.store.Restore(lease.Record{Token: 1})
		synctest.Wait()
		v.SetDelay(2 * time.Second) // reports take a second from here on
		w.store.Restore(lease.Record{Holder: "x", Token: 2, TTL: ttl})
		v.Heal()
		time.Sleep(time.Millisecond)
		w.store.Restore(lease.Record{Token: 3})
		v.SpareReads(true)
		w.granted(a)
		time.Sleep(10 * interval)
		assert.True(t, a.Check())
		last := uint64(0)
		for _, r := range seen() {
			assert.GreaterOrEqual(t, r.Token, last, "never backwards")
			last = r.Token
		}
		_ = stop()
	})
}

func TestRead_AnswersInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		w.view("a").LoseRequests(1)
		start := time.Now()
		_, err := a.Read(t.Context())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.LessOrEqual(t, time.Since(start), timeout)
		r, err := a.Read(t.Context())
		require.NoError(t, err)
		assert.Zero(t, r)
	})
}
