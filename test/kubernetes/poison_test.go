package kubernetes_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/kubefake"
	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/internal/logtest"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

var poisonSettings = lease.Settings{
	HeartbeatTimeout: 3 * time.Second, HeartbeatInterval: 300 * time.Millisecond, OperationTimeout: time.Second,
}

const longAgo = "2001-01-01T00:00:00.000000Z"

// The object of a lease is deleted, deleted and made anew, or put back from a backup, on a real API server.
// For a client with the newest verdict the token never goes back and the survivors never grow, and the lease
// can be had again in time. More ways in which a record goes back are in the tests of package lease.

// past is what the object was like.
type past struct {
	// first is free, under token 1 with a verdict for a, b and c; held is held by a under token 2 with one
	// for a and b.
	first, held object
}

var forgetfulObjects = map[string]struct {
	forget func(poisonWorld, past)
	line   string
	within time.Duration
}{
	"deleted": {func(w poisonWorld, _ past) { w.remove(w.T) }, "the record vanished", 0},
	"deleted and made anew by another program": {func(w poisonWorld, _ past) {
		w.remove(w.T)
		w.apply(w.T, object{"spec": object{"holderIdentity": "x", "leaseDurationSeconds": 1, "renewTime": longAgo}})
	}, "the record went backwards", time.Second},
	"deleted and made anew from a backup": {func(w poisonWorld, p past) {
		w.remove(w.T)
		w.do(w.T, http.MethodPost, w.leases(), backupOf(p.first, nil), 201)
	}, "the record went backwards", 0},
	"put back, held": {func(w poisonWorld, p past) {
		version := kubefake.Meta(w.stored(w.T))["resourceVersion"]
		w.do(w.T, http.MethodPut, w.leases()+"/"+testName, backupOf(p.held, version), 200)
	}, "the record went backwards", poisonSettings.HeartbeatTimeout},
	"without our annotation": {func(w poisonWorld, _ past) {
		w.apply(w.T, object{
			"metadata": object{"annotations": object{kubernetes.Annotation: nil}}, "spec": object{"leaseTransitions": 0},
		})
	}, "the record went backwards", 0},
}

func TestReal_AStoreThatForgets(t *testing.T) {
	cluster := kubetest.Shared(t)
	for name, c := range forgetfulObjects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := poisonWorld{newRealWorld(t, cluster), t, new(logtest.Log)}
			p, b, newest := w.chain()
			c.forget(w, p)
			for range 3 {
				r, err := b.Read(t.Context())
				require.NoError(t, err)
				require.GreaterOrEqual(t, r.Token, uint64(3), "no token before the last")
				require.Equal(t, newest, r.Verdict)
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

// poisonWorld is one Lease object, an administrator with all rights on it, and parties with least privilege.
type poisonWorld struct {
	realWorld
	*testing.T
	log *logtest.Log
}

// party opens a lease of owner.
func (w poisonWorld) party(owner string) *lease.Lease {
	w.Helper()
	cfg := w.config(w.kubeconfig)
	cfg.RequestTimeout = poisonSettings.OperationTimeout
	cfg.Logger = w.log.Warnings()
	store := openStore(w.T, cfg)
	l, err := lease.New(store, owner, poisonSettings, lease.Options{Logger: w.log.Warnings()})
	require.NoError(w, err)
	w.Cleanup(l.Close)
	return l
}

// backupOf is an object without what only the server may say.
func backupOf(l object, version any) object {
	metadata := l["metadata"].(object)
	out := object{"name": testName, "annotations": metadata["annotations"], "labels": metadata["labels"]}
	if version != nil {
		out["resourceVersion"] = version
	}
	return object{"apiVersion": l["apiVersion"], "kind": l["kind"], "spec": l["spec"], "metadata": out}
}

func (w poisonWorld) acquire(l *lease.Lease, p lease.Proposal) linear.Answer {
	return linear.AnswerOf(l.Acquire(w.Context(), p))
}

// had demands that the lease can be had within d (and what a busy machine adds), and returns the grant.
func (w poisonWorld) had(l *lease.Lease, d time.Duration) lease.Record {
	w.Helper()
	began := time.Now()
	var out linear.Answer
	require.Eventually(w, func() bool {
		out = w.acquire(l, lease.Proposal{})
		return out.Kind == sbr.Granted
	}, d+waitFor, 20*time.Millisecond, "locked out: %v", &out)
	w.Logf("had after %v", time.Since(began).Round(time.Millisecond))
	require.Less(w, time.Since(began), d+3*time.Second, "locked out for longer than the heartbeat-timeout")
	require.True(w, l.Check())
	return out.Record
}

// verdictOf is a proposal by b, after the record with the token base.
func verdictOf(base uint64, survivors ...sbr.ID) lease.Proposal {
	v := &sbr.Verdict{Survivors: survivors, Down: []sbr.ID{"z"}, DecidedBy: "b", Reason: "majority"}
	return lease.Proposal{Base: base, Verdict: v}
}

// said demands a warning of one line that has all the parts.
func (w poisonWorld) said(parts ...string) {
	w.Helper()
	var lines []string
	require.Eventually(w, func() bool {
		lines = w.log.All()
		return slices.ContainsFunc(lines, func(line string) bool {
			lacks := func(part string) bool { return !strings.Contains(line, part) }
			return !slices.ContainsFunc(parts, lacks) && !strings.Contains(line, "\n")
		})
	}, 2*poisonSettings.HeartbeatTimeout, 20*time.Millisecond, "no line in the log says it: wanted %q, got %q",
		parts, &lines)
}

// chain makes a past of three tokens and a party b that has seen the last, with its verdict.
func (w poisonWorld) chain() (p past, b *lease.Lease, newest *sbr.Verdict) {
	w.Helper()
	a, b := w.party("a"), w.party("b")
	require.Equal(w, sbr.Granted, w.acquire(a, verdictOf(0, "a", "b", "c")).Kind)
	require.NoError(w, a.Release(w.Context()))
	p.first = w.stored(w.T)
	require.Equal(w, sbr.Granted, w.acquire(a, verdictOf(1, "a", "b")).Kind)
	p.held = w.stored(w.T)
	require.Equal(w, sbr.Granted, w.acquire(a, verdictOf(2, "a")).Kind)
	require.NoError(w, a.Release(w.Context()))
	r, err := b.Read(w.Context())
	require.NoError(w, err)
	require.EqualValues(w, 3, r.Token)
	require.Equal(w, []sbr.ID{"a"}, r.Verdict.Survivors)
	return p, b, r.Verdict
}
