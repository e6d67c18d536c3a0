package lease_test

import (
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

func TestForceRelease_FreesWhatAnotherHolds(t *testing.T) {
	for name, holder := range map[string]string{"by name": "a", "whoever": ""} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a, admin := w.lease("a"), w.lease("admin")
				var lost losses
				require.Equal(t, sbr.Granted, lost.follow(linear.AnswerOf(a.Acquire(t.Context(), verdict(0, "a", "a")))).Kind)
				was, expired, err := admin.ForceRelease(t.Context(), holder)
				assert.NoError(t, err)
				assert.Equal(t, "a", was.Holder)
				assert.False(t, expired)
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
		was, _, err := admin.ForceRelease(t.Context(), "b")
		assert.ErrorIs(t, err, lease.ErrNotHeld)
		assert.ErrorIs(t, err, lease.ErrOtherHolder)
		assert.Equal(t, "a", was.Holder)
		assert.True(t, a.Check())
	})
}

func TestForceRelease_OfAFreeLeaseDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := requests(w.view("admin"), func() {
			_, _, err := w.lease("admin").ForceRelease(t.Context(), "")
			assert.ErrorIs(t, err, lease.ErrNotHeld)
			assert.NotErrorIs(t, err, lease.ErrOtherHolder)
		})
		assert.Zero(t, n.Writes)
	})
}

func TestForceRelease_ALostAnswerIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.granted(w.lease("a"))
		w.view("admin").Inject(leasetest.Writes, leasetest.LoseResponse, 1)
		w.force(w.lease("admin"), "a")
		assert.Empty(t, w.record().Holder)
	})
}

// The holder's heartbeats go on: each moves the version, and the release is tried again.
func TestForceRelease_BeatsAHolderThatIsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.granted(w.lease("a"))
		w.view("admin").Inject(leasetest.Writes, leasetest.Conflict, 3)
		w.force(w.lease("admin"), "a")
	})
}

// What came after the release is not touched: an answer was lost, and the same owner has acquired again meanwhile.
func TestForceRelease_EndsOneGrantNotTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		w.granted(a)
		w.view("admin").Inject(leasetest.Writes, leasetest.LoseResponse, 1)
		done := make(chan struct{})
		admin := w.lease("admin")
		go func() { w.force(admin, "a"); close(done) }()
		time.Sleep(time.Second) // it waits for the answer
		require.Empty(t, w.record().Holder)
		b := w.lease("a") // the next life of the owner
		w.granted(b)
		<-done
		assert.True(t, b.Check())
		assert.Equal(t, "a", w.record().Holder)
	})
}

func TestForceRelease_UnknownIsNotReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.granted(w.lease("a"))
		w.view("admin").Inject(leasetest.All, leasetest.LoseRequest, leasetest.Always)
		_, _, err := w.lease("admin").ForceRelease(t.Context(), "a")
		unreleased(t, err)
	})
}

func TestForceRelease_OfOnesOwnLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		w.granted(a)
		w.force(a, "a")
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
		_, expired, err := admin.ForceRelease(t.Context(), "a")
		assert.NoError(t, err)
		assert.True(t, expired)
	})
}

// What nobody knows of one's own lease is settled later, as after a Release.
func TestForceRelease_OfOnesOwnLeaseIsTidiedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		w.granted(a)
		w.view("a").SetUnavailable(true)
		_, _, err := a.ForceRelease(t.Context(), "a")
		unreleased(t, err)
		require.False(t, a.Check())
		w.view("a").Heal()
		time.Sleep(ttl)
		require.Empty(t, w.record().Holder)
	})
}
