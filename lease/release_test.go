package lease_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func TestRelease_FreesAndKeepsTokenAndVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		require.Equal(t, sbr.Granted, linear.AnswerOf(a.Acquire(t.Context(), verdict(0, "a", "a"))).Kind)
		before := w.record()
		assert.NoError(t, a.Release(t.Context()))
		assert.False(t, a.Check())
		after := w.record()
		assert.Empty(t, after.Holder)
		after.Holder, after.Renewed = before.Holder, before.Renewed
		assert.Equal(t, before, after)
		time.Sleep(10 * ttl)
		assert.Empty(t, w.record().Holder, "no heartbeat comes after it")
	})
}

func TestRelease_IsIdempotent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.lease("a"), w.lease("b")
		n := requests(w.view("a"), func() {
			assert.ErrorIs(t, a.Release(t.Context()), lease.ErrNotHeld, "never acquired")
		})
		assert.Zero(t, n)
		w.granted(a)
		assert.ErrorIs(t, b.Release(t.Context()), lease.ErrNotHeld, "another's")
		assert.True(t, a.Check())
		assert.NoError(t, a.Release(t.Context()))
		assert.ErrorIs(t, a.Release(t.Context()), lease.ErrNotHeld)
		w.granted(b)
	})
}

func TestRelease_FlagIsClearedBeforeTheWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		w.granted(a)
		w.store.OnCommit(func(r lease.Record) {
			assert.Empty(t, r.Holder)
			assert.False(t, a.Check())
		})
		require.NoError(t, a.Release(t.Context()))
	})
}

func TestRelease_UnderFaults(t *testing.T) {
	faults := map[string]func(*leasetest.Faulty){
		"conflict":       func(v *leasetest.Faulty) { v.Inject(leasetest.Writes, leasetest.Conflict, 2) },
		"response lost":  func(v *leasetest.Faulty) { v.Inject(leasetest.Writes, leasetest.LoseResponse, 1) },
		"request lost":   func(v *leasetest.Faulty) { v.Inject(leasetest.Writes, leasetest.LoseRequest, 1) },
		"late commit":    func(v *leasetest.Faulty) { v.CommitLate(1, 2100*time.Millisecond) },
		"down for a bit": func(v *leasetest.Faulty) { v.SetUnavailable(true); time.AfterFunc(timeout/2, v.Heal) },
	}
	for name, inject := range faults {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a := w.lease("a")
				w.granted(a)
				inject(w.view("a"))
				assert.NoError(t, a.Release(t.Context()))
				assert.Empty(t, w.record().Holder)
				w.view("a").Heal()
				n := requests(w.view("a"), func() { time.Sleep(2 * ttl) })
				assert.Zero(t, n)
			})
		})
	}
}

func TestRelease_UnknownCanBeRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		w.granted(a)
		v := w.view("a")
		v.SetUnavailable(true)
		start := time.Now()
		err := a.Release(t.Context())
		assert.Equal(t, timeout, time.Since(start))
		unreleased(t, err)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorIs(t, err, leasetest.ErrInjected)
		assert.NotContains(t, err.Error(), "\n")
		assert.False(t, a.Check(), "whatever became of the write")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		unreleased(t, a.Release(ctx))
		v.Heal()
		assert.NoError(t, a.Release(t.Context()))
		assert.ErrorIs(t, a.Release(t.Context()), lease.ErrNotHeld)
	})
}

func TestRelease_UnknownIsTidiedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		w.granted(a)
		w.view("a").SetUnavailable(true)
		unreleased(t, a.Release(t.Context()))
		w.view("a").Heal()
		time.Sleep(timeout + interval)
		assert.Empty(t, w.record().Holder)
	})
}

func TestRelease_RefusedIsUnknownAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		w.granted(a)
		w.view("a").Inject(leasetest.Writes, leasetest.Refuse, 1)
		err := a.Release(t.Context())
		unreleased(t, err)
		assert.ErrorIs(t, err, lease.ErrRefused)
	})
}

func TestRelease_AfterSomebodyTookOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		w.granted(a)
		taken := lease.Record{Holder: "x", Token: 9, Nonce: "n"}
		w.store.Restore(taken)
		err := a.Release(t.Context())
		assert.ErrorIs(t, err, lease.ErrNotHeld)
		assert.ErrorIs(t, err, lease.ErrLost)
		assert.Equal(t, taken, w.record(), "left alone")
	})
}

func TestRelease_DoesNotWaitForAHangingHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		w.granted(a)
		w.view("a").Inject(leasetest.All, leasetest.LoseResponse, 1)
		time.Sleep(interval + time.Millisecond)
		start := time.Now()
		assert.NoError(t, a.Release(t.Context()))
		assert.Zero(t, time.Since(start))
		assert.Empty(t, w.record().Holder)
	})
}

func TestRelease_OfAnAcquireUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		w.view("a").SetDelay(time.Second)
		acquired := make(chan linear.Answer, 1)
		go func() { acquired <- linear.AnswerOf(a.Acquire(t.Context(), lease.Proposal{})) }()
		time.Sleep(time.Millisecond)
		assert.NoError(t, a.Release(t.Context()))
		assert.Equal(t, sbr.Granted, (<-acquired).Kind, "it was, before it was released")
		assert.Empty(t, w.record().Holder)
		assert.False(t, a.Check())
	})
}

func TestRelease_ThenAcquireBeforeTheTidyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		w.granted(a)
		w.view("a").CommitLate(leasetest.Always, timeout+time.Millisecond)
		unreleased(t, a.Release(t.Context()))
		w.view("a").Heal()
		w.granted(a) // its write makes the late release impossible
		time.Sleep(3 * ttl)
		assert.True(t, a.Check())
		assert.Equal(t, "a", w.record().Holder)
		assert.EqualValues(t, 2, a.Token())
	})
}

// The answer to a read that was sent before the lease was acquired says nothing about its release.
func TestRelease_IsNotMisledByAnOldRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		v := w.view("a")
		v.SetDelay(1800 * time.Millisecond)
		read := make(chan error, 1)
		go func() { _, err := a.Read(t.Context()); read <- err }()
		time.Sleep(time.Second) // the store has answered: free
		v.Heal()
		w.granted(a)
		v.Inject(leasetest.Writes, leasetest.LoseRequest, 1)
		assert.NoError(t, a.Release(t.Context())) // hangs until the read is answered, and longer
		require.NoError(t, <-read)
		assert.Empty(t, w.record().Holder)
	})
}

// stubborn is a store whose writes are not to be stopped: the server has them already.
type stubborn struct {
	lease.Store
	delay time.Duration
}

func (s stubborn) Write(_ context.Context, r lease.Record, prev lease.Version) (lease.Version, error) {
	time.Sleep(s.delay)
	return s.Store.Write(context.Background(), r, prev)
}

// A heartbeat is confirmed while Release waits for its turn. The record must be freed all the same.
func TestRelease_DuringAHeartbeatThatSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.leaseOver(stubborn{w.view("a"), time.Second}, "a")
		w.granted(a)
		time.Sleep(interval)
		synctest.Wait()
		assert.NoError(t, a.Release(t.Context()))
		assert.Empty(t, w.record().Holder)
	})
}
