package lease_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
)

func TestLost_FlagIsClearedBeforeTheCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		seen := make(chan bool, 1)
		a.Acquire(t.Context(), lease.Proposal{}, func(error) { seen <- a.Check() })
		w.store.Delete()
		assert.False(t, <-seen)
	})
}

func TestLost_CallbackMayUseTheLease(t *testing.T) {
	uses := map[string]func(*lease.Lease){
		"acquire": func(a *lease.Lease) { a.Acquire(context.Background(), lease.Proposal{}, nil) },
		"release": func(a *lease.Lease) { a.Release(context.Background()) },
		"close":   func(a *lease.Lease) { a.Close() },
		"read":    func(a *lease.Lease) { _, _ = a.Read(context.Background()) },
	}
	for name, use := range uses {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a := w.lease("a")
				done := make(chan struct{})
				a.Acquire(t.Context(), lease.Proposal{}, func(error) { use(a); close(done) })
				w.store.Delete()
				<-done
			})
		})
	}
}

func TestLost_PanicIsContained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		a.Acquire(t.Context(), lease.Proposal{}, func(error) { panic("oh") })
		w.store.Delete()
		time.Sleep(interval)
		synctest.Wait()
		assert.Contains(t, w.logs.All()[len(w.logs.All())-1], "panic=oh")
		w.granted(a)
	})
}

func TestLost_ReacquireReplacesTheCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		var first, second losses
		a.Acquire(t.Context(), lease.Proposal{}, first.add)
		a.Acquire(t.Context(), lease.Proposal{}, second.add)
		a.Acquire(t.Context(), lease.Proposal{}, nil)
		w.store.Delete()
		time.Sleep(interval)
		synctest.Wait()
		assert.Empty(t, first.all())
		assert.Len(t, second.all(), 1)
	})
}

func TestLost_NotByRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, lost := holder(w)
		require.Equal(t, lease.Released, a.Release(t.Context()).Kind)
		time.Sleep(2 * ttl)
		assert.Empty(t, lost.all())
	})
}

// A read that is answered while the grant is under way finds the lease gone: the callback waits for Acquire to return.
func TestLost_NeverBeforeAcquireReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var a *lease.Lease
		store := &pausingStore{Faulty: w.view("a"), pause: func() {
			time.AfterFunc(time.Millisecond, func() {
				w.store.Restore(lease.Record{Holder: "x", Token: 5})
				_, _ = a.Read(t.Context())
			})
		}}
		a = w.leaseOver(store, "a")
		var returned time.Time
		told := make(chan time.Time, 1)
		out := a.Acquire(t.Context(), lease.Proposal{}, func(error) { told <- time.Now() })
		returned = time.Now()
		require.Equal(t, lease.Granted, out.Kind)
		assert.False(t, (<-told).Before(returned))
		assert.False(t, a.Check())
	})
}
