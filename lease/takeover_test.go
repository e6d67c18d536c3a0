package lease_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// takenOver is a world in which b has taken the lease over from a, which is cut off from the store and so believes in its last
// heartbeat for as long as it may.
func takenOver(t *testing.T) (w *world, a, b *lease.Lease) {
	t.Helper()
	w = newWorld(t)
	a, b = w.lease("a"), w.lease("b")
	w.granted(a)
	w.view("a").SetUnavailable(true)
	takeOver(t, b, "a")
	return w, a, b
}

func takeOver(t *testing.T, l *lease.Lease, from ...string) {
	t.Helper()
	p := verdict(0, l.Owner(), "a", "b", "c")
	r, err := l.Read(t.Context())
	require.NoError(t, err)
	p.Base, p.TakeOver = r.Token, from
	out := linear.AnswerOf(l.Acquire(t.Context(), p))
	require.Equal(t, sbr.Granted, out.Kind, "%v", out)
	require.Equal(t, out.Record.Token, out.Record.Verdict.Token, "the verdict counts at once")
}

// onlyOne watches the parties for d: at no instant does Check answer true for two of them.
func onlyOne(t *testing.T, d time.Duration, parties ...*lease.Lease) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		var holders []string
		for _, l := range parties {
			if l.Check() {
				holders = append(holders, l.Owner())
			}
		}
		require.LessOrEqual(t, len(holders), 1, "%v at once", holders)
	}
}

// S3 across a take-over: the new holder may work once the time of the one that it has replaced is over, whatever comes in between.
func TestTakeOver_OneHolderAtATime(t *testing.T) {
	for name, then := range map[string]func(t *testing.T, w *world, b, c *lease.Lease){
		"nothing":         func(*testing.T, *world, *lease.Lease, *lease.Lease) {},
		"another verdict": func(t *testing.T, _ *world, b, _ *lease.Lease) { takeOver(t, b) },
		"released at once": func(t *testing.T, _ *world, b, _ *lease.Lease) {
			unreleased(t, b.Release(t.Context()))
		},
		"released, and acquired again": func(t *testing.T, w *world, b, _ *lease.Lease) {
			_ = b.Release(t.Context())
			require.Equal(t, sbr.Held, w.plain(b).Kind)
			takeOver(t, b)
		},
		"taken over once more": func(t *testing.T, _ *world, _, c *lease.Lease) { takeOver(t, c, "b") },
		"taken over once more, and released": func(t *testing.T, _ *world, _, c *lease.Lease) {
			takeOver(t, c, "b")
			_ = c.Release(t.Context())
		},
		"the new holder is cut off":   func(_ *testing.T, w *world, _, _ *lease.Lease) { w.view("b").SetUnavailable(true) },
		"the new holder has crashed":  func(_ *testing.T, _ *world, b, _ *lease.Lease) { b.Close() },
		"the former holder sees it":   func(_ *testing.T, w *world, _, _ *lease.Lease) { w.view("a").Heal() },
		"all grants are for a minute": func(t *testing.T, _ *world, b, _ *lease.Lease) { requireForRefused(t, b) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, a, b := takenOver(t)
				c := w.lease("c")
				require.True(t, a.Check())
				require.False(t, b.Check())
				then(t, w, b, c)
				go func() { _ = linear.AnswerOf(c.AcquireWait(t.Context(), lease.Proposal{})) }()
				onlyOne(t, 3*ttl, a, b, c)
				require.False(t, a.Check())
				require.True(t, b.Check() || c.Check(), "somebody has it in the end")
			})
		})
	}
}

// A shorter time would let others take the lease while the former holder still believes in it.
func requireForRefused(t *testing.T, b *lease.Lease) {
	t.Helper()
	out := linear.AnswerOf(b.Acquire(t.Context(), lease.Proposal{TakeOver: []string{"a"}, For: time.Minute}))
	require.ErrorIs(t, out.Err, lease.ErrRefused)
	out = linear.AnswerOf(b.Acquire(t.Context(), lease.Proposal{For: time.Minute}))
	require.Equal(t, sbr.Held, out.Kind)
}

// The answer to the write is lost, and the grant is found by its nonce.
func TestTakeOver_OneHolderAtATimeAfterALostAnswer(t *testing.T) {
	for name, find := range map[string]func(t *testing.T, w *world, b *lease.Lease){
		"a plain acquire": func(t *testing.T, w *world, b *lease.Lease) { require.NotEqual(t, sbr.Granted, w.plain(b).Kind) },
		"the verdict again": func(t *testing.T, _ *world, b *lease.Lease) {
			takeOver(t, b, "a")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a, b := w.lease("a"), w.lease("b")
				w.granted(a)
				w.view("a").SetUnavailable(true)
				w.view("b").CommitLate(1, timeout+time.Second)
				time.AfterFunc(time.Second, func() { w.view("b").SetUnavailable(true) })
				p := verdict(1, "b", "a", "b")
				p.TakeOver = []string{"a"}
				require.Equal(t, sbr.Unknown, linear.AnswerOf(b.Acquire(t.Context(), p)).Kind)
				time.Sleep(2 * time.Second)
				require.Equal(t, "b", w.record().Holder)
				w.view("b").Heal()
				find(t, w, b)
				require.True(t, a.Check())
				onlyOne(t, 2*ttl, a, b)
			})
		})
	}
}

func TestTakeOver_CountsAtOnceWhereNobodyElseBelieves(t *testing.T) {
	for name, c := range map[string]struct {
		before func(w *world, a *lease.Lease)
		within time.Duration
	}{
		"the former holder has released": {func(w *world, a *lease.Lease) { _ = a.Release(w.t.Context()) }, 0},
		"it has been silent for its whole time": {func(w *world, _ *lease.Lease) {
			w.view("a").SetUnavailable(true)
			time.Sleep(ttl)
		}, 0},
		"it has been silent for a while": {func(w *world, _ *lease.Lease) {
			w.view("a").SetUnavailable(true)
			time.Sleep(ttl / 4)
		}, ttl - ttl/4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a, b := w.lease("a"), w.lease("b")
				w.granted(a)
				_, err := b.Read(t.Context())
				require.NoError(t, err)
				c.before(w, a)
				takeOver(t, b, "a")
				if c.within > 0 {
					time.Sleep(c.within - time.Millisecond)
					require.False(t, b.Check())
					require.Zero(t, b.Token())
					_, ok := b.ValidUntil()
					require.False(t, ok)
					time.Sleep(time.Millisecond)
				}
				require.True(t, b.Check())
				require.EqualValues(t, 2, b.Token())
			})
		})
	}
}

// Until then the new holder is asked and waited for like any other, without a request too many.
func TestTakeOver_AcquireWaitsUntilItMayWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, b := takenOver(t)
		began := time.Now()
		out := w.plain(b)
		require.Equal(t, sbr.Held, out.Kind)
		require.Equal(t, ttl, out.RetryAfter)
		n := requests(w.view("b"), func() { out = linear.AnswerOf(b.AcquireWait(t.Context(), lease.Proposal{})) })
		require.Equal(t, sbr.Granted, out.Kind)
		require.Equal(t, ttl, time.Since(began))
		assert.LessOrEqual(t, n.Writes, int(ttl/interval))
		assert.LessOrEqual(t, n.Reads, int(ttl/interval))
	})
}

// What is released before the former holder can know is freed when its time is over, and by then nobody minds a late acquire.
func TestTakeOver_IsReleasedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, b := takenOver(t)
		time.Sleep(40 * time.Second)
		err := b.Release(t.Context())
		unreleased(t, err)
		require.ErrorContains(t, err, "may not know it yet")
		require.NotContains(t, err.Error(), "\n")
		time.Sleep(ttl - 40*time.Second - time.Second)
		require.Equal(t, "b", w.record().Holder)
		time.Sleep(interval + time.Second)
		require.Empty(t, w.record().Holder)
		require.NotNil(t, w.record().Verdict)
		w.granted(w.lease("c"))
	})
}
