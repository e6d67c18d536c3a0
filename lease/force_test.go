package lease_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
)

func TestForceRelease_FreesWhatAnotherHolds(t *testing.T) {
	for name, holder := range map[string]string{"by name": "a", "whoever": ""} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a, admin := w.lease("a"), w.lease("admin")
				var lost losses
				require.Equal(t, lease.Granted, a.Acquire(t.Context(), verdict(0, "a", "a"), lost.add).Kind)
				out := admin.ForceRelease(t.Context(), holder)
				assert.Equal(t, lease.Released, out.Kind, "%v", out)
				assert.Equal(t, "a", out.Record.Holder, "who it was")
				assert.False(t, out.Expired)
				assert.Empty(t, w.record().Holder)
				assert.EqualValues(t, 1, w.record().Token, "grows with the next grant")
				assert.NotNil(t, w.record().Verdict, "stays")
				time.Sleep(interval)
				synctest.Wait()
				assert.False(t, a.Check())
				require.Len(t, lost.all(), 1)
				assert.ErrorContains(t, lost.all()[0], "somebody freed the record")
			})
		})
	}
}

func TestForceRelease_RefusesTheWrongName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, admin := w.lease("a"), w.lease("admin")
		w.granted(a)
		out := admin.ForceRelease(t.Context(), "b")
		assert.Equal(t, lease.NotReleased, out.Kind)
		assert.ErrorIs(t, out.Err, lease.ErrOtherHolder)
		assert.True(t, a.Check())
	})
}

func TestForceRelease_OfAFreeLeaseDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := requests(w.view("admin"), func() {
			out := w.lease("admin").ForceRelease(t.Context(), "")
			assert.Equal(t, lease.NotReleased, out.Kind)
			assert.NoError(t, out.Err)
		})
		assert.Zero(t, n.Writes)
	})
}

func TestForceRelease_ALostAnswerIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.granted(w.lease("a"))
		w.view("admin").Inject(leasetest.Writes, leasetest.LoseResponse, 1)
		out := w.lease("admin").ForceRelease(t.Context(), "a")
		assert.Equal(t, lease.Released, out.Kind, "%v", out)
		assert.Empty(t, w.record().Holder)
	})
}

// The holder's heartbeats go on: each moves the version, and the release is tried again.
func TestForceRelease_BeatsAHolderThatIsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.granted(w.lease("a"))
		w.view("admin").Inject(leasetest.Writes, leasetest.Conflict, 3)
		assert.Equal(t, lease.Released, w.lease("admin").ForceRelease(t.Context(), "a").Kind)
	})
}

// What came after the release is not touched: an answer was lost, and the same owner has acquired again meanwhile.
func TestForceRelease_EndsOneGrantNotTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		w.granted(a)
		w.view("admin").Inject(leasetest.Writes, leasetest.LoseResponse, 1)
		done := make(chan lease.ReleaseOutcome, 1)
		admin := w.lease("admin")
		go func() { done <- admin.ForceRelease(t.Context(), "a") }()
		time.Sleep(time.Second) // it waits for the answer
		require.Empty(t, w.record().Holder)
		b := w.lease("a") // the next life of the owner
		w.granted(b)
		assert.Equal(t, lease.Released, (<-done).Kind)
		assert.True(t, b.Check())
		assert.Equal(t, "a", w.record().Holder)
	})
}

func TestForceRelease_UnknownIsNotReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.granted(w.lease("a"))
		w.view("admin").Inject(leasetest.All, leasetest.LoseRequest, leasetest.Always)
		out := w.lease("admin").ForceRelease(t.Context(), "a")
		assert.Equal(t, lease.ReleaseUnknown, out.Kind)
		assert.Error(t, out.Err)
	})
}

func TestForceRelease_OfOnesOwnLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		w.granted(a)
		assert.Equal(t, lease.Released, a.ForceRelease(t.Context(), "a").Kind)
		assert.False(t, a.Check())
		w.granted(a)
	})
}

func TestForceRelease_SaysWhetherTheHolderWasSilentForTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, admin := w.lease("a"), w.lease("admin")
		w.granted(a)
		_, err := admin.Read(t.Context())
		require.NoError(t, err)
		a.Close()
		time.Sleep(ttl)
		out := admin.ForceRelease(t.Context(), "a")
		assert.Equal(t, lease.Released, out.Kind)
		assert.True(t, out.Expired)
	})
}

// What nobody knows of one's own lease is settled later, as after a Release.
func TestForceRelease_OfOnesOwnLeaseIsTidiedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		w.granted(a)
		w.view("a").SetUnavailable(true)
		require.Equal(t, lease.ReleaseUnknown, a.ForceRelease(t.Context(), "a").Kind)
		require.False(t, a.Check())
		w.view("a").Heal()
		time.Sleep(ttl)
		require.Empty(t, w.record().Holder)
	})
}
