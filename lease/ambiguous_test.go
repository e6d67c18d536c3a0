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

func TestAmbiguous_LostResponseIsRecognisedByTheNonce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		v := w.view("a")
		v.Inject(leasetest.Writes, leasetest.LoseResponse, 1)
		start := time.Now()
		n := requests(v, func() {
			out := linear.AnswerOf(a.Acquire(t.Context(), verdict(0, "a", "a")))
			require.Equal(t, sbr.Granted, out.Kind, "%v", out)
		})
		assert.Equal(t, leasetest.Counters{Reads: 2, Writes: 1}, n)
		assert.Less(t, time.Since(start), timeout, "a tenth of the operation is left for that")
		assert.EqualValues(t, 1, a.Token())
		time.Sleep(window - time.Since(start))
		assert.True(t, a.Check(), "heartbeats have taken over")
	})
}

func TestAmbiguous_GrantCountsFromTheWriteNotFromTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		v := w.view("a")
		v.Inject(leasetest.Writes, leasetest.LoseResponse, 1)
		start := time.Now()
		w.granted(a)
		v.SetUnavailable(true)
		time.Sleep(window - time.Since(start) - time.Nanosecond)
		assert.True(t, a.Check())
		time.Sleep(time.Nanosecond)
		assert.False(t, a.Check())
	})
}

func TestAmbiguous_LostRequestIsSettledByAnotherWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		v := w.view("a")
		v.Inject(leasetest.Writes, leasetest.LoseRequest, 1)
		n := requests(v, func() { w.granted(w.lease("a")) })
		assert.Equal(t, leasetest.Counters{Reads: 2, Writes: 2}, n, "an unchanged version proves nothing: write again")
	})
}

func TestAmbiguous_GhostAndSettlingWriteAreTheSameGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		v := w.view("a")
		// The first write is stuck for 2.1 s; the client gives up after 2 s, reads the old version, and writes again.
		v.CommitLate(1, 2100*time.Millisecond)
		time.AfterFunc(2001*time.Millisecond, func() { v.SetDelay(0) })
		time.AfterFunc(1900*time.Millisecond, func() { v.SetDelay(400 * time.Millisecond) })
		r := w.granted(w.lease("a"))
		time.Sleep(time.Second)
		assert.Len(t, w.store.History(), 1, "only one of the two can win")
		assert.Equal(t, r, w.record())
	})
}

func TestAmbiguous_SomebodyElseWonMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.lease("a"), w.lease("b")
		v := w.view("a")
		v.Inject(leasetest.Writes, leasetest.LoseRequest, 1)
		time.AfterFunc(time.Second, func() { _, _ = b.Acquire(t.Context(), lease.Proposal{}) })
		w.held(a, "b")
		time.Sleep(2 * ttl)
		assert.Equal(t, "b", w.record().Holder)
	})
}

func TestAmbiguous_NothingKnownIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		v := w.view("a")
		v.Inject(leasetest.Writes, leasetest.LoseResponse, leasetest.Always)
		a := w.lease("a")
		w.granted(a) // even so: the read tells
		require.NoError(t, a.Release(t.Context()), "and so does the read after the release")
		v.Inject(leasetest.All, leasetest.LoseResponse, leasetest.Always)
		out := w.unknown(a)
		assert.ErrorIs(t, out.Err, context.DeadlineExceeded)
		assert.False(t, a.Check())
	})
}

// lateGrant makes a's Acquire end as Unknown and its write arrive a second later.
func lateGrant(w *world, a *lease.Lease, p lease.Proposal) {
	w.t.Helper()
	v := w.view("a")
	v.CommitLate(leasetest.Always, timeout+time.Second)
	out := linear.AnswerOf(a.Acquire(w.t.Context(), p))
	require.Equal(w.t, sbr.Unknown, out.Kind, "%v", out)
	v.Heal()
	require.Empty(w.t, w.record().Holder)
	time.Sleep(time.Second)
	synctest.Wait()
	require.Equal(w.t, "a", w.record().Holder, "the late commit")
	require.False(w.t, a.Check())
}

func TestLateGrant_IsUndone(t *testing.T) {
	for _, with := range []string{"nothing", "read", "watch"} {
		t.Run(with, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a := w.lease("a")
				lateGrant(w, a, verdict(0, "a", "a"))
				switch with {
				case "read":
					_, err := a.Read(t.Context())
					require.NoError(t, err)
				case "watch":
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					go func() { _ = a.Watch(ctx, func(lease.Record) {}) }()
				}
				assert.False(t, a.Check(), "never granted after a failure was reported")
				time.Sleep(3 * timeout)
				assert.Empty(t, w.record().Holder)
				assert.EqualValues(t, 1, w.record().Token)
				require.NotNil(t, w.record().Verdict, "the verdict stays")
				w.granted(w.lease("b"))
			})
		})
	}
}

func TestLateGrant_IsSeenEvenLongAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		v := w.view("a")
		v.CommitLate(leasetest.Always, ttl+time.Hour)
		w.unknown(a)
		v.Heal()
		time.Sleep(ttl + time.Hour + time.Minute)
		require.Equal(t, "a", w.record().Holder)
		_, err := a.Read(t.Context())
		require.NoError(t, err)
		time.Sleep(3 * timeout)
		assert.Empty(t, w.record().Holder)
	})
}

func TestLateGrant_IsAdoptedByThePlainAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		lateGrant(w, a, lease.Proposal{})
		n := requests(w.view("a"), func() { w.granted(a) })
		assert.LessOrEqual(t, n.Writes, 1)
		time.Sleep(3 * ttl)
		assert.True(t, a.Check())
		assert.Equal(t, "a", w.record().Holder, "not undone")
	})
}

func TestLateGrant_OfAVerdictIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		lateGrant(w, a, verdict(0, "a", "a"))
		var lost losses
		out := lost.follow(linear.AnswerOf(a.Acquire(t.Context(), verdict(0, "a", "a", "b"))))
		require.Equal(t, sbr.Held, out.Kind, "%v", out)
		assert.True(t, out.Superseded)
		assert.Equal(t, "a", out.Record.Holder)
		assert.EqualValues(t, 1, out.Record.Verdict.Token)
		assert.True(t, a.Check(), "the lease is held: by the earlier attempt")
		assert.EqualValues(t, 1, a.Token())
		time.Sleep(3 * ttl)
		assert.True(t, a.Check())
		w.store.Delete()
		time.Sleep(interval)
		synctest.Wait()
		assert.Len(t, lost.all(), 1, "the callback of the adopting Acquire")
	})
}

func TestLateGrant_OfAPlainLockIsABaseForAVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		lateGrant(w, a, lease.Proposal{})
		out := linear.AnswerOf(a.Acquire(t.Context(), verdict(1, "a", "a")))
		require.Equal(t, sbr.Granted, out.Kind, "%v", out)
		assert.EqualValues(t, 2, a.Token())
	})
}

func TestLateGrant_TooOldIsRenewedBeforeItIsAdopted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		v := w.view("a")
		v.CommitLate(leasetest.Always, window+time.Second)
		start := time.Now()
		require.Equal(t, sbr.Unknown, linear.AnswerOf(a.Acquire(t.Context(), verdict(0, "a", "a"))).Kind)
		time.Sleep(window + time.Second - time.Since(start))
		synctest.Wait()
		require.Equal(t, "a", w.record().Holder)
		v.Heal()
		n := requests(v, func() { require.Equal(t, sbr.Held, linear.AnswerOf(a.Acquire(t.Context(), verdict(0, "a", "a"))).Kind) })
		assert.Equal(t, 2, n.Writes, "one in vain on the version known, one to renew")
		assert.True(t, a.Check())
	})
}

func TestLateGrant_IsReleasedByRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		v := w.view("a")
		v.CommitLate(leasetest.Always, timeout+time.Second)
		w.unknown(a)
		v.Heal()
		unreleased(t, a.Release(t.Context()))
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, "a", w.record().Holder)
		assert.NoError(t, a.Release(t.Context()))
		assert.Empty(t, w.record().Holder)
		assert.ErrorIs(t, a.Release(t.Context()), lease.ErrNotHeld)
	})
}

// Found by the property test: the undoing write is itself late. What was adopted meanwhile would be pulled away by it.
func TestLateGrant_IsNotAdoptedOnceItIsBeingUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		lateGrant(w, a, verdict(0, "a", "a"))
		w.view("a").CommitLate(leasetest.Always, timeout+time.Second)
		unreleased(t, a.Release(t.Context()))
		w.view("a").Heal()
		out := linear.AnswerOf(a.Acquire(t.Context(), verdict(0, "a", "a")))
		require.Equal(t, sbr.Held, out.Kind, "%v", out)
		assert.False(t, a.Check(), "the release is on its way")
		w.granted(a) // a write of its own makes that one impossible
		time.Sleep(3 * ttl)
		assert.True(t, a.Check())
		assert.Equal(t, "a", w.record().Holder)
		assert.EqualValues(t, 2, w.record().Token)
	})
}

func TestLateGrant_ThatNeverComesIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.lease("a"), w.lease("b")
		v := w.view("a")
		v.Inject(leasetest.Writes, leasetest.Unavailable, leasetest.Always)
		w.unknown(a)
		v.Heal()
		w.granted(b)
		n := requests(v, func() { time.Sleep(3 * ttl) })
		assert.Zero(t, n.Writes, "nothing is touched")
		assert.Equal(t, 1, n.Reads, "one look tells that the version is gone")
	})
}

func TestAmbiguous_VerdictOfTheHolderKeepsHolding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		w.granted(a)
		v := w.view("a")
		v.CommitLate(leasetest.Always, timeout+time.Second)
		require.Equal(t, sbr.Unknown, linear.AnswerOf(a.Acquire(t.Context(), verdict(1, "a", "a"))).Kind)
		v.Heal()
		assert.True(t, a.Check(), "either way a is the holder")
		assert.EqualValues(t, 1, a.Token())
		time.Sleep(ttl)
		assert.True(t, a.Check(), "the heartbeat recognises the late write")
		assert.EqualValues(t, 2, a.Token())
		assert.EqualValues(t, 2, w.record().Verdict.Token)
	})
}

func TestClose_LeavesALateGrantAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		lateGrant(w, a, lease.Proposal{})
		a.Close()
		n := requests(w.view("a"), func() { time.Sleep(2 * ttl) })
		assert.Zero(t, n)
	})
}
