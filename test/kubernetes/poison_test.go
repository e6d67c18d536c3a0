package kubernetes_test

import (
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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

var poisonTTL = poisonSettings.HeartbeatTimeout

const (
	atTheEnd = "9999-12-31T23:59:59.000000Z"
	longAgo  = "2001-01-01T00:00:00.000000Z"
	// The server allows so much for the keys and values of all annotations of an object.
	annotationLimit = 256 << 10
)

// What the object of a lease can say, whoever wrote it, on a real API server: never a panic, never a lock-out
// for longer than the local heartbeat-timeout where the object can be read and written at all, and a line in
// the log for whatever is wrong. What can be decoded is in the tests of package lease/kubernetes, and what
// becomes of any record in those of package lease.
func TestReal_Poisoned(t *testing.T) {
	cluster := kubetest.Shared(t)
	for name, test := range map[string]func(poisonWorld){
		"times in the future":                 poisonWorld.timesInTheFuture,
		"as many transitions as there can be": poisonWorld.largestTransitions,
		"no room left while it is held":       poisonWorld.noRoomWhileHeld,
		"unreadable":                          poisonWorld.unreadable,
		"unreadable while it is held":         poisonWorld.unreadableWhileHeld,
		"the largest token":                   poisonWorld.largestToken,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newPoisonWorld(t, cluster))
		})
	}
}

func (w poisonWorld) timesInTheFuture() {
	w.edit(object{"spec": object{
		"holderIdentity": "x", "leaseDurationSeconds": 2, "renewTime": atTheEnd, "acquireTime": atTheEnd,
	}})
	b := w.party("b")
	require.Equal(w, sbr.Held, w.acquire(b, lease.Proposal{}).Kind)
	w.had(b, poisonTTL)
	w.said("future", "9999-12-31", "holder=x")
	require.Greater(w, b.Token(), uint64(0))
	time.Sleep(poisonTTL) // heartbeats go on from a time that makes sense again
	require.True(w, b.Check())
	require.Less(w, w.spec()["renewTime"], "9999")
}

func (w poisonWorld) largestTransitions() {
	w.edit(object{"spec": object{"leaseTransitions": math.MaxInt32}})
	b := w.party("b")
	require.EqualValues(w, math.MaxInt32+1, w.had(b, 0).Token)
	require.NoError(w, b.Release(w.Context()))
	require.EqualValues(w, math.MaxInt32+2, w.had(b, 0).Token, "the annotation counts on")
	require.EqualValues(w, math.MaxInt32, w.spec()["leaseTransitions"])
	require.Empty(w, w.log.All())
}

func (w poisonWorld) noRoomWhileHeld() {
	w.edit(object{"spec": object{}})
	b := w.party("b")
	w.had(b, 0)
	annotations := w.stored(w.T)["metadata"].(object)["annotations"].(object)
	ours := len(kubernetes.Annotation) + len(annotations[kubernetes.Annotation].(string))
	rest := strings.Repeat("x", annotationLimit-len("other")-ours)
	w.edit(object{"metadata": object{"annotations": object{"other": rest}}})
	for range 10 {
		time.Sleep(poisonTTL / 4)
		require.True(w, b.Check(), "a heartbeat needs no more room")
	}
	out := w.acquire(b, verdictOf(b.Token(), "a", "b"))
	require.Equal(w, sbr.Unknown, out.Kind, "%v", out)
	require.ErrorIs(w, out.Err, lease.ErrTooLarge)
	w.said(w.namespace+"/"+testName, "annotations")
	require.True(w, b.Check(), "and the lease is still held")
	require.NoError(w, b.Release(w.Context()))
}

// unreadable: what cannot be read is not read as free. It is said what is wrong, where, and how to get out of
// it; and that works.
func (w poisonWorld) unreadable() {
	w.annotate(`{"v":99,"token":{"high":1,"low":2},"holder":""}`)
	w.edit(object{"spec": object{"holderIdentity": "", "leaseTransitions": 6}})
	before := w.stored(w.T)
	b := w.party("b")
	_, err := b.Read(w.Context())
	wayOut := "annotate lease " + testName + " " + kubernetes.Annotation + "-"
	parts := []string{"99", "newer", "upgrade", w.namespace + "/" + testName, "not readable", wayOut}
	w.clear(err, parts...)
	out := w.acquire(b, lease.Proposal{})
	require.Equal(w, sbr.Unknown, out.Kind, "%v", out)
	w.clear(out.Err, parts...)
	require.Equal(w, before, w.stored(w.T), "untouched")
	w.said(parts...)
	w.annotate(nil)
	require.EqualValues(w, 7, w.had(b, 0).Token)
}

// unreadableWhileHeld: the holder cannot renew what it cannot read, and stops in time; others do not take it
// for free.
func (w poisonWorld) unreadableWhileHeld() {
	w.edit(object{"spec": object{}})
	a, b := w.party("a"), w.party("b")
	lost := w.hold(a)
	w.annotate(`{"v":99}`)
	edited := time.Now()
	w.clear(w.loss(lost), "newer", w.namespace+"/"+testName)
	require.Less(w, time.Since(edited), poisonTTL+time.Second)
	require.False(w, a.Check())
	require.Equal(w, sbr.Unknown, w.acquire(b, lease.Proposal{}).Kind)
	w.said("lease: lost", "newer")
	w.annotate(nil)
	w.had(b, poisonTTL)
}

// largestToken: the one poison that needs a hand, as no grant could be told from the one before.
func (w poisonWorld) largestToken() {
	w.annotate(`{"v":1,"token":18446744073709551615}`)
	b := w.party("b")
	out := w.acquire(b, lease.Proposal{})
	require.Equal(w, sbr.Unknown, out.Kind, "%v", out)
	require.ErrorIs(w, out.Err, lease.ErrTokenSpent)
	w.said("the token in the record cannot grow any more", "sbr lease reset")
	w.annotate(nil)
	require.EqualValues(w, 1, w.had(b, 0).Token, "no token beyond the limit was learnt")
}

// The object of a lease is deleted, deleted and made anew, or put back from a backup, on a real API server.
// For whoever has seen the newest verdict the token never goes back and the survivors never grow, and the
// lease can be had again in time. More ways in which a record goes back are in the tests of package lease.

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
		w.edit(object{"spec": object{"holderIdentity": "x", "leaseDurationSeconds": 1, "renewTime": longAgo}})
	}, "the record went backwards", time.Second},
	"deleted and made anew from a backup": {func(w poisonWorld, p past) {
		w.remove(w.T)
		w.do(w.T, http.MethodPost, w.leases(), backupOf(p.first, nil), 201)
	}, "the record went backwards", 0},
	"put back, held": {func(w poisonWorld, p past) { w.restore(p.held) }, "the record went backwards", poisonTTL},
	"without our annotation": {
		func(w poisonWorld, _ past) { w.withoutAnnotation() }, "the record went backwards", 0,
	},
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
			lost := w.hold(b)
			c.forget(w, p)
			if name == "without our annotation" {
				w.edit(object{"spec": object{"holderIdentity": "b"}}) // still its name, and nothing else of it
			}
			require.Error(t, w.loss(lost))
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

// poisonWorld is one Lease object, an administrator who does what he likes with it, and parties with least
// privilege.
type poisonWorld struct {
	realWorld
	*testing.T
	log *logtest.Log
}

func newPoisonWorld(t *testing.T, cluster *kubetest.Cluster) poisonWorld {
	return poisonWorld{newRealWorld(t, cluster), t, new(logtest.Log)}
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

func (w poisonWorld) edit(patch object) { w.Helper(); w.apply(w.T, patch) }

func (w poisonWorld) annotate(value any) {
	w.Helper()
	w.edit(object{"metadata": object{"annotations": object{kubernetes.Annotation: value}}})
}

func (w poisonWorld) withoutAnnotation() {
	w.edit(object{
		"metadata": object{"annotations": object{kubernetes.Annotation: nil}},
		"spec":     object{"leaseTransitions": 0},
	})
}

func (w poisonWorld) spec() object { return w.stored(w.T)["spec"].(object) }

// restore puts a backup in the place of what is there now.
func (w poisonWorld) restore(backup object) {
	w.Helper()
	version := w.stored(w.T)["metadata"].(object)["resourceVersion"]
	w.do(w.T, http.MethodPut, w.leases()+"/"+testName, backupOf(backup, version), 200)
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

// hold acquires; lost is told when the grant ends without its owner's doing.
func (w poisonWorld) hold(l *lease.Lease) (lost <-chan error) {
	w.Helper()
	reasons := make(chan error, 10)
	out := w.acquire(l, lease.Proposal{}).Following(func(reason error) { reasons <- reason })
	require.Equal(w, sbr.Granted, out.Kind, "%v", out)
	return reasons
}

func (w poisonWorld) loss(lost <-chan error) error {
	w.Helper()
	select {
	case reason := <-lost:
		require.ErrorIs(w, reason, lease.ErrLost)
		return reason
	case <-time.After(waitFor):
		require.FailNow(w, "the loss was not noticed")
		return nil
	}
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
			return hasAll(line, parts) && !strings.Contains(line, "\n")
		})
	}, 2*poisonTTL, 20*time.Millisecond, "no line in the log says it: wanted %q, got %q", parts, &lines)
}

func hasAll(line string, parts []string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) })
}

// clear demands an error of one line that has all the parts.
func (w poisonWorld) clear(err error, parts ...string) {
	w.Helper()
	require.Error(w, err)
	require.NotContains(w, err.Error(), "\n")
	for _, part := range parts {
		require.Contains(w, err.Error(), part)
	}
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

// remembers demands that b shows the newest verdict and no token before the last.
func (w poisonWorld) remembers(b *lease.Lease, newest *sbr.Verdict) {
	w.Helper()
	r, err := b.Read(w.Context())
	require.NoError(w, err)
	require.GreaterOrEqual(w, r.Token, uint64(3))
	require.Equal(w, newest, r.Verdict)
}
