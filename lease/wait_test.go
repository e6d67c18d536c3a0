package lease_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func waiting(ctx context.Context, l *lease.Lease, p lease.Proposal) <-chan linear.Answer {
	out := make(chan linear.Answer, 1)
	go func() { out <- linear.AnswerOf(l.AcquireWait(ctx, p)) }()
	return out
}

func TestAcquireWait(t *testing.T) { tell(t, acquireWaitStories) }

var acquireWaitStories = map[string]func(*testing.T, *world){
	"is granted when the holder releases": func(t *testing.T, w *world) {
		a, b := w.lease("a"), w.lease("b")
		w.granted(a)
		out := waiting(t.Context(), b, lease.Proposal{})
		time.Sleep(10 * ttl)
		_ = a.Release(t.Context())
		freed := time.Now()
		assert.Equal(t, sbr.Granted, (<-out).Kind)
		assert.Zero(t, time.Since(freed))
	},
	"takes over from a silent holder on time": func(t *testing.T, w *world) {
		a, b := w.lease("a"), w.lease("b")
		w.granted(a)
		out := waiting(t.Context(), b, lease.Proposal{})
		time.Sleep(interval + time.Second)
		a.Close() // it crashed; its last heartbeat was a second ago
		assert.Equal(t, sbr.Granted, (<-out).Kind)
	},
	"outlives an outage": func(t *testing.T, w *world) {
		a := w.lease("a")
		w.view("a").SetUnavailable(true)
		out := waiting(t.Context(), a, lease.Proposal{})
		time.Sleep(time.Hour)
		w.view("a").Heal()
		back := time.Now()
		assert.Equal(t, sbr.Granted, (<-out).Kind)
		assert.LessOrEqual(t, time.Since(back), interval)
	},
	"ends with its lease": func(t *testing.T, w *world) {
		w.granted(w.lease("a"))
		b := w.lease("b")
		out := waiting(t.Context(), b, lease.Proposal{})
		time.Sleep(interval / 2)
		closed := time.Now()
		b.Close()
		assert.ErrorIs(t, (<-out).Err, lease.ErrClosed)
		assert.Zero(t, time.Since(closed))
	},
	"ends with its context": func(t *testing.T, w *world) {
		w.granted(w.lease("a"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		out := linear.AnswerOf(w.lease("b").AcquireWait(ctx, lease.Proposal{}))
		assert.Equal(t, sbr.Held, out.Kind)
		assert.Equal(t, "a", out.Record.Holder)
		assert.ErrorIs(t, out.Err, context.DeadlineExceeded)
		assert.Equal(t, time.Minute, time.Since(start))
	},
	// One watch and no polling: what a wait of an hour costs.
	"costs almost nothing": func(t *testing.T, w *world) {
		w.granted(w.lease("a"))
		b := w.lease("b")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		n := requests(w.view("b"), func() { _, _ = b.AcquireWait(ctx, lease.Proposal{}) })
		assert.Less(t, n.Reads, 100, "one each 30 to 60 s, beside the watch")
		assert.Zero(t, n.Writes)
	},
}

// A verdict upon a token that is gone can never be written.
func TestAcquireWait_DoesNotWaitForWhatCannotCome(t *testing.T) {
	for name, c := range map[string]struct {
		proposal lease.Proposal
		want     error
	}{
		"superseded":                  {verdict(7, "b", "b"), lease.ErrHeld},
		"a time beyond the others'":   {lease.Proposal{For: ttl + 1}, lease.ErrRefused},
		"a negative time":             {lease.Proposal{For: -1}, lease.ErrRefused},
		"heartbeats without any time": {lease.Proposal{KeepAlive: true}, lease.ErrRefused},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, err := newWorld(t).lease("b").AcquireWait(t.Context(), c.proposal)
				assert.ErrorIs(t, err, c.want)
			})
		})
	}
}
