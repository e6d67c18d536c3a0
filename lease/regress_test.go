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
	"github.com/serf-sbr/serf-sbr/sbr"
)

// chain leaves a released record with token 2, whose verdict lets a and b go on, and returns the state under token 1.
func chain(w *world, a *lease.Lease) (first lease.Record) {
	w.t.Helper()
	require.Equal(w.t, sbr.Granted, linear.AnswerOf(a.Acquire(w.t.Context(), verdict(0, "a", "a", "b", "c"))).Kind)
	require.NoError(w.t, a.Release(w.t.Context()))
	first = w.store.Snapshot().Record
	require.Equal(w.t, sbr.Granted, linear.AnswerOf(a.Acquire(w.t.Context(), verdict(1, "a", "a", "b"))).Kind)
	require.NoError(w.t, a.Release(w.t.Context()))
	return first
}

func TestRegress_TokenAndVerdictSurviveAStoreThatForgets(t *testing.T) {
	for _, how := range []string{"deleted", "restored"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a := w.lease("a")
				first := chain(w, a)
				newest := w.record().Verdict
				if how == "deleted" {
					w.store.Delete()
				} else {
					w.store.Restore(first)
				}
				for range 3 {
					r, err := a.Read(t.Context())
					require.NoError(t, err)
					assert.EqualValues(t, 2, r.Token)
					assert.Equal(t, newest, r.Verdict)
				}
				require.Len(t, w.logs.All(), 1, "said once: %v", w.logs.All())

				out := linear.AnswerOf(a.Acquire(t.Context(), verdict(1, "a", "a", "b", "c")))
				require.Equal(t, sbr.Held, out.Kind, "an old base stays old")
				assert.True(t, out.Superseded)
				assert.Equal(t, newest, out.Record.Verdict)
				r := w.granted(a)
				assert.EqualValues(t, 3, r.Token, "one more than ever seen")
				assert.Equal(t, newest, w.record().Verdict, "a plain lock keeps the newest verdict, not the stored one")
				out = linear.AnswerOf(a.Acquire(t.Context(), verdict(3, "a", "a")))
				require.Equal(t, sbr.Granted, out.Kind, "%v", out)
				assert.EqualValues(t, 4, w.record().Token)
			})
		})
	}
}

func TestRegress_DeletedWhileHeldIsLostAndAcquiredAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, lost := holder(w)
		w.store.Delete()
		time.Sleep(interval)
		synctest.Wait()
		require.Len(t, lost.all(), 1)
		assert.EqualValues(t, 2, w.granted(a).Token)
		assert.NotEmpty(t, w.logs.All())
	})
}

func TestRegress_AnOldRecordOfMineIsNotAGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.lease("a"), w.lease("b")
		w.granted(a)
		backup := w.store.Snapshot().Record
		_ = a.Release(t.Context())
		_, err := a.Read(t.Context())
		require.NoError(t, err)
		w.granted(b)
		w.held(a, "b")
		w.store.Restore(backup)
		_, err = a.Read(t.Context())
		require.NoError(t, err)
		assert.False(t, a.Check())
	})
}

func TestRegress_WatchDoesNotGoBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		first := chain(w, a)
		seen, stop := watching(t, a)
		synctest.Wait()
		w.store.Restore(first)
		synctest.Wait()
		for _, r := range seen() {
			assert.EqualValues(t, 2, r.Token)
			assert.EqualValues(t, 2, r.Verdict.Token)
		}
		assert.EqualValues(t, 3, w.granted(a).Token)
		_ = stop()
	})
}

func TestPoison_NeverALockOut(t *testing.T) {
	late := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	for name, r := range map[string]lease.Record{
		"huge duration":            {Holder: "x", Token: 1, TTL: lease.Infinite},
		"negative duration":        {Holder: "x", Token: 1, TTL: -1 << 63},
		"times in the future":      {Holder: "x", Token: 1, Acquired: late, Renewed: late},
		"free, in the future":      {Token: 1, Renewed: late},
		"holder without token":     {Holder: "x"},
		"nobody with a time":       {Renewed: late, TTL: ttl},
		"my name, foreign nonce":   {Holder: "b", Token: 3, Nonce: "n", TTL: lease.Infinite, Renewed: late},
		"verdict ahead of record":  {Holder: "x", Token: 1, Verdict: &sbr.Verdict{Token: 7, Survivors: []sbr.ID{"z", "a"}}},
		"verdict without survivor": {Token: 1, Verdict: &sbr.Verdict{Token: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				b := w.lease("b")
				w.store.Restore(r)
				out := w.plain(b)
				require.NotEqual(t, sbr.Unknown, out.Kind, "%v", out)
				time.Sleep(ttl)
				granted := w.granted(b)
				assert.Greater(t, granted.Token, r.Token)
				if r.Verdict != nil {
					assert.Greater(t, granted.Token, r.Verdict.Token)
				}
				time.Sleep(2 * ttl)
				assert.True(t, b.Check())
				assert.NoError(t, b.Release(t.Context()))
			})
		})
	}
}

// A store that forgot is told again, by one conditional write, and only what it lost.
func TestRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.lease("a"), w.lease("b")
		first := chain(w, a)
		newest := w.record()
		require.NotNil(t, newest.Verdict)

		r, err := b.Restore(t.Context(), *newest.Verdict)
		require.NoError(t, err)
		require.Equal(t, newest, r, "nothing was lost")
		for name, forget := range map[string]func(){"deleted": w.store.Delete, "restored": func() { w.store.Restore(first) }} {
			forget()
			r, err = a.Read(t.Context())
			require.NoError(t, err)
			require.True(t, r.Behind, name)
			r, err = b.Restore(t.Context(), *newest.Verdict)
			require.NoError(t, err)
			require.Equal(t, newest.Verdict, r.Verdict)
			require.EqualValues(t, 2, w.record().Token)
			require.Empty(t, w.record().Holder)
			r, err = a.Read(t.Context())
			require.NoError(t, err)
			require.False(t, r.Behind, name)
		}
		other := newest.Verdict.Clone()
		other.Survivors = []sbr.ID{"c"}
		r, err = b.Restore(t.Context(), *other)
		require.NoError(t, err)
		require.Equal(t, newest.Verdict, r.Verdict, "a verdict under the same token is never replaced")
	})
}

// Of two verdicts under one token, which only a store that forgot can bring about, the one that is in the store counts.
func TestRegress_TwoVerdictsUnderOneToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.lease("a"), w.lease("b")
		first := chain(w, a)
		w.store.Restore(first)
		require.Equal(t, sbr.Granted, linear.AnswerOf(b.Acquire(t.Context(), verdict(1, "b", "b"))).Kind, "b has not seen what was lost")
		r, err := a.Read(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, r.Token)
		require.Equal(t, []sbr.ID{"b"}, r.Verdict.Survivors)
	})
}

// A running Watch notices that the store went backwards when it happens.
func TestRegress_WatchTellsThatTheStoreWentBackwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		chain(w, a)
		var last lease.Record
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = a.Watch(ctx, func(r lease.Record) { last = r })
		}()
		synctest.Wait()
		require.False(t, last.Behind)
		w.store.Delete()
		synctest.Wait()
		require.True(t, last.Behind)
		require.EqualValues(t, 2, last.Verdict.Token, "what is known stays in force")
		cancel()
		<-done
	})
}

// A verdict is not built on another verdict than the one that its writer knows, although both have one token.
func TestRegress_AVerdictOverAnotherOneOfItsBaseToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.lease("a"), w.lease("b")
		first := chain(w, a)
		w.store.Restore(first)
		require.Equal(t, sbr.Granted, linear.AnswerOf(b.Acquire(t.Context(), verdict(1, "b", "b"))).Kind)
		require.NoError(t, b.Release(t.Context()))

		p := verdict(2, "a", "a")
		p.BaseBy = "a"
		out := linear.AnswerOf(a.Acquire(t.Context(), p))
		require.Equal(t, sbr.Held, out.Kind)
		require.True(t, out.Superseded)
		p.BaseBy = "b"
		require.Equal(t, sbr.Granted, linear.AnswerOf(a.Acquire(t.Context(), p)).Kind)
	})
}
