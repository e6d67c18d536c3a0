package lease_test

import (
	"context"
	"errors"
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

func TestAcquire_FreeLeaseIsGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		require.False(t, a.Check(), "never before a grant")
		require.Zero(t, a.Token())
		r := w.granted(a)
		assert.Equal(t, "a", r.Holder)
		assert.EqualValues(t, 1, r.Token)
		assert.EqualValues(t, 1, a.Token())
		assert.Equal(t, ttl, r.TTL)
		assert.NotEmpty(t, r.Nonce)
		assert.Equal(t, w.record(), r)
	})
}

func TestAcquire_HeldByOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.granted(w.lease("a"))
		b := w.lease("b")
		out := w.held(b, "a")
		assert.False(t, b.Check())
		assert.False(t, out.Superseded)
		assert.Equal(t, ttl, out.RetryAfter)
	})
}

func TestAcquire_ReentrantWithoutRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		first := w.granted(a)
		n := requests(w.view("a"), func() { assert.Equal(t, first, w.granted(a)) })
		assert.Zero(t, n)
	})
}

func TestAcquire_Cost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.lease("a"), w.lease("b")
		cold := requests(w.view("a"), func() { w.granted(a) })
		assert.Equal(t, leasetest.Counters{Reads: 1, Writes: 1}, cold)
		require.NoError(t, a.Release(t.Context()))
		warm := requests(w.view("a"), func() { w.granted(a) })
		assert.Equal(t, leasetest.Counters{Writes: 1}, warm, "the version is known from the release")
		refused := requests(w.view("b"), func() { w.held(b, "a") })
		assert.Equal(t, leasetest.Counters{Reads: 1}, refused)
		released := requests(w.view("a"), func() { _ = a.Release(t.Context()) })
		assert.Equal(t, leasetest.Counters{Writes: 1}, released)
		stale := requests(w.view("b"), func() { w.granted(b) })
		assert.Equal(t, leasetest.Counters{Reads: 1, Writes: 1}, stale, "what b knows says held: it must look again")
	})
}

func TestAcquire_VerdictIsWrittenWithTheHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		p := verdict(0, "a", "c", "a", "b")
		out := linear.AnswerOf(a.Acquire(t.Context(), p))
		require.Equal(t, sbr.Granted, out.Kind, "%v", out)
		want := &sbr.Verdict{Token: 1, Survivors: []sbr.ID{"a", "b", "c"}, Down: []sbr.ID{"y", "z"}, DecidedBy: "a", Reason: "a decided"}
		assert.Equal(t, want, w.record().Verdict)
		assert.Equal(t, want, out.Record.Verdict)
		assert.Equal(t, []sbr.ID{"c", "a", "b"}, p.Verdict.Survivors, "the caller's proposal is left alone")
		assert.Zero(t, p.Verdict.Token)
		out.Record.Verdict.Survivors[0] = "x"
		r, err := a.Read(t.Context())
		require.NoError(t, err)
		assert.Equal(t, want, r.Verdict, "outcomes share nothing with the lease")
	})
}

func TestAcquire_VerdictOfTheHolderGrowsTheToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		w.granted(a)
		first := w.record().Nonce
		n := requests(w.view("a"), func() {
			out := linear.AnswerOf(a.Acquire(t.Context(), verdict(1, "a", "a")))
			require.Equal(t, sbr.Granted, out.Kind, "%v", out)
		})
		assert.Equal(t, leasetest.Counters{Writes: 1}, n)
		assert.EqualValues(t, 2, a.Token())
		assert.NotEqual(t, first, w.record().Nonce)
		time.Sleep(3 * ttl)
		assert.True(t, a.Check(), "the heartbeats go on under the new nonce")
		assert.EqualValues(t, 2, w.record().Token, "heartbeats keep the token")
	})
}

func TestAcquire_SupersededBaseWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.lease("a"), w.lease("b")
		require.Equal(t, sbr.Granted, linear.AnswerOf(a.Acquire(t.Context(), verdict(0, "a", "a"))).Kind)
		for _, released := range []bool{false, true} {
			if released {
				require.NoError(t, a.Release(t.Context()))
			}
			before := w.store.Snapshot()
			out := linear.AnswerOf(b.Acquire(t.Context(), verdict(0, "b", "b")))
			require.Equal(t, sbr.Held, out.Kind, "%v", out)
			assert.True(t, out.Superseded)
			assert.Equal(t, before.Record, out.Record)
			assert.Equal(t, before, w.store.Snapshot())
		}
		assert.Empty(t, w.record().Holder, "superseded although nobody holds it")
		out := linear.AnswerOf(b.Acquire(t.Context(), verdict(1, "b", "a")))
		assert.Equal(t, sbr.Granted, out.Kind, "%v", out)
	})
}

func TestAcquire_TakeOverOfALivingHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.lease("a"), w.lease("b")
		var lost losses
		require.Equal(t, sbr.Granted, lost.follow(linear.AnswerOf(a.Acquire(t.Context(), lease.Proposal{}))).Kind)
		p := verdict(1, "b", "a", "b")
		p.TakeOver = []string{"x"}
		require.Equal(t, sbr.Held, linear.AnswerOf(b.Acquire(t.Context(), p)).Kind)
		p.TakeOver = []string{"x", "a"}
		n := requests(w.view("b"), func() { require.Equal(t, sbr.Granted, linear.AnswerOf(b.Acquire(t.Context(), p)).Kind) })
		assert.Equal(t, 1, n.Writes)
		time.Sleep(interval)
		synctest.Wait()
		assert.False(t, a.Check(), "the next heartbeat at the latest tells the former holder")
		require.Len(t, lost.all(), 1)
		assert.ErrorIs(t, lost.all()[0], lease.ErrLost)
		assert.ErrorContains(t, lost.all()[0], `held by "b"`)
		assert.False(t, b.Check(), "b cannot know that")
		time.Sleep(ttl - interval)
		assert.True(t, b.Check())
	})
}

func TestAcquire_SecondLifeOfAnOwnerDisplacesTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		first, second := w.lease("a"), w.lease("a")
		var lost losses
		require.Equal(t, sbr.Granted, lost.follow(linear.AnswerOf(first.Acquire(t.Context(), lease.Proposal{}))).Kind)
		w.granted(second)
		assert.EqualValues(t, 2, second.Token(), "fencing tells the two lives apart")
		time.Sleep(interval)
		synctest.Wait()
		assert.False(t, first.Check())
		require.Len(t, lost.all(), 1)
		assert.ErrorContains(t, lost.all()[0], "another life")
	})
}

func TestAcquire_TransientFailuresAreRetriedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		v := w.view("a")
		v.SetUnavailable(true)
		time.AfterFunc(timeout/2, v.Heal)
		start := time.Now()
		w.granted(w.lease("a"))
		assert.Less(t, time.Since(start), timeout)
	})
}

func TestAcquire_UnavailableIsUnknownWithinTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		w.view("a").SetUnavailable(true)
		start := time.Now()
		out := w.unknown(a)
		assert.Equal(t, timeout, time.Since(start))
		assert.ErrorIs(t, out.Err, context.DeadlineExceeded)
		assert.ErrorIs(t, out.Err, leasetest.ErrInjected)
		assert.NotContains(t, out.Err.Error(), "\n")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		assert.Equal(t, sbr.Unknown, linear.AnswerOf(a.Acquire(ctx, lease.Proposal{})).Kind)
		assert.Equal(t, time.Second, time.Since(start), "ctx may be shorter")

		cancel()
		n := requests(w.view("a"), func() {
			out := linear.AnswerOf(a.Acquire(ctx, lease.Proposal{}))
			assert.Equal(t, sbr.Unknown, out.Kind)
			assert.Error(t, out.Err)
		})
		assert.Zero(t, n, "no request for a caller that has gone")
	})
}

func TestAcquire_RefusedIsUnknownAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		w.view("a").Inject(leasetest.Writes, leasetest.Refuse, 1)
		start := time.Now()
		out := w.unknown(a)
		assert.Zero(t, time.Since(start))
		assert.ErrorIs(t, out.Err, lease.ErrRefused)
		assert.Zero(t, w.store.Snapshot())
		w.granted(a)
	})
}

func TestAcquire_ConflictIsNotALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.view("a").Inject(leasetest.Writes, leasetest.Conflict, 3)
		n := requests(w.view("a"), func() { w.granted(w.lease("a")) })
		assert.Equal(t, leasetest.Counters{Reads: 4, Writes: 4}, n)
	})
}

func TestAcquire_EndlessConflictsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.view("a").Inject(leasetest.Writes, leasetest.Conflict, leasetest.Always)
		start := time.Now()
		n := requests(w.view("a"), func() {
			out := w.unknown(w.lease("a"))
			assert.ErrorIs(t, out.Err, lease.ErrConflict)
		})
		assert.Equal(t, timeout, time.Since(start))
		assert.Less(t, n.Writes, 40, "with a growing pause in between")
	})
}

// The bug of the neighbours (user-asks 3): "acquired" was answered on a conflict with an empty holder before the repeated
// write was done, and somebody else won that one.
func TestAcquire_ConflictFreeRecordStolenInBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.lease("a"), w.lease("b")
		w.granted(b)
		require.NoError(t, b.Release(t.Context()))
		v := w.view("a")
		v.SetDelay(100 * time.Millisecond)
		v.Inject(leasetest.Writes, leasetest.Conflict, 1)
		time.AfterFunc(275*time.Millisecond, func() { _, _ = b.Acquire(t.Context(), lease.Proposal{}) })
		w.held(a, "b")
		synctest.Wait()
		assert.False(t, a.Check())
	})
}

func TestAcquire_ConcurrentCallsAreAllAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		w.view("a").SetDelay(100 * time.Millisecond)
		outcomes := make(chan linear.Answer)
		n := requests(w.view("a"), func() {
			for range 20 {
				go func() { outcomes <- linear.AnswerOf(a.Acquire(t.Context(), lease.Proposal{})) }()
			}
			for range 20 {
				out := <-outcomes
				assert.Equal(t, sbr.Granted, out.Kind, "%v", out)
			}
		})
		assert.Equal(t, leasetest.Counters{Reads: 1, Writes: 1}, n, "all share what the first one did")

		_ = a.Release(t.Context())
		w.view("a").SetUnavailable(true)
		start := time.Now()
		for range 20 {
			go func() { outcomes <- linear.AnswerOf(a.Acquire(t.Context(), lease.Proposal{})) }()
		}
		for range 20 {
			assert.Equal(t, sbr.Unknown, (<-outcomes).Kind)
		}
		assert.Equal(t, timeout, time.Since(start), "none waits longer than its own time")
	})
}

func TestAcquire_ContentionHasOneWinner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		outcomes := make(chan linear.Answer)
		for i := range 30 {
			l := w.lease(string(rune('A' + i)))
			w.view(l.Owner()).SetDelay(time.Duration(1+i%3) * time.Millisecond)
			go func() { outcomes <- linear.AnswerOf(l.Acquire(t.Context(), lease.Proposal{})) }()
		}
		kinds := map[sbr.Outcome]int{}
		for range 30 {
			kinds[(<-outcomes).Kind]++
		}
		assert.Equal(t, map[sbr.Outcome]int{sbr.Granted: 1, sbr.Held: 29}, kinds)
	})
}

func TestAcquire_TooLateIsNotAGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		clock := &jumpingClock{}
		a := w.leaseOver(&pausingStore{Faulty: w.view("a"), pause: func() { clock.jump(window) }}, "a",
			func(_ *lease.Settings, o *lease.Options) { o.Clock = clock })
		out := w.unknown(a)
		assert.ErrorIs(t, out.Err, lease.ErrTooLate)
		assert.False(t, a.Check())
		assert.Equal(t, "a", w.record().Holder)
		time.Sleep(time.Minute)
		assert.Empty(t, w.record().Holder, "what nobody was told of is undone")
	})
}

func TestAcquire_ErrorsNameTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		w.view("a").Inject(leasetest.All, leasetest.LoseRequest, leasetest.Always)
		gone := errors.New("the caller has gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(gone) })
		assert.ErrorIs(t, linear.AnswerOf(a.Acquire(ctx, lease.Proposal{})).Err, gone)
		time.AfterFunc(time.Second, a.Close)
		assert.ErrorIs(t, linear.AnswerOf(a.Acquire(t.Context(), lease.Proposal{})).Err, lease.ErrClosed)
		assert.ErrorIs(t, linear.AnswerOf(a.Acquire(t.Context(), lease.Proposal{})).Err, lease.ErrClosed)
		_, err := a.Read(t.Context())
		assert.ErrorIs(t, err, lease.ErrClosed)
	})
}

// pausingStore pauses the whole process right after its first committed write.
type pausingStore struct {
	*leasetest.Faulty
	pause func()
	done  bool
}

func (s *pausingStore) Write(ctx context.Context, r lease.Record, prev lease.Version) (lease.Version, error) {
	got, err := s.Faulty.Write(ctx, r, prev)
	if err == nil && !s.done {
		s.done = true
		s.pause()
	}
	return got, err
}

// A watch reports a write before the writer has its answer: that is no other life of the owner.
func TestAcquire_AHolderSeesItsOwnNewVerdictEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.leaseOver(tardy{w.view("a")}, "a")
		var lost losses
		require.Equal(t, sbr.Granted, lost.follow(linear.AnswerOf(a.Acquire(t.Context(), verdict(0, "a", "a", "b")))).Kind)
		_, stop := watching(t, a)
		synctest.Wait()
		require.Equal(t, sbr.Granted, linear.AnswerOf(a.Acquire(t.Context(), verdict(1, "a", "a"))).Kind)
		time.Sleep(interval)
		assert.Empty(t, lost.all())
		assert.True(t, a.Check())
		_ = stop()
	})
}

// tardy is a store whose answers to writes take a second; its watches are at once.
type tardy struct{ *leasetest.Faulty }

func (s tardy) Write(ctx context.Context, r lease.Record, prev lease.Version) (lease.Version, error) {
	defer time.Sleep(time.Second)
	return s.Faulty.Write(ctx, r, prev)
}

// The last of many tries is cut short by the caller's own time. What the others said is what tells.
func TestAcquire_NamesTheFailureThatTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		v := w.view("a")
		v.SetUnavailable(true)
		time.AfterFunc(timeout/2, func() {
			v.Heal()
			v.Inject(leasetest.All, leasetest.LoseRequest, leasetest.Always)
		})
		out := w.unknown(w.lease("a"))
		assert.ErrorIs(t, out.Err, context.DeadlineExceeded)
		assert.ErrorIs(t, out.Err, leasetest.ErrInjected)
	})
}
