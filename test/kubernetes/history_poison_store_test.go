package kubernetes_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// The object of a lease is deleted, deleted and made anew, or put back from a backup, on a real API server. For whoever has seen
// the newest verdict the token never goes back and the survivors never grow, and the lease can be had again in time.

// past is what the object was like.
type past struct {
	// first is free, under token 1 with a verdict for a, b and c; held is held by a under token 2 with one for a and b.
	first, held object
}

var forgetfulObjects = map[string]struct {
	forget func(poisonWorld, past)
	line   string
	within time.Duration
}{
	"deleted": {func(w poisonWorld, _ past) { w.remove() }, "the record vanished", 0},
	"deleted and made anew, empty": {func(w poisonWorld, _ past) {
		w.remove()
		w.create(nil, object{})
	}, "the record went backwards", 0},
	"deleted and made anew by another program": {func(w poisonWorld, _ past) {
		w.remove()
		w.create(nil, object{"holderIdentity": "x", "leaseDurationSeconds": 1, "renewTime": longAgo})
	}, "the record went backwards", time.Second},
	"deleted and made anew from a backup": {func(w poisonWorld, p past) {
		w.remove()
		backup := ready(p.first)
		delete(backup["metadata"].(object), "resourceVersion")
		w.request(http.MethodPost, backup, 201)
	}, "the record went backwards", 0},
	"put back, free": {func(w poisonWorld, p past) { w.restore(w.at(p.first)) }, "the record went backwards", 0},
	"put back, held": {func(w poisonWorld, p past) { w.restore(w.at(p.held)) }, "the record went backwards", poisonTTL},
	"without our annotation": {func(w poisonWorld, _ past) {
		w.edit(object{"metadata": annotated(nil)["metadata"], "spec": object{"leaseTransitions": 0}})
	}, "the record went backwards", 0},
}

func TestReal_AStoreThatForgets(t *testing.T) {
	cluster := kubetest.Shared(t)
	for name, c := range forgetfulObjects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPoisonWorld(t, cluster)
			p, b, newest := w.chain()
			c.forget(w, p)
			for range 3 {
				w.remembers(b, newest)
			}
			out := w.acquire(b, verdictOf(1, "a", "b", "c"))
			require.Equal(t, sbr.Held, out.Kind, "what builds on a token of the past: %v", out)
			require.True(t, out.Superseded)
			require.Equal(t, newest, out.Record.Verdict)
			granted := w.had(b, c.within)
			require.EqualValues(t, 4, granted.Token, "one more than was ever seen")
			require.Equal(t, newest, granted.Verdict)
			stored, err := w.party("newcomer").Read(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, 4, stored.Token)
			require.Equal(t, newest, stored.Verdict, "and so the object has it again")
			w.said(c.line, "newest-token=3")
		})
	}
}

func TestReal_AStoreThatForgetsItsHolder(t *testing.T) {
	cluster := kubetest.Shared(t)
	for name, c := range forgetfulObjects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPoisonWorld(t, cluster)
			p, b, newest := w.chain()
			lost := make(chan error, 10)
			require.Equal(t, sbr.Granted, linear.AnswerOf(b.Acquire(t.Context(), lease.Proposal{})).Following(func(reason error) { lost <- reason }).Kind)
			c.forget(w, p)
			if name == "without our annotation" {
				w.edit(object{"spec": object{"holderIdentity": "b"}}) // still its name, and nothing else of it
			}
			select {
			case reason := <-lost:
				require.ErrorIs(t, reason, lease.ErrLost)
			case <-time.After(waitFor):
				require.Fail(t, "the loss was not noticed")
			}
			require.False(t, b.Check())
			w.remembers(b, newest)
			granted := w.had(b, c.within)
			require.Greater(t, granted.Token, uint64(4))
			require.Equal(t, newest, granted.Verdict)
			w.said("lease: lost", "reason=")
			require.Empty(t, lost, "once")
		})
	}
}

// chain makes a past of three tokens and a party b that has seen the last, with its verdict.
func (w poisonWorld) chain() (p past, b *lease.Lease, newest *sbr.Verdict) {
	w.Helper()
	a, b := w.party("a"), w.party("b")
	require.Equal(w, sbr.Granted, w.acquire(a, verdictOf(0, "a", "b", "c")).Kind)
	require.NoError(w, a.Release(w.Context()))
	p.first = w.get()
	require.Equal(w, sbr.Granted, w.acquire(a, verdictOf(1, "a", "b")).Kind)
	p.held = w.get()
	require.Equal(w, sbr.Granted, w.acquire(a, verdictOf(2, "a")).Kind)
	require.NoError(w, a.Release(w.Context()))
	r, err := b.Read(w.Context())
	require.NoError(w, err)
	require.EqualValues(w, 3, r.Token)
	require.Equal(w, []sbr.ID{"a"}, r.Verdict.Survivors)
	return p, b, r.Verdict
}

// remembers demands that b shows the newest verdict and no token before the last.
func (w poisonWorld) remembers(b *lease.Lease, newest *sbr.Verdict) {
	w.Helper()
	r, err := b.Read(w.Context())
	require.NoError(w, err)
	require.GreaterOrEqual(w, r.Token, uint64(3))
	require.Equal(w, newest, r.Verdict)
}
