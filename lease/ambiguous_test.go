package lease_test

import (
	"context"
	"io"
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

func TestAmbiguous(t *testing.T) { tell(t, ambiguousStories) }

var ambiguousStories = map[string]func(*testing.T, *world){
	"lost response is recognised by the nonce": func(t *testing.T, w *world) {
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
		require.NoError(t, a.Release(t.Context()))
		v.Inject(leasetest.Writes, leasetest.LoseResponse, 1)
		start = time.Now()
		w.granted(a)
		v.SetUnavailable(true)
		time.Sleep(window - time.Since(start) - time.Nanosecond)
		assert.True(t, a.Check())
		time.Sleep(time.Nanosecond)
		assert.False(t, a.Check(), "it counts from the write, not from the answer")
	},
	"lost request is settled by another write": func(t *testing.T, w *world) {
		v := w.view("a")
		v.Inject(leasetest.Writes, leasetest.LoseRequest, 1)
		n := requests(v, func() { w.granted(w.lease("a")) })
		assert.Equal(t, leasetest.Counters{Reads: 2, Writes: 2},
			n, "an unchanged version proves nothing: write again")
	},
	"ghost and settling write are the same grant": func(t *testing.T, w *world) {
		v := w.view("a")
		// The first write is stuck for 2.1 s; the client gives up after 2 s, reads the old version, and
		// writes again.
		v.CommitLate(1, 2100*time.Millisecond)
		time.AfterFunc(2001*time.Millisecond, func() { v.SetDelay(0) })
		time.AfterFunc(1900*time.Millisecond, func() { v.SetDelay(400 * time.Millisecond) })
		r := w.granted(w.lease("a"))
		time.Sleep(time.Second)
		assert.Len(t, w.store.History(), 1, "only one of the two can win")
		assert.Equal(t, r, w.record())
	},
	"verdict of the holder keeps holding": func(t *testing.T, w *world) {
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
	},
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
			story(t, func(t *testing.T, w *world) {
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

func TestLateGrant(t *testing.T) { tell(t, lateGrantStories) }

var lateGrantStories = map[string]func(*testing.T, *world){
	"is seen even long after": func(t *testing.T, w *world) {
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
	},
	"is adopted by the plain acquire": func(t *testing.T, w *world) {
		a := w.lease("a")
		lateGrant(w, a, lease.Proposal{})
		n := requests(w.view("a"), func() { w.granted(a) })
		assert.LessOrEqual(t, n.Writes, 1)
		time.Sleep(3 * ttl)
		assert.True(t, a.Check())
		assert.Equal(t, "a", w.record().Holder, "not undone")
	},
	"of a verdict is told": func(t *testing.T, w *world) {
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
	},
	"of a plain lock is a base for a verdict": func(t *testing.T, w *world) {
		a := w.lease("a")
		lateGrant(w, a, lease.Proposal{})
		out := linear.AnswerOf(a.Acquire(t.Context(), verdict(1, "a", "a")))
		require.Equal(t, sbr.Granted, out.Kind, "%v", out)
		assert.EqualValues(t, 2, a.Token())
	},
	"too old is renewed before it is adopted": func(t *testing.T, w *world) {
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
	},
	"is released by release": func(t *testing.T, w *world) {
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
	},
	// Found by the property test: the undoing write is itself late. What was adopted meanwhile would be pulled
	// away by it.
	"is not adopted once it is being undone": func(t *testing.T, w *world) {
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
	},
	// Found by a random history over the real server: the write that a known state led to comes after the grant.
	"is not adopted beside a write that may still come": func(t *testing.T, w *world) {
		cut := &cutOff{Store: w.view("a")}
		a := w.leaseOver(cut, "a")
		lateGrant(w, a, lease.Proposal{})
		_, err := a.Read(t.Context())
		require.NoError(t, err)
		cut.late = timeout / 2
		granted := w.granted(a)
		time.Sleep(3 * ttl)
		assert.True(t, a.Check())
		assert.Equal(t, w.record().Token, granted.Token, "the token of a grant does not change")
	},
	"that never comes is forgotten": func(t *testing.T, w *world) {
		a, b := w.lease("a"), w.lease("b")
		v := w.view("a")
		v.Inject(leasetest.Writes, leasetest.Unavailable, leasetest.Always)
		w.unknown(a)
		v.Heal()
		w.granted(b)
		n := requests(v, func() { time.Sleep(3 * ttl) })
		assert.Zero(t, n.Writes, "nothing is touched")
		assert.Equal(t, 1, n.Reads, "one look tells that the version is gone")
	},
}

// cutOff loses its connection with the next write, which arrives late.
type cutOff struct {
	lease.Store
	late time.Duration
}

func (s *cutOff) Write(ctx context.Context, r lease.Record, prev lease.Version) (lease.Version, error) {
	after := s.late
	if s.late = 0; after == 0 {
		return s.Store.Write(ctx, r, prev)
	}
	time.AfterFunc(after, func() { _, _ = s.Store.Write(context.WithoutCancel(ctx), r, prev) })
	return "", io.ErrUnexpectedEOF
}

func TestClose_LeavesALateGrantAlone(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		a := w.lease("a")
		lateGrant(w, a, lease.Proposal{})
		a.Close()
		n := requests(w.view("a"), func() { time.Sleep(2 * ttl) })
		assert.Zero(t, n)
	})
}

// What the random histories have found, each as one short story.

// each draws the fate of the n-th write.
type each struct {
	*leasetest.Faulty
	n      int
	before func(n int, v *leasetest.Faulty)
}

func (e *each) Write(ctx context.Context, r lease.Record, prev lease.Version) (lease.Version, error) {
	e.n++
	e.Faulty.Heal()
	e.before(e.n, e.Faulty)
	return e.Faulty.Write(ctx, r, prev)
}

func TestFound(t *testing.T) { tell(t, foundStories) }

var foundStories = map[string]func(*testing.T, *world){
	// ErrRefused says that nothing was written. After a write whose fate is not known that would be a lie.
	"refused after a write in doubt is not certain": func(t *testing.T, w *world) {
		a := w.leaseOver(&each{Faulty: w.view("a"), before: func(n int, v *leasetest.Faulty) {
			switch n {
			case 1:
				v.CommitLate(1, timeout*19/20)
			case 2:
				v.Inject(leasetest.Writes, leasetest.Refuse, 1)
			}
		}}, "a")
		out := w.unknown(a)
		require.NotErrorIs(t, out.Err, lease.ErrRefused, "%v", out)
		time.Sleep(4 * time.Second)
		require.Equal(t, "a", w.record().Holder, "it was written")
	},
	// A holder that asks for a verdict, and misses the answer to the write, has lost nothing.
	"a verdict whose answer is lost is no loss": func(t *testing.T, w *world) {
		a, lost := holder(w)
		w.view("a").Inject(leasetest.All, leasetest.LoseResponse, 1)
		out := lost.follow(linear.AnswerOf(a.Acquire(t.Context(), verdict(1, "a", "a"))))
		require.Equal(t, sbr.Granted, out.Kind, "%v", out)
		synctest.Wait()
		require.Empty(t, lost.all())
		require.EqualValues(t, 2, a.Token())
	},
	// A release that waits for the lease's own tidying up, which then does its work, was a release all the same.
	"released by the tidying up": func(t *testing.T, w *world) {
		a := w.lease("a")
		w.granted(a)
		v := w.view("a")
		v.Inject(leasetest.All, leasetest.LoseRequest, leasetest.Always)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Equal(t, sbr.Unknown, linear.AnswerOf(a.Acquire(ctx, verdict(1, "a", "a"))).Kind)
		v.Heal()
		v.SetDelay(400 * time.Millisecond)
		time.Sleep(2*timeout + 100*time.Millisecond) // the tidying up has just begun to read
		require.True(t, a.Check())
		require.NoError(t, a.Release(t.Context()))
		require.Empty(t, w.record().Holder)
	},
}

// A release whose answer is lost, while another takes the lease at once, was a release all the same.
func TestFound_ReleasedAndTakenBeforeTheAnswer(t *testing.T) {
	for name, held := range map[string]bool{"a lease that was held": true, "a grant that came late": false} {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, w *world) {
				a, b := w.lease("a"), w.lease("b")
				v := w.view("a")
				if held {
					w.granted(a)
				} else {
					_, err := a.Read(t.Context())
					require.NoError(t, err)
					v.Inject(leasetest.All, leasetest.LoseResponse, leasetest.Always)
					w.unknown(a)
					v.Heal()
				}
				require.Equal(t, "a", w.record().Holder)
				done := make(chan error, 1)
				v.Inject(leasetest.Writes, leasetest.LoseResponse, 1)
				go func() { done <- a.Release(t.Context()) }()
				synctest.Wait()
				w.granted(b)
				require.NoError(t, <-done)
			})
		})
	}
}
