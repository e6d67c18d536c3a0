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

// crashed leaves a record held by "a", whose process is gone.
func crashed(w *world) {
	a := w.lease("a")
	w.granted(a)
	a.Close()
}

func TestExpiry_ByObservationOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		crashed(w)
		b := w.lease("b")
		time.Sleep(10 * ttl)
		out := w.held(b, "a")
		assert.Equal(t, ttl, out.RetryAfter, "however old: b sees it for the first time")
		time.Sleep(ttl - time.Nanosecond)
		out = w.held(b, "a")
		assert.Equal(t, time.Nanosecond, out.RetryAfter)
		time.Sleep(time.Nanosecond)
		n := requests(w.view("b"), func() { w.granted(b) })
		assert.Equal(t, leasetest.Counters{Writes: 1}, n, "the condition of the write proves that nothing has changed")
		assert.EqualValues(t, 2, b.Token())
	})
}

func TestExpiry_HeartbeatsKeepAHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.lease("a"), w.lease("b")
		w.granted(a)
		for range 50 {
			w.held(b, "a")
			time.Sleep(ttl / 3)
			require.True(t, a.Check())
		}
	})
}

func TestExpiry_RecordedTimesDecideNothing(t *testing.T) {
	for name, skew := range map[string]time.Duration{"behind": -24 * time.Hour, "ahead": 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				crashed(w)
				clock := &driftingClock{begin: time.Now(), skew: skew, rate: 1}
				b := w.lease("b", func(_ *lease.Settings, o *lease.Options) { o.Clock = clock })
				w.held(b, "a")
				time.Sleep(ttl - time.Second)
				w.held(b, "a")
				time.Sleep(time.Second)
				w.granted(b)
			})
		})
	}
}

func TestExpiry_TheShorterOfBothTimesCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := w.lease("b")
		for recorded, want := range map[time.Duration]time.Duration{
			0: ttl, -time.Hour: ttl, lease.Infinite: ttl, 10 * 365 * 24 * time.Hour: ttl, time.Minute: time.Minute,
		} {
			w.store.Restore(lease.Record{Holder: "x", Token: b.Token() + 100, Nonce: recorded.String(), TTL: recorded})
			assert.Equal(t, want, w.held(b, "x").RetryAfter, "recorded %v", recorded)
			time.Sleep(want)
			w.granted(b)
			_ = b.Release(t.Context())
		}
	})
}

func TestExpiry_DifferentSettingsAreSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		with := func(timeout time.Duration) func(*lease.Settings, *lease.Options) {
			return func(s *lease.Settings, _ *lease.Options) { s.HeartbeatTimeout = timeout }
		}
		a, b, c := w.lease("a", with(2*ttl)), w.lease("b"), w.lease("c", with(3*ttl))
		w.granted(a)
		for range 5 {
			w.held(b, "a")
			w.held(c, "a")
			time.Sleep(interval)
		}
		require.Len(t, w.logs.All(), 1, "%v", w.logs.All())
		assert.Contains(t, w.logs.All()[0], "recorded=4m0s heartbeat-timeout=2m0s")
	})
}

func TestExpiry_InfiniteNeverExpires(t *testing.T) {
	infinite := func(s *lease.Settings, _ *lease.Options) { s.HeartbeatTimeout = lease.Infinite }
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.lease("a", infinite), w.lease("b", infinite)
		assert.Zero(t, w.granted(a).TTL)
		w.view("a").SetUnavailable(true)
		time.Sleep(10 * time.Hour)
		assert.True(t, a.Check(), "no deadline")
		assert.Zero(t, w.held(b, "a").RetryAfter)
		w.view("a").Heal()
		w.store.Restore(lease.Record{Token: 1})
		time.Sleep(interval)
		synctest.Wait()
		assert.False(t, a.Check(), "an operator can free it, and the heartbeat notices")
		w.granted(b)
	})
}

func TestExpiry_ForeignEditsAreNoSignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		crashed(w)
		b := w.lease("b")
		w.held(b, "a")
		for range 4 {
			time.Sleep(ttl / 4)
			w.store.Touch() // somebody edits a label
		}
		w.granted(b)
	})
}

func TestExpiry_AWatchTimesTheHolderToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := w.lease("b")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = b.Watch(ctx, func(lease.Record) {}) }()
		a := w.lease("a")
		w.granted(a)
		a.Close()
		time.Sleep(ttl)
		n := requests(w.view("b"), func() { w.granted(b) })
		assert.Equal(t, leasetest.Counters{Writes: 1}, n)
	})
}

// The holder's clock may run slower than the observer's by the stated bound.
func TestExpiry_ClockRates(t *testing.T) {
	for name, rates := range map[string][2]float64{"slow holder": {0.9, 1}, "fast observer": {1, 1.1}, "fast holder": {1.1, 1}, "both": {0.95, 1.05}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				with := func(rate float64, skew time.Duration) func(*lease.Settings, *lease.Options) {
					clock := &driftingClock{begin: time.Now(), rate: rate, skew: skew}
					return func(_ *lease.Settings, o *lease.Options) { o.Clock = clock }
				}
				a, b := w.lease("a", with(rates[0], -24*time.Hour)), w.lease("b", with(rates[1], 24*time.Hour))
				var lost losses
				require.Equal(t, sbr.Granted, lost.follow(linear.AnswerOf(a.Acquire(t.Context(), lease.Proposal{}))).Kind)
				w.held(b, "a")
				w.view("a").SetUnavailable(true)
				for !b.Check() {
					time.Sleep(time.Second)
					_, _ = b.Acquire(t.Context(), lease.Proposal{})
					require.False(t, a.Check() && b.Check())
				}
				assert.Len(t, lost.all(), 1, "told before anybody else could take over")
			})
		})
	}
}

// A paused process: no timer of its own has fired, and yet Check says no before anything else happens.
func TestExpiry_PausedHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		clock := &jumpingClock{}
		a := w.lease("a", func(_ *lease.Settings, o *lease.Options) { o.Clock = clock })
		var lost losses
		require.Equal(t, sbr.Granted, lost.follow(linear.AnswerOf(a.Acquire(t.Context(), lease.Proposal{}))).Kind)
		clock.jump(window - time.Nanosecond)
		assert.True(t, a.Check())
		clock.jump(time.Nanosecond)
		assert.False(t, a.Check())
		assert.Zero(t, a.Token())
		assert.ErrorIs(t, a.Release(t.Context()), lease.ErrNotHeld, "there is nothing to release any more")
		synctest.Wait()
		require.Len(t, lost.all(), 1)
		assert.ErrorIs(t, lost.all()[0], lease.ErrLost)
	})
}

func TestExpiry_PausedHolderAcquiresAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		clock := &jumpingClock{}
		a := w.lease("a", func(_ *lease.Settings, o *lease.Options) { o.Clock = clock })
		var lost losses
		require.Equal(t, sbr.Granted, lost.follow(linear.AnswerOf(a.Acquire(t.Context(), lease.Proposal{}))).Kind)
		clock.jump(ttl)
		r := w.granted(a)
		synctest.Wait()
		assert.Len(t, lost.all(), 1, "the old tenure was lost, whatever came after")
		assert.EqualValues(t, 2, r.Token, "and what it has sent is fenced off")
	})
}
