package lease_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
)

func TestRelease_FreesAndKeepsTokenAndVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		require.Equal(t, lease.Granted, a.Acquire(t.Context(), verdict(0, "a", "a"), nil).Kind)
		before := w.record()
		out := a.Release(t.Context())
		assert.Equal(t, lease.ReleaseOutcome{Kind: lease.Released}, out)
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
			assert.Equal(t, lease.NotReleased, a.Release(t.Context()).Kind, "never acquired")
		})
		assert.Zero(t, n)
		w.granted(a)
		assert.Equal(t, lease.NotReleased, b.Release(t.Context()).Kind, "another's")
		assert.True(t, a.Check())
		assert.Equal(t, lease.Released, a.Release(t.Context()).Kind)
		assert.Equal(t, lease.NotReleased, a.Release(t.Context()).Kind)
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
		require.Equal(t, lease.Released, a.Release(t.Context()).Kind)
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
				out := a.Release(t.Context())
				assert.Equal(t, lease.Released, out.Kind, "%v", out)
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
		out := a.Release(t.Context())
		assert.Equal(t, timeout, time.Since(start))
		assert.Equal(t, lease.ReleaseUnknown, out.Kind)
		assert.ErrorIs(t, out.Err, context.DeadlineExceeded)
		assert.ErrorIs(t, out.Err, leasetest.ErrInjected)
		assert.NotContains(t, out.Err.Error(), "\n")
		assert.False(t, a.Check(), "whatever became of the write")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.Equal(t, lease.ReleaseUnknown, a.Release(ctx).Kind)
		v.Heal()
		assert.Equal(t, lease.Released, a.Release(t.Context()).Kind)
		assert.Equal(t, lease.NotReleased, a.Release(t.Context()).Kind)
	})
}

func TestRelease_UnknownIsTidiedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		w.granted(a)
		w.view("a").SetUnavailable(true)
		require.Equal(t, lease.ReleaseUnknown, a.Release(t.Context()).Kind)
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
		out := a.Release(t.Context())
		assert.Equal(t, lease.ReleaseUnknown, out.Kind)
		assert.ErrorIs(t, out.Err, lease.ErrRefused)
	})
}

func TestRelease_AfterSomebodyTookOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		w.granted(a)
		taken := lease.Record{Holder: "x", Token: 9, Nonce: "n"}
		w.store.Restore(taken)
		out := a.Release(t.Context())
		assert.Equal(t, lease.NotReleased, out.Kind)
		assert.ErrorIs(t, out.Err, lease.ErrLost)
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
		out := a.Release(t.Context())
		assert.Equal(t, lease.Released, out.Kind, "%v", out)
		assert.Zero(t, time.Since(start))
		assert.Empty(t, w.record().Holder)
	})
}

func TestRelease_OfAnAcquireUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		w.view("a").SetDelay(time.Second)
		acquired := make(chan lease.Outcome, 1)
		go func() { acquired <- a.Acquire(t.Context(), lease.Proposal{}, nil) }()
		time.Sleep(time.Millisecond)
		out := a.Release(t.Context())
		assert.Equal(t, lease.Released, out.Kind, "%v", out)
		assert.Equal(t, lease.Granted, (<-acquired).Kind, "it was, before it was released")
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
		require.Equal(t, lease.ReleaseUnknown, a.Release(t.Context()).Kind)
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
		out := a.Release(t.Context()) // hangs until the read is answered, and longer
		require.NoError(t, <-read)
		assert.Equal(t, lease.Released, out.Kind, "%v", out)
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
		out := a.Release(t.Context())
		assert.Equal(t, lease.Released, out.Kind, "%v", out)
		assert.Empty(t, w.record().Holder)
	})
}
