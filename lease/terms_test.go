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

func TestFor_EndsWithoutHeartbeatsBeforeOthersMayTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.lease("a", believing), w.lease("b", believing)
		const d = 10 * time.Minute
		usable := lease.Settings{HeartbeatTimeout: d, OperationTimeout: timeout}.Window()
		n := requests(w.view("a"), func() {
			var lost losses
			require.Equal(t, sbr.Granted, lost.follow(linear.AnswerOf(a.Acquire(t.Context(), lease.Proposal{For: d}))).Kind)
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
	})
}

func TestFor_Infinite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.lease("a", believing), w.lease("b", believing)
		require.Equal(t, sbr.Granted, acquireFor(w, a, lease.Infinite).Kind)
		require.Equal(t, sbr.Held, acquireFor(w, b, time.Second).Kind)
		n := requests(w.view("a"), func() { time.Sleep(1000 * time.Hour) })
		assert.Zero(t, n)
		assert.True(t, a.Check())
		assert.Equal(t, sbr.Held, acquireFor(w, b, time.Second).Kind)
		assert.NoError(t, a.Release(t.Context()))
		assert.Equal(t, sbr.Granted, acquireFor(w, b, time.Second).Kind)
	})
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
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a := w.lease("a", believing)
				require.Equal(t, sbr.Granted, acquireFor(w, a, c.first).Kind)
				time.Sleep(30 * time.Second)
				require.Equal(t, sbr.Granted, acquireFor(w, a, c.second).Kind)
				if c.second == lease.Infinite {
					time.Sleep(1000 * time.Hour)
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

// The answer to a second, shorter acquire is lost. What the record says now is not known: the shorter time counts.
func TestFor_AgainWithoutAnAnswerTrustsTheShorterTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
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
	})
}

func TestFor_KeepAliveRenewsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
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
	})
}

func TestExclusive_RefusesItsOwnHolderToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, twin := w.lease("a"), w.lease("a")
		exclusive := lease.Proposal{Exclusive: true}
		require.Equal(t, sbr.Granted, linear.AnswerOf(a.Acquire(t.Context(), exclusive)).Kind)
		n := requests(w.view("a"), func() { assert.Equal(t, sbr.Held, linear.AnswerOf(a.Acquire(t.Context(), exclusive)).Kind) })
		assert.Zero(t, n, "nobody knows better")
		assert.Equal(t, sbr.Held, linear.AnswerOf(twin.Acquire(t.Context(), exclusive)).Kind, "another process under the same name")
		assert.True(t, a.Check())
	})
}

// An exclusive attempt whose answer was lost must not be locked out by its own ghost.
func TestExclusive_AdoptsItsOwnLateGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
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
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
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
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.leaseOver(limited{Faulty: w.view("a"), window: 79 * time.Second}, "a")
		w.granted(a)
		w.view("a").SetUnavailable(true)
		time.Sleep(79*time.Second - 1)
		assert.True(t, a.Check())
		time.Sleep(time.Nanosecond)
		assert.False(t, a.Check())
		assert.ErrorIs(t, acquireFor(w, a, time.Second).Err, lease.ErrRefused, "the others have no such times")
	})
}

func TestLimiter_NeverLengthensIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.leaseOver(limited{Faulty: w.view("a"), window: lease.Infinite}, "a")
		w.granted(a)
		w.view("a").SetUnavailable(true)
		time.Sleep(window)
		assert.False(t, a.Check())
	})
}

func TestLimiter_MayRefuse(t *testing.T) {
	refusal := errors.New("no such time")
	_, err := lease.New(limited{Faulty: leasetest.NewMemory().View("a"), err: refusal}, "a", defaults, lease.Options{})
	require.ErrorIs(t, err, refusal)
}
