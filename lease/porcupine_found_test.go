package lease_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

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

// ErrRefused says that nothing was written. After a write whose fate is not known that would be a lie.
func TestFound_RefusedAfterAWriteInDoubtIsNotCertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
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
	})
}

// A holder that asks for a verdict, and misses the answer to the write, has lost nothing.
func TestFound_AVerdictWhoseAnswerIsLostIsNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, lost := holder(w)
		w.view("a").Inject(leasetest.All, leasetest.LoseResponse, 1)
		out := lost.follow(linear.AnswerOf(a.Acquire(t.Context(), verdict(1, "a", "a"))))
		require.Equal(t, sbr.Granted, out.Kind, "%v", out)
		synctest.Wait()
		require.Empty(t, lost.all())
		require.EqualValues(t, 2, a.Token())
	})
}

// A release whose answer is lost, while another takes the lease at once, was a release all the same.
func TestFound_ReleasedAndTakenBeforeTheAnswer(t *testing.T) {
	for name, held := range map[string]bool{"a lease that was held": true, "a grant that came late": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
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

// A release that waits for the lease's own tidying up, which then does its work, was a release all the same.
func TestFound_ReleasedByTheTidyingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
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
	})
}
