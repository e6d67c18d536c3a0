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

func TestRelease(t *testing.T) { tell(t, releaseStories) }

var releaseStories = map[string]func(*testing.T, *world){
	"frees and keeps token and verdict": func(t *testing.T, w *world) {
		a := w.lease("a")
		require.Equal(t, sbr.Granted, linear.AnswerOf(a.Acquire(t.Context(), verdict(0, "a", "a"))).Kind)
		before := w.record()
		assert.NoError(t, a.Release(t.Context()))
		assert.False(t, a.Check())
		after := w.record()
		assert.Empty(t, after.Holder)
		after.Holder, after.Renewed = before.Holder, before.Renewed
		assert.Equal(t, before, after)
		time.Sleep(10 * ttl)
		assert.Empty(t, w.record().Holder, "no heartbeat comes after it")
	},
	"flag is cleared before the write": func(t *testing.T, w *world) {
		a := w.lease("a")
		w.granted(a)
		w.store.OnCommit(func(r lease.Record) {
			assert.Empty(t, r.Holder)
			assert.False(t, a.Check())
		})
		require.NoError(t, a.Release(t.Context()))
	},
	"unknown can be repeated": func(t *testing.T, w *world) {
		a := w.lease("a")
		g := w.grantOf(a)
		v := w.view("a")
		v.SetUnavailable(true)
		start := time.Now()
		err := g.Release(t.Context())
		assert.Equal(t, timeout, time.Since(start))
		unreleased(t, err)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorIs(t, err, leasetest.ErrInjected)
		assert.NotContains(t, err.Error(), "\n")
		assert.False(t, a.Check(), "whatever became of the write")
		assert.ErrorIs(t, g.Err(), lease.ErrReleased)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		unreleased(t, a.Release(ctx))
		v.Heal()
		assert.NoError(t, g.Release(t.Context()))
		assert.ErrorIs(t, a.Release(t.Context()), lease.ErrNotHeld)
	},
	"refused is unknown at once": func(t *testing.T, w *world) {
		a := w.lease("a")
		w.granted(a)
		w.view("a").Inject(leasetest.Writes, leasetest.Refuse, 1)
		err := a.Release(t.Context())
		unreleased(t, err)
		assert.ErrorIs(t, err, lease.ErrRefused)
	},
	"after somebody took over": func(t *testing.T, w *world) {
		a := w.lease("a")
		w.granted(a)
		taken := lease.Record{Holder: "x", Token: 9, Nonce: "n"}
		w.store.Restore(taken)
		err := a.Release(t.Context())
		assert.ErrorIs(t, err, lease.ErrNotHeld)
		assert.ErrorIs(t, err, lease.ErrLost)
		assert.Equal(t, taken, w.record(), "left alone")
	},
	"does not wait for a hanging heartbeat": func(t *testing.T, w *world) {
		a := w.lease("a")
		w.granted(a)
		w.view("a").Inject(leasetest.All, leasetest.LoseResponse, 1)
		time.Sleep(interval + time.Millisecond)
		start := time.Now()
		assert.NoError(t, a.Release(t.Context()))
		assert.Zero(t, time.Since(start))
		assert.Empty(t, w.record().Holder)
	},
	"of an acquire under way": func(t *testing.T, w *world) {
		a := w.lease("a")
		w.view("a").SetDelay(time.Second)
		acquired := make(chan linear.Answer, 1)
		go func() { acquired <- linear.AnswerOf(a.Acquire(t.Context(), lease.Proposal{})) }()
		time.Sleep(time.Millisecond)
		assert.NoError(t, a.Release(t.Context()))
		assert.Equal(t, sbr.Granted, (<-acquired).Kind, "it was, before it was released")
		assert.Empty(t, w.record().Holder)
		assert.False(t, a.Check())
	},
	// The answer to a read that was sent before the lease was acquired says nothing about its release.
	"is not misled by an old read": func(t *testing.T, w *world) {
		a := w.lease("a")
		v := w.view("a")
		v.SetDelay(1800 * time.Millisecond)
		read := make(chan error, 1)
		go func() { _, err := a.Read(t.Context()); read <- err }()
		time.Sleep(time.Second) // the store has answered: free
		v.Heal()
		w.granted(a)
		v.Inject(leasetest.Writes, leasetest.LoseRequest, 1)
		assert.NoError(t, a.Release(t.Context())) // hangs until the read is answered, and longer
		require.NoError(t, <-read)
		assert.Empty(t, w.record().Holder)
	},
	// A heartbeat is confirmed while Release waits for its turn. The record must be freed all the same.
	"during a heartbeat that succeeds": func(t *testing.T, w *world) {
		a := w.leaseOver(stubborn{w.view("a"), time.Second}, "a")
		w.granted(a)
		time.Sleep(interval)
		synctest.Wait()
		assert.NoError(t, a.Release(t.Context()))
		assert.Empty(t, w.record().Holder)
	},
}

func TestRelease_UnderFaults(t *testing.T) {
	faults := map[string]func(*leasetest.Faulty){
		"conflict":       func(v *leasetest.Faulty) { v.Inject(leasetest.Writes, leasetest.Conflict, 2) },
		"response lost":  func(v *leasetest.Faulty) { v.Inject(leasetest.Writes, leasetest.LoseResponse, 1) },
		"request lost":   func(v *leasetest.Faulty) { v.Inject(leasetest.Writes, leasetest.LoseRequest, 1) },
		"late commit":    func(v *leasetest.Faulty) { v.CommitLate(1, 2100*time.Millisecond) },
		"down for a bit": func(v *leasetest.Faulty) { v.SetUnavailable(true); time.AfterFunc(timeout/2, v.Heal) },
	}
	for name, inject := range faults {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, w *world) {
				a := w.lease("a")
				w.granted(a)
				inject(w.view("a"))
				assert.NoError(t, a.Release(t.Context()))
				assert.Empty(t, w.record().Holder)
				w.view("a").Heal()
				n := requests(w.view("a"), func() { time.Sleep(2 * ttl) })
				assert.Zero(t, n)
			})
		})
	}
}

// stubborn is a store whose writes are not to be stopped: the server has them already.
type stubborn struct {
	lease.Store
	delay time.Duration
}

func (s stubborn) Write(_ context.Context, r lease.Record, prev lease.Version) (lease.Version, error) {
	time.Sleep(s.delay)
	return s.Store.Write(context.Background(), r, prev)
}

func TestForceRelease_FreesWhatAnotherHolds(t *testing.T) {
	for name, holder := range map[string]string{"by name": "a", "whoever": ""} {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, w *world) {
				a, admin := w.lease("a"), w.lease("admin")
				var lost losses
				require.Equal(t, sbr.Granted,
					lost.follow(linear.AnswerOf(a.Acquire(t.Context(), verdict(0, "a", "a")))).Kind)
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

func TestForceRelease(t *testing.T) { tell(t, forceReleaseStories) }

var forceReleaseStories = map[string]func(*testing.T, *world){
	"refuses the wrong name": func(t *testing.T, w *world) {
		a, admin := w.lease("a"), w.lease("admin")
		w.granted(a)
		was, _, err := admin.ForceRelease(t.Context(), "b")
		assert.ErrorIs(t, err, lease.ErrNotHeld)
		assert.ErrorIs(t, err, lease.ErrOtherHolder)
		assert.Equal(t, "a", was.Holder)
		assert.True(t, a.Check())
	},
	"of a free lease does nothing": func(t *testing.T, w *world) {
		n := requests(w.view("admin"), func() {
			_, _, err := w.lease("admin").ForceRelease(t.Context(), "")
			assert.ErrorIs(t, err, lease.ErrNotHeld)
			assert.NotErrorIs(t, err, lease.ErrOtherHolder)
		})
		assert.Zero(t, n.Writes)
	},
	"a lost answer is settled": func(t *testing.T, w *world) {
		w.granted(w.lease("a"))
		w.view("admin").Inject(leasetest.Writes, leasetest.LoseResponse, 1)
		w.force(w.lease("admin"), "a")
		assert.Empty(t, w.record().Holder)
	},
	// The holder's heartbeats go on: each moves the version, and the release is tried again.
	"beats a holder that is alive": func(t *testing.T, w *world) {
		w.granted(w.lease("a"))
		w.view("admin").Inject(leasetest.Writes, leasetest.Conflict, 3)
		w.force(w.lease("admin"), "a")
	},
	// What came after the release is not touched: an answer was lost, and the same owner has acquired again
	// meanwhile.
	"ends one grant not the next": func(t *testing.T, w *world) {
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
	},
	"unknown is not released": func(t *testing.T, w *world) {
		w.granted(w.lease("a"))
		w.view("admin").Inject(leasetest.All, leasetest.LoseRequest, leasetest.Always)
		_, _, err := w.lease("admin").ForceRelease(t.Context(), "a")
		unreleased(t, err)
	},
	"of ones own lease": func(t *testing.T, w *world) {
		a := w.lease("a")
		w.granted(a)
		w.force(a, "a")
		assert.False(t, a.Check())
		w.granted(a)
	},
	"says whether the holder was silent for too long": func(t *testing.T, w *world) {
		a, admin := w.lease("a"), w.lease("admin")
		w.granted(a)
		_, err := admin.Read(t.Context())
		require.NoError(t, err)
		a.Close()
		time.Sleep(ttl)
		_, expired, err := admin.ForceRelease(t.Context(), "a")
		assert.NoError(t, err)
		assert.True(t, expired)
	},
	// What nobody knows of one's own lease is settled later, as after a Release.
	"of ones own lease is tidied up": func(t *testing.T, w *world) {
		a := w.lease("a")
		w.granted(a)
		w.view("a").SetUnavailable(true)
		_, _, err := a.ForceRelease(t.Context(), "a")
		unreleased(t, err)
		require.False(t, a.Check())
		w.view("a").Heal()
		time.Sleep(ttl)
		require.Empty(t, w.record().Holder)
	},
}

// A grant for ever that its owner does not know of, or has given up, is undone while the owner lives, however
// long the store was away: nobody else ever waits it out.
func TestForever_IsUndoneHoweverLongTheStoreWasAway(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a month of virtual time: run without -short")
	}
	forever := lease.Proposal{For: lease.Infinite}
	for name, doubt := range map[string]func(w *world, a *lease.Lease, v *leasetest.Faulty){
		"a release in doubt": func(w *world, a *lease.Lease, v *leasetest.Faulty) {
			require.Equal(w.t, sbr.Granted, linear.AnswerOf(a.Acquire(w.t.Context(), forever)).Kind)
			v.SetUnavailable(true)
			unreleased(w.t, a.Release(w.t.Context()))
		},
		"a lost answer": func(w *world, a *lease.Lease, v *leasetest.Faulty) {
			v.CommitLate(1, 0) // the write takes place, its answer is lost, and no other request is answered
			time.AfterFunc(time.Second, func() { v.SetUnavailable(true) })
			require.Equal(w.t, sbr.Unknown, linear.AnswerOf(a.Acquire(w.t.Context(), forever)).Kind)
		},
		"the last of more attempts than are remembered": func(w *world, a *lease.Lease, v *leasetest.Faulty) {
			v.Inject(leasetest.Writes, leasetest.LoseRequest, leasetest.Always)
			for range 300 {
				require.Equal(w.t, sbr.Unknown, linear.AnswerOf(a.Acquire(w.t.Context(), forever)).Kind)
			}
			v.Heal()
			v.CommitLate(leasetest.Always, time.Minute)
			require.Equal(w.t, sbr.Unknown, linear.AnswerOf(a.Acquire(w.t.Context(), forever)).Kind)
			v.Heal()
			v.SetUnavailable(true)
			time.Sleep(time.Minute)
		},
	} {
		for _, outage := range []time.Duration{30 * time.Minute, 61 * time.Minute, 30 * day} {
			t.Run(name+", "+outage.String(), func(t *testing.T) {
				story(t, func(t *testing.T, w *world) {
					a := w.lease("a", func(s *lease.Settings, _ *lease.Options) { s.HeartbeatTimeout = lease.Infinite })
					v := w.view("a")
					doubt(w, a, v)
					require.False(t, a.Check())
					require.Equal(t, "a", w.record().Holder)
					time.Sleep(outage)
					v.Heal()
					time.Sleep(time.Minute)
					require.Empty(t, w.record().Holder)
					n := requests(v, func() { time.Sleep(day) })
					require.Zero(t, n, "nothing is left to do")
				})
			})
		}
	}
}
