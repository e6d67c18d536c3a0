package lease_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// A grant for ever that its owner does not know of, or has given up, is undone while the owner lives, however long the store was
// away: nobody else ever waits it out.
func TestForever_IsUndoneHoweverLongTheStoreWasAway(t *testing.T) {
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
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
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
