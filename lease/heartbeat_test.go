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

// holder returns a lease that is held, and its losses.
func holder(w *world) (*lease.Lease, *losses) {
	w.t.Helper()
	a, lost := w.lease("a"), &losses{}
	require.Equal(w.t, sbr.Granted,
		lost.follow(linear.AnswerOf(a.Acquire(w.t.Context(), lease.Proposal{}))).Kind)
	return a, lost
}

func TestHeartbeat(t *testing.T) { tell(t, heartbeatStories) }

var heartbeatStories = map[string]func(*testing.T, *world){
	"retries inside the window": func(t *testing.T, w *world) {
		a, lost := holder(w)
		w.view("a").SetUnavailable(true)
		n := requests(w.view("a"), func() {
			time.Sleep(window - 3*time.Second) // the store is back in the nick of time
			require.True(t, a.Check())
		})
		assert.Greater(t, n.Writes, 8)
		assert.Less(t, n.Writes, 16)
		w.view("a").Heal()
		time.Sleep(3 * time.Second)
		assert.True(t, a.Check())
		assert.Empty(t, lost.all())
	},
	"counts from when it was sent": func(t *testing.T, w *world) {
		a, _ := holder(w)
		v := w.view("a")
		v.SetDelay(1500 * time.Millisecond)
		time.Sleep(interval + 1500*time.Millisecond)
		synctest.Wait()
		v.SetUnavailable(true)
		time.Sleep(window - 1500*time.Millisecond - time.Nanosecond)
		assert.True(t, a.Check(), "the heartbeat was confirmed")
		time.Sleep(time.Nanosecond)
		assert.False(t, a.Check(), "but it is as old as its request")
	},
	"foreign edits are no loss": func(t *testing.T, w *world) {
		a, lost := holder(w)
		for range 20 {
			w.store.Touch()
			time.Sleep(interval)
		}
		assert.True(t, a.Check())
		assert.Empty(t, lost.all())
	},
}

func TestHeartbeat_OneFailureDoesNotLoseTheLease(t *testing.T) {
	faults := map[string]func(*leasetest.Faulty){
		"requests lost":  func(v *leasetest.Faulty) { v.Inject(leasetest.All, leasetest.LoseRequest, 3) },
		"responses lost": func(v *leasetest.Faulty) { v.Inject(leasetest.All, leasetest.LoseResponse, 3) },
		"conflicts":      func(v *leasetest.Faulty) { v.Inject(leasetest.Writes, leasetest.Conflict, 3) },
		"late commits":   func(v *leasetest.Faulty) { v.CommitLate(3, 7*time.Second) },
		"refused":        func(v *leasetest.Faulty) { v.Inject(leasetest.Writes, leasetest.Refuse, 3) },
		"slow":           func(v *leasetest.Faulty) { v.SetDelay(time.Second) },
		"down":           func(v *leasetest.Faulty) { v.SetUnavailable(true); time.AfterFunc(window/2, v.Heal) },
	}
	for name, inject := range faults {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, w *world) {
				a, lost := holder(w)
				inject(w.view("a"))
				for range 3 * int(ttl/time.Second) {
					time.Sleep(time.Second)
					require.True(t, a.Check())
				}
				assert.Empty(t, lost.all())
				assert.EqualValues(t, 1, w.record().Token)
			})
		})
	}
}

func TestHeartbeat_LostAtTheDeadline(t *testing.T) {
	faults := map[string]func(*leasetest.Faulty){
		"down":     func(v *leasetest.Faulty) { v.SetUnavailable(true) },
		"silent":   func(v *leasetest.Faulty) { v.Inject(leasetest.All, leasetest.LoseRequest, leasetest.Always) },
		"deaf":     func(v *leasetest.Faulty) { v.Inject(leasetest.All, leasetest.LoseResponse, leasetest.Always) },
		"refused":  func(v *leasetest.Faulty) { v.Inject(leasetest.Writes, leasetest.Refuse, leasetest.Always) },
		"conflict": func(v *leasetest.Faulty) { v.Inject(leasetest.Writes, leasetest.Conflict, leasetest.Always) },
		"stuck":    func(v *leasetest.Faulty) { v.CommitLate(leasetest.Always, time.Hour) },
	}
	for name, inject := range faults {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, w *world) {
				start := time.Now()
				a, lost := holder(w)
				inject(w.view("a"))
				time.Sleep(window - time.Nanosecond)
				assert.True(t, a.Check())
				time.Sleep(time.Nanosecond)
				assert.False(t, a.Check())
				synctest.Wait()
				require.Len(t, lost.all(), 1)
				assert.ErrorIs(t, lost.all()[0], lease.ErrLost)
				assert.NotContains(t, lost.all()[0].Error(), "\n")
				assert.Equal(t, window, lost.at[0].Sub(start))
				w.view("a").Heal()
				time.Sleep(10 * ttl)
				assert.Len(t, lost.all(), 1, "exactly once")
				assert.False(t, a.Check())
			})
		})
	}
}

func TestHeartbeat_LostAtOnceWhenTheRecordSaysSo(t *testing.T) {
	changes := map[string]struct {
		change func(*leasetest.Memory)
		says   string
	}{
		"taken":   {func(s *leasetest.Memory) { s.Restore(lease.Record{Holder: "x", Token: 9, Nonce: "n"}) }, `held by "x" under token 9`},
		"freed":   {func(s *leasetest.Memory) { r := s.Snapshot().Record; r.Holder = ""; s.Restore(r) }, "somebody freed"},
		"deleted": {(*leasetest.Memory).Delete, "deleted"},
		"displaced": {
			func(s *leasetest.Memory) { s.Restore(lease.Record{Holder: "a", Token: 9, Nonce: "n"}) },
			"another life of the same owner",
		},
		"restored": {func(s *leasetest.Memory) { s.Restore(lease.Record{Holder: "a", Nonce: "old"}) }, "went back"},
	}
	for name, c := range changes {
		for how, within := range map[string]time.Duration{"": interval, ", while it is watched": 0} {
			t.Run(name+how, func(t *testing.T) {
				story(t, func(t *testing.T, w *world) {
					a, lost := holder(w)
					if within == 0 {
						watching(t, a)
						time.Sleep(time.Second)
					}
					start := time.Now()
					c.change(w.store)
					time.Sleep(within)
					synctest.Wait()
					assert.False(t, a.Check())
					require.Len(t, lost.all(), 1)
					assert.LessOrEqual(t, lost.at[0].Sub(start), within)
					assert.ErrorContains(t, lost.all()[0], c.says)
					time.Sleep(ttl)
					assert.Len(t, lost.all(), 1)
				})
			})
		}
	}
}

func TestClose_StopsEverything(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		a, lost := holder(w)
		w.view("a").Inject(leasetest.All, leasetest.LoseRequest, leasetest.Always)
		time.Sleep(interval + time.Second) // a heartbeat is under way
		a.Close()
		a.Close()
		assert.False(t, a.Check())
		n := requests(w.view("a"), func() { time.Sleep(2 * ttl) })
		assert.Zero(t, n)
		assert.Empty(t, lost.all(), "the caller knows")
		assert.Equal(t, "a", w.record().Holder, "not released")
		err := a.Release(t.Context())
		assert.ErrorIs(t, err, lease.ErrNotHeld)
		assert.ErrorIs(t, err, lease.ErrClosed)
	})
}

func TestLease_IdleSendsNothing(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		a, b := w.lease("a"), w.lease("b")
		w.granted(a)
		w.held(b, "a")
		_ = a.Release(t.Context())
		for _, v := range []string{"a", "b"} {
			assert.Zero(t, requests(w.view(v), func() { time.Sleep(24 * time.Hour) }))
		}
	})
}

// slowStore takes its time, whatever the context says.
type slowStore struct{ *leasetest.Faulty }

func (s slowStore) Write(ctx context.Context, r lease.Record, prev lease.Version) (lease.Version, error) {
	time.Sleep(time.Second)
	return s.Faulty.Write(ctx, r, prev)
}

func TestClose_WaitsForWhatIsUnderWay(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		a := w.leaseOver(slowStore{w.view("a")}, "a")
		w.granted(a)
		time.Sleep(interval + 500*time.Millisecond) // half a second into the first heartbeat
		start := time.Now()
		a.Close()
		assert.Equal(t, 500*time.Millisecond, time.Since(start))
	})
}
