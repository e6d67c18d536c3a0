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
	story(t, func(t *testing.T, w *world) {
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
		assert.Equal(t, leasetest.Counters{Writes: 1}, n,
			"the condition of the write proves that nothing has changed")
		assert.EqualValues(t, 2, b.Token())
	})
}

func TestExpiry(t *testing.T) { tell(t, expiryStories) }

var expiryStories = map[string]func(*testing.T, *world){
	"different settings are said once": func(t *testing.T, w *world) {
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
	},
	"foreign edits are no sign of life": func(t *testing.T, w *world) {
		crashed(w)
		b := w.lease("b")
		w.held(b, "a")
		for range 4 {
			time.Sleep(ttl / 4)
			w.store.Touch() // somebody edits a label
		}
		w.granted(b)
	},
	"a watch times the holder too": func(t *testing.T, w *world) {
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
	},
}

func TestExpiry_InfiniteNeverExpires(t *testing.T) {
	infinite := func(s *lease.Settings, _ *lease.Options) { s.HeartbeatTimeout = lease.Infinite }
	story(t, func(t *testing.T, w *world) {
		a, b := w.lease("a", infinite), w.lease("b", infinite)
		assert.Zero(t, w.granted(a).TTL)
		w.view("a").SetUnavailable(true)
		time.Sleep(10 * time.Hour)
		until, ok := a.ValidUntil()
		assert.True(t, ok && until.IsZero() && a.Check(), "no deadline")
		assert.Zero(t, w.held(b, "a").RetryAfter)
		w.view("a").Heal()
		w.store.Restore(lease.Record{Token: 1})
		time.Sleep(interval)
		synctest.Wait()
		assert.False(t, a.Check(), "an operator can free it, and the heartbeat notices")
		w.granted(b)
	})
}

// A paused process: no timer of its own has fired, and yet Check says no before anything else happens.
func TestExpiry_PausedHolder(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		clock := newClock(0, 1)
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
		assert.EqualValues(t, 2, w.granted(a).Token, "acquired anew, and what it has sent before is fenced off")
	})
}

// ValidUntil is the moment at which Check turns false, moved by each heartbeat.
func TestValidUntil(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		a := w.lease("a")
		_, ok := a.ValidUntil()
		require.False(t, ok)
		w.granted(a)
		until, ok := a.ValidUntil()
		require.True(t, ok)
		require.Equal(t, window, time.Until(until))
		time.Sleep(interval)
		synctest.Wait()
		until, ok = a.ValidUntil()
		require.True(t, ok)
		require.Equal(t, window, time.Until(until), "a heartbeat was sent now")

		w.view("a").SetUnavailable(true)
		time.Sleep(time.Until(until) - time.Nanosecond)
		same, ok := a.ValidUntil()
		require.True(t, ok)
		require.Equal(t, until, same)
		require.True(t, a.Check())
		time.Sleep(time.Nanosecond)
		_, ok = a.ValidUntil()
		require.False(t, ok)
		require.False(t, a.Check())
	})
}

// An operation gets the time-out that the configuration promises, however many requests it takes: a store
// whose round trips fit into it is no store that is away.
func TestSlowStore(t *testing.T) {
	for _, roundTrip := range []time.Duration{time.Second, 2 * time.Second, 2300 * time.Millisecond} {
		t.Run(roundTrip.String(), func(t *testing.T) {
			story(t, func(t *testing.T, w *world) {
				w.view("a").SetDelay(roundTrip)
				a := w.lease("a")
				began := time.Now()
				w.granted(a)
				require.Equal(t, 2*roundTrip, time.Since(began), "a read and a write")
				require.NoError(t, a.Release(t.Context()))
				w.granted(a)
				time.Sleep(10 * time.Minute)
				require.True(t, a.Check(), "heartbeats")
			})
		})
	}
}

// One request alone may take nearly all of it.
func TestSlowStore_OneRequest(t *testing.T) {
	for roundTrip, ok := range map[time.Duration]bool{4 * time.Second: true, 6 * time.Second: false} {
		story(t, func(t *testing.T, w *world) {
			w.view("a").SetDelay(roundTrip)
			_, err := w.lease("a").Read(t.Context())
			require.Equal(t, ok, err == nil, "%v: %v", roundTrip, err)
		})
	}
}
