package lease_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func leaves(ids ...sbr.ID) func(*sbr.Verdict) bool {
	return func(v *sbr.Verdict) bool { return v.Leave(ids, nil) }
}

// A leave stands beside the verdict: the holder goes on holding the lease, and token and decision stay.
func TestAmend_BesideAHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.lease("a"), w.lease("b")
		require.Equal(t, sbr.Granted, linear.AnswerOf(a.Acquire(t.Context(), verdict(0, "a", "a", "b"))).Kind)
		before := w.record()
		_, err := b.Amend(t.Context(), leaves("b"))
		require.NoError(t, err)
		time.Sleep(3 * interval)
		require.True(t, a.Check(), "its heartbeats go on")
		after := w.record()
		require.Equal(t, []sbr.ID{"b"}, after.Verdict.Left)
		require.Equal(t, before.Token, after.Token)
		require.Equal(t, before.Holder, after.Holder)
		require.Equal(t, before.Verdict.Survivors, after.Verdict.Survivors)

		require.NoError(t, a.Release(t.Context()))
		require.Equal(t, []sbr.ID{"b"}, w.record().Verdict.Left, "a release keeps it")
		w.granted(b)
		require.Equal(t, []sbr.ID{"b"}, w.record().Verdict.Left, "as does a plain lock")
		require.Equal(t, sbr.Granted, linear.AnswerOf(b.Acquire(t.Context(), verdict(2, "b", "b"))).Kind)
		require.Empty(t, w.record().Verdict.Left, "a new verdict begins anew")
	})
}

// A leave says nothing of a holder that is silent: the time after which others may take over goes on.
func TestAmend_IsNoSignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		v := &sbr.Verdict{Token: 1, Survivors: []sbr.ID{"a", "b"}}
		w.store.Restore(lease.Record{Holder: "x", Token: 1, TTL: ttl, Verdict: v})
		a, b := w.lease("a"), w.lease("b")
		require.Equal(t, sbr.Held, w.plain(a).Kind)
		time.Sleep(ttl - time.Second)
		_, err := b.Amend(t.Context(), leaves("b"))
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		require.Equal(t, sbr.Granted, w.plain(a).Kind)
	})
}

// Leaves at the same moment are all there in the end, and who is listed already writes nothing.
func TestAmend_AtTheSameMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		names := []string{"a", "b", "c"}
		w.store.Restore(lease.Record{Token: 1, Verdict: &sbr.Verdict{Token: 1, Survivors: []sbr.ID{"a", "b", "c"}}})
		var all sync.WaitGroup
		for _, name := range names {
			l := w.lease(name)
			all.Go(func() {
				_, err := l.Amend(t.Context(), leaves(sbr.ID(name)))
				require.NoError(t, err)
			})
		}
		all.Wait()
		require.ElementsMatch(t, []sbr.ID{"a", "b", "c"}, w.record().Verdict.Left)
		before := w.store.Snapshot().Version
		_, err := w.lease("d").Amend(t.Context(), leaves("a", "c"))
		require.NoError(t, err)
		require.Equal(t, before, w.store.Snapshot().Version)
	})
}

// What a store has lost is written back before anything is added to it; and what is written back has the
// leaves in it.
func TestAmend_StoreThatForgot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.lease("a"), w.lease("b")
		chain(w, a)
		newest, err := b.Amend(t.Context(), leaves("b"))
		require.NoError(t, err)
		w.store.Delete()
		_, err = b.Amend(t.Context(), leaves("a"))
		require.ErrorContains(t, err, "holds less")
		require.Nil(t, w.record().Verdict)
		r, err := b.Read(t.Context())
		require.NoError(t, err)
		require.True(t, r.Behind)
		require.Equal(t, []sbr.ID{"b"}, r.Verdict.Left)
		_, err = b.Restore(t.Context(), *newest.Verdict)
		require.NoError(t, err)
		require.Equal(t, []sbr.ID{"b"}, w.record().Verdict.Left)
	})
}

// Without a verdict there is nothing beside which a leave could stand.
func TestAmend_NoVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		_, err := a.Amend(t.Context(), leaves("a"))
		require.NoError(t, err)
		require.Zero(t, w.store.Snapshot())
		w.granted(a)
		_, err = a.Amend(t.Context(), leaves("a"))
		require.NoError(t, err)
		require.Nil(t, w.record().Verdict)
	})
}
