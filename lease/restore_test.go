package lease_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func leaves(ids ...sbr.ID) func(*sbr.Verdict) bool {
	return func(v *sbr.Verdict) bool { return v.Leave(ids, nil) }
}

func TestAmend(t *testing.T) { tell(t, amendStories) }

var amendStories = map[string]func(*testing.T, *world){
	// A leave says nothing of a holder that is silent: the time after which others may take over goes on.
	"is no sign of life": func(t *testing.T, w *world) {
		v := &sbr.Verdict{Token: 1, Survivors: []sbr.ID{"a", "b"}}
		w.store.Restore(lease.Record{Holder: "x", Token: 1, TTL: ttl, Verdict: v})
		a, b := w.lease("a"), w.lease("b")
		require.Equal(t, sbr.Held, w.plain(a).Kind)
		time.Sleep(ttl - time.Second)
		_, err := b.Amend(t.Context(), leaves("b"))
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		require.Equal(t, sbr.Granted, w.plain(a).Kind)
	},
	// Leaves at the same moment are all there in the end, and a listed member writes nothing.
	"at the same moment": func(t *testing.T, w *world) {
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
	},
	// What a store has lost is written back before anything is added to it; and what is written back has the
	// leaves in it.
	"store that forgot": func(t *testing.T, w *world) {
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
	},
	// Without a verdict there is nothing beside which a leave could stand.
	"no verdict": func(t *testing.T, w *world) {
		a := w.lease("a")
		_, err := a.Amend(t.Context(), leaves("a"))
		require.NoError(t, err)
		require.Zero(t, w.store.Snapshot())
		w.granted(a)
		_, err = a.Amend(t.Context(), leaves("a"))
		require.NoError(t, err)
		require.Nil(t, w.record().Verdict)
	},
}

// What a reset makes of each kind of record.
func TestReset(t *testing.T) {
	t.Parallel()
	const top = lease.MaxToken
	verdict := func(token uint64) *sbr.Verdict { return &sbr.Verdict{Token: token, Survivors: []sbr.ID{"n1#a"}} }
	for name, c := range map[string]struct {
		record lease.Record
		forget bool
		want   lease.Record
		err    error
	}{
		"a sound record is left alone": {
			record: lease.Record{Holder: "n1#a", Token: 3, Verdict: verdict(3)},
			want:   lease.Record{Holder: "n1#a", Token: 3, Verdict: verdict(3)},
		},
		"no record":                              {},
		"a spent token becomes the verdict's":    {record: lease.Record{Holder: "x", Token: top, Verdict: verdict(3)}, want: lease.Record{Token: 3, Verdict: verdict(3)}},
		"one beyond the largest as well":         {record: lease.Record{Token: top + 9, Verdict: verdict(3)}, want: lease.Record{Token: 3, Verdict: verdict(3)}},
		"without a verdict the lease begins":     {record: lease.Record{Holder: "x", Token: top}, want: lease.Record{}},
		"a spent verdict is not dropped unasked": {record: lease.Record{Token: top, Verdict: verdict(top)}, want: lease.Record{Token: top, Verdict: verdict(top)}, err: lease.ErrVerdictSpent},
		"it is forgotten when asked":             {record: lease.Record{Token: top, Verdict: verdict(top)}, forget: true, want: lease.Record{}},
		"a token that can grow does": {
			record: lease.Record{Token: 7, Verdict: verdict(top)}, forget: true, want: lease.Record{Token: 8},
		},
		"a sound verdict is forgotten when asked": {record: lease.Record{Holder: "n1#a", Token: 3, Verdict: verdict(3)}, forget: true, want: lease.Record{Token: 4}},
		"there is nothing to forget":              {forget: true},
		"a spent token goes beyond the verdict that is forgotten": {
			record: lease.Record{Token: top, Verdict: verdict(3)}, forget: true, want: lease.Record{Token: 4},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := leasetest.NewMemory()
			store.Restore(c.record)
			before, after, err := lease.Reset(t.Context(), store.View("operator"), c.forget)
			require.ErrorIs(t, err, c.err)
			require.Equal(t, c.record.Token, before.Token)
			for _, got := range []lease.Record{after, store.Snapshot().Record} {
				require.Equal(t, c.want.Token, got.Token)
				require.Equal(t, c.want.Holder, got.Holder)
				require.Equal(t, c.want.Verdict, got.Verdict)
			}
			if changed := c.want.Token != c.record.Token; !changed {
				require.Len(t, store.History(), 1, "nothing is written")
			}
		})
	}
}

// A record that changes meanwhile is looked at again; a store that does not answer is an error, and nothing
// is claimed.
func TestReset_ConditionalWrite(t *testing.T) {
	t.Parallel()
	store := leasetest.NewMemory()
	store.Restore(lease.Record{Token: lease.MaxToken})
	view := store.View("operator")
	view.Inject(leasetest.Writes, leasetest.Conflict, 1)
	_, after, err := lease.Reset(t.Context(), view, false)
	require.NoError(t, err)
	require.Zero(t, after.Token)

	view.SetUnavailable(true)
	_, _, err = lease.Reset(t.Context(), view, false)
	require.True(t, errors.Is(err, leasetest.ErrInjected), "%v", err)
}

// chain leaves a released record with token 2, whose verdict lets a and b go on, and returns the state under
// token 1.
func chain(w *world, a *lease.Lease) (first lease.Record) {
	w.t.Helper()
	require.Equal(w.t, sbr.Granted,
		linear.AnswerOf(a.Acquire(w.t.Context(), verdict(0, "a", "a", "b", "c"))).Kind)
	require.NoError(w.t, a.Release(w.t.Context()))
	first = w.store.Snapshot().Record
	require.Equal(w.t, sbr.Granted, linear.AnswerOf(a.Acquire(w.t.Context(), verdict(1, "a", "a", "b"))).Kind)
	require.NoError(w.t, a.Release(w.t.Context()))
	return first
}

func TestRegress_AnOldRecordOfMineIsNotAGrant(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		a, b := w.lease("a"), w.lease("b")
		w.granted(a)
		backup := w.store.Snapshot().Record
		_ = a.Release(t.Context())
		_, err := a.Read(t.Context())
		require.NoError(t, err)
		w.granted(b)
		w.held(a, "b")
		w.store.Restore(backup)
		_, err = a.Read(t.Context())
		require.NoError(t, err)
		assert.False(t, a.Check())
	})
}

// A store that forgot is told again, by one conditional write, and only what it lost.
func TestRestore(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		a, b := w.lease("a"), w.lease("b")
		first := chain(w, a)
		newest := w.record()
		require.NotNil(t, newest.Verdict)

		r, err := b.Restore(t.Context(), *newest.Verdict)
		require.NoError(t, err)
		require.Equal(t, newest, r, "nothing was lost")
		for name, forget := range map[string]func(){"deleted": w.store.Delete, "restored": func() { w.store.Restore(first) }} {
			forget()
			r, err = a.Read(t.Context())
			require.NoError(t, err)
			require.True(t, r.Behind, name)
			r, err = b.Restore(t.Context(), *newest.Verdict)
			require.NoError(t, err)
			require.Equal(t, newest.Verdict, r.Verdict)
			require.EqualValues(t, 2, w.record().Token)
			require.Empty(t, w.record().Holder)
			r, err = a.Read(t.Context())
			require.NoError(t, err)
			require.False(t, r.Behind, name)
		}
		other := newest.Verdict.Clone()
		other.Survivors = []sbr.ID{"c"}
		r, err = b.Restore(t.Context(), *other)
		require.NoError(t, err)
		require.Equal(t, newest.Verdict, r.Verdict, "a verdict under the same token is never replaced")
	})
}

// A verdict is not built on another verdict than its writer knows, although both have one token.
func TestRegress_AVerdictOverAnotherOneOfItsBaseToken(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		a, b := w.lease("a"), w.lease("b")
		first := chain(w, a)
		w.store.Restore(first)
		require.Equal(t, sbr.Granted, linear.AnswerOf(b.Acquire(t.Context(), verdict(1, "b", "b"))).Kind)
		require.NoError(t, b.Release(t.Context()))
		r, err := a.Read(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, r.Token)
		require.Equal(t, []sbr.ID{"b"}, r.Verdict.Survivors,
			"of two verdicts under one token the one in the store counts")

		p := verdict(2, "a", "a")
		p.BaseBy = "a"
		out := linear.AnswerOf(a.Acquire(t.Context(), p))
		require.Equal(t, sbr.Held, out.Kind)
		require.True(t, out.Superseded)
		p.BaseBy = "b"
		require.Equal(t, sbr.Granted, linear.AnswerOf(a.Acquire(t.Context(), p)).Kind)
	})
}
