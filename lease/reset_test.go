package lease_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

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
			record: lease.Record{Holder: "n1#a", Token: 3, Verdict: verdict(3)}, want: lease.Record{Holder: "n1#a", Token: 3, Verdict: verdict(3)},
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

// A record that changes meanwhile is looked at again; a store that does not answer is an error, and nothing is claimed.
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

// After a reset the lease can be had again.
func TestReset_ThenGranted(t *testing.T) {
	t.Parallel()
	store := leasetest.NewMemory()
	store.Restore(lease.Record{Token: lease.MaxToken, Verdict: &sbr.Verdict{Token: 3}})
	acquire := func() linear.Answer {
		l, err := lease.New(store.View("n1"), "n1#b", lease.DefaultSettings(), lease.Options{})
		require.NoError(t, err)
		defer l.Close()
		return linear.AnswerOf(l.Acquire(t.Context(), lease.Proposal{}))
	}
	require.ErrorIs(t, acquire().Err, lease.ErrTokenSpent)
	_, _, err := lease.Reset(t.Context(), store.View("operator"), false)
	require.NoError(t, err)
	out := acquire()
	require.Equal(t, sbr.Granted, out.Kind, "%v", out)
	require.Equal(t, uint64(4), out.Record.Token)
}
