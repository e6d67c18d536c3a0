package lease_test

import (
	"context"
	"sync"
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

// together calls Acquire n times at once and returns the outcomes.
func together(ctx context.Context, l *lease.Lease, n int) []linear.Answer {
	out := make([]linear.Answer, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { out[i] = linear.AnswerOf(l.Acquire(ctx, lease.Proposal{})) })
	}
	all.Wait()
	return out
}

// Whoever asks while an attempt is under way may know more than it: all of them wait for one attempt that begins after they asked.
func TestJoined_ManyAcquiresAreTwoAttempts(t *testing.T) {
	for _, c := range []struct {
		name     string
		holder   string
		kind     sbr.Outcome
		requests leasetest.Counters
	}{
		{"of a free lease", "", sbr.Granted, leasetest.Counters{Reads: 1, Writes: 1}},
		{"of a held lease", "x", sbr.Held, leasetest.Counters{Reads: 3}}, // the second attempt trusts no state that it has not read
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.store.Restore(lease.Record{Holder: c.holder, Token: 1, Nonce: "n"})
				a := w.lease("a")
				w.view("a").SetDelay(10 * time.Millisecond)
				n := requests(w.view("a"), func() {
					for _, out := range together(t.Context(), a, 100) {
						assert.Equal(t, c.kind, out.Kind, "%v", out)
					}
				})
				assert.LessOrEqual(t, n.Reads, c.requests.Reads)
				assert.Equal(t, c.requests.Writes, n.Writes)
			})
		})
	}
}

func TestJoined_AnAnswerIsNeverOlderThanTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.store.Restore(lease.Record{Holder: "x", Token: 1, Nonce: "n"})
		a := w.lease("a")
		w.view("a").SetDelay(100 * time.Millisecond)
		first := make(chan linear.Answer, 1)
		go func() { first <- linear.AnswerOf(a.Acquire(t.Context(), lease.Proposal{})) }()
		time.Sleep(90 * time.Millisecond) // the store has read: held
		w.store.Restore(lease.Record{Token: 1, Nonce: "n"})
		assert.Equal(t, sbr.Granted, w.plain(a).Kind)
		assert.NotEqual(t, sbr.Unknown, (<-first).Kind)
	})
}

func TestJoined_NoneGoesUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		w.view("a").SetUnavailable(true)
		start := time.Now()
		for _, out := range together(t.Context(), a, 50) {
			assert.Equal(t, sbr.Unknown, out.Kind)
			assert.Error(t, out.Err)
		}
		assert.LessOrEqual(t, time.Since(start), timeout)
	})
}

func TestJoined_WhoeverLeadsMayGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		w.view("a").SetDelay(time.Second)
		busy := make(chan linear.Answer, 1)
		go func() { busy <- linear.AnswerOf(a.Acquire(t.Context(), verdict(9, "a", "a"))) }() // superseded, after a second
		synctest.Wait()
		hasty, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		led := make(chan linear.Answer, 1)
		go func() { led <- linear.AnswerOf(a.Acquire(hasty, lease.Proposal{})) }()
		synctest.Wait()
		assert.Equal(t, sbr.Granted, w.plain(a).Kind, "joined, and went on alone")
		assert.Equal(t, sbr.Unknown, (<-led).Kind)
		assert.Equal(t, sbr.Held, (<-busy).Kind)
	})
}

func TestJoined_AllEndTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		w.view("a").SetDelay(time.Millisecond)
		all := together(t.Context(), a, 10)
		w.store.Delete()
		for _, out := range all {
			require.Equal(t, sbr.Granted, out.Kind)
			assert.Equal(t, all[0].Grant.Done(), out.Grant.Done())
			<-out.Grant.Done()
		}
	})
}
