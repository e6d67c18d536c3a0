package lease_test

import (
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

// believing believes any time that a record says: for leases that are acquired for a time of one's own.
func believing(s *lease.Settings, _ *lease.Options) { s.HeartbeatTimeout = lease.Infinite }

func acquireFor(w *world, l *lease.Lease, d time.Duration) linear.Answer {
	return linear.AnswerOf(l.Acquire(w.t.Context(), lease.Proposal{For: d}))
}

func TestFor(t *testing.T) { tell(t, forStories) }

var forStories = map[string]func(*testing.T, *world){
	"ends without heartbeats before others may take": func(t *testing.T, w *world) {
		a, b := w.lease("a", believing), w.lease("b", believing)
		const d = 10 * time.Minute
		usable := lease.Settings{HeartbeatTimeout: d, OperationTimeout: timeout}.Window()
		n := requests(w.view("a"), func() {
			var lost losses
			require.Equal(t, sbr.Granted,
				lost.follow(linear.AnswerOf(a.Acquire(t.Context(), lease.Proposal{For: d}))).Kind)
			require.Equal(t, sbr.Held, acquireFor(w, b, d).Kind)
			time.Sleep(usable - 1)
			assert.True(t, a.Check())
			time.Sleep(time.Nanosecond)
			assert.False(t, a.Check())
			synctest.Wait()
			require.Len(t, lost.all(), 1)
			assert.ErrorContains(t, lost.all()[0], "its time is over")
		})
		assert.Equal(t, 1, n.Writes)
		time.Sleep(d - usable - 1)
		require.Equal(t, sbr.Held, acquireFor(w, b, d).Kind)
		time.Sleep(time.Nanosecond)
		require.Equal(t, sbr.Granted, acquireFor(w, b, d).Kind, "free when it expires now")
	},
	// The answer to a second, shorter acquire is lost. What the record says now is not known: the shorter time
	// counts.
	"again without an answer trusts the shorter time": func(t *testing.T, w *world) {
		a, b := w.lease("a", believing), w.lease("b", believing)
		require.Equal(t, sbr.Granted, acquireFor(w, a, lease.Infinite).Kind)
		require.Equal(t, sbr.Held, acquireFor(w, b, time.Minute).Kind)
		w.view("a").Inject(leasetest.All, leasetest.LoseResponse, leasetest.Always)
		require.Equal(t, sbr.Unknown, acquireFor(w, a, time.Minute).Kind)
		assert.True(t, a.Check())
		require.Equal(t, sbr.Held, acquireFor(w, b, time.Minute).Kind)
		for range 60 {
			time.Sleep(time.Second)
			if acquireFor(w, b, time.Minute).Kind == sbr.Granted {
				break
			}
		}
		require.True(t, b.Check())
		assert.False(t, a.Check())
	},
	"keep alive renews it": func(t *testing.T, w *world) {
		a, b := w.lease("a", believing), w.lease("b", believing)
		out := linear.AnswerOf(a.Acquire(t.Context(), lease.Proposal{For: time.Minute, KeepAlive: true}))
		require.Equal(t, sbr.Granted, out.Kind)
		n := requests(w.view("a"), func() { time.Sleep(time.Hour - 1) })
		assert.Equal(t, 599, n.Writes, "one each tenth of the time")
		assert.True(t, a.Check())
		assert.Equal(t, time.Minute, w.record().TTL)
		a.Close()
		require.Equal(t, sbr.Held, acquireFor(w, b, time.Minute).Kind)
		time.Sleep(time.Minute)
		require.Equal(t, sbr.Granted, acquireFor(w, b, time.Minute).Kind)
	},
}

func TestFor_AgainReplacesTheTime(t *testing.T) {
	const long, short = time.Hour, time.Minute
	for name, c := range map[string]struct{ first, second time.Duration }{
		"shorter":               {long, short},
		"longer":                {short, long},
		"for ever":              {short, lease.Infinite},
		"no longer for ever":    {lease.Infinite, short},
		"the same, from now on": {long, long},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, w *world) {
				a := w.lease("a", believing)
				require.Equal(t, sbr.Granted, acquireFor(w, a, c.first).Kind)
				time.Sleep(30 * time.Second)
				require.Equal(t, sbr.Granted, acquireFor(w, a, c.second).Kind)
				if c.second == lease.Infinite {
					assert.Zero(t, requests(w.view("a"), func() { time.Sleep(1000 * time.Hour) }))
					assert.True(t, a.Check())
					return
				}
				usable := lease.Settings{HeartbeatTimeout: c.second, OperationTimeout: timeout}.Window()
				time.Sleep(usable - 1)
				assert.True(t, a.Check())
				time.Sleep(time.Nanosecond)
				assert.False(t, a.Check())
			})
		})
	}
}

func TestExclusive_RefusesItsOwnHolderToo(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		a, twin := w.lease("a"), w.lease("a")
		exclusive := lease.Proposal{Exclusive: true}
		require.Equal(t, sbr.Granted, linear.AnswerOf(a.Acquire(t.Context(), exclusive)).Kind)
		n := requests(w.view("a"),
			func() { assert.Equal(t, sbr.Held, linear.AnswerOf(a.Acquire(t.Context(), exclusive)).Kind) })
		assert.Zero(t, n, "nobody knows better")
		assert.Equal(t, sbr.Held, linear.AnswerOf(twin.Acquire(t.Context(), exclusive)).Kind,
			"another process under the same name")
		assert.True(t, a.Check())
	})
}

// An exclusive attempt whose answer was lost must not be locked out by its own ghost.
func TestExclusive_AdoptsItsOwnLateGrant(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		a := w.lease("a")
		v := w.view("a")
		_, err := a.Read(t.Context())
		require.NoError(t, err)
		v.Inject(leasetest.All, leasetest.LoseResponse, leasetest.Always)
		require.Equal(t, sbr.Unknown, linear.AnswerOf(a.Acquire(t.Context(), lease.Proposal{Exclusive: true})).Kind)
		v.Heal()
		require.Equal(t, "a", w.record().Holder)
		assert.Equal(t, sbr.Granted, linear.AnswerOf(a.Acquire(t.Context(), lease.Proposal{Exclusive: true})).Kind)
	})
}

func TestOverride_ReplacesAnyHolder(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		a, admin := w.lease("a"), w.lease("admin")
		w.granted(a)
		out := linear.AnswerOf(admin.Acquire(t.Context(), lease.Proposal{Override: true}))
		require.Equal(t, sbr.Granted, out.Kind)
		assert.EqualValues(t, 2, admin.Token(), "what the former holder still sends is fenced off")
		time.Sleep(interval)
		synctest.Wait()
		assert.False(t, a.Check())
	})
}

// limited is a store whose other users expire holders early.
type limited struct {
	*leasetest.Faulty
	window time.Duration
	err    error
}

func (l limited) Window(lease.Settings) (time.Duration, error) { return l.window, l.err }

func TestLimiter_ShortensTheTrust(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{79 * time.Second: 79 * time.Second,
		lease.Infinite: window} {
		story(t, func(t *testing.T, w *world) {
			a := w.leaseOver(limited{Faulty: w.view("a"), window: limit}, "a")
			w.granted(a)
			w.view("a").SetUnavailable(true)
			time.Sleep(want - 1)
			assert.True(t, a.Check())
			time.Sleep(time.Nanosecond)
			assert.False(t, a.Check())
			if limit < lease.Infinite {
				assert.ErrorIs(t, acquireFor(w, a, time.Second).Err, lease.ErrRefused, "the others have no such times")
			}
		})
	}
}

func TestLimiter_MayRefuse(t *testing.T) {
	refusal := errors.New("no such time")
	_, err := lease.New(limited{Faulty: leasetest.NewMemory().View("a"), err: refusal}, "a", defaults,
		lease.Options{})
	require.ErrorIs(t, err, refusal)
}

// takenOver is a world in which b has taken the lease over from a, which is cut off from the store and so
// believes in its last heartbeat for as long as it may.
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

// S3 across a take-over: the new holder may work once the time of the replaced holder is over, whatever comes
// in between.
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
			story(t, func(t *testing.T, w *world) {
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
			story(t, func(t *testing.T, w *world) {
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

// What is released before the former holder can know is freed when its time is over, and by then nobody minds
// a late acquire.
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
