package kubernetes_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// What the object of a lease can say, whoever wrote it, on a real API server: never a panic, never a lock-out for longer than
// the local heartbeat-timeout where the object can be read and written at all, and a line in the log for whatever is wrong.
// What a record can say once it was read is in the tests of package lease.
func TestReal_Poisoned(t *testing.T) {
	cluster := kubetest.Shared(t)
	for name, test := range poisonedObjects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newPoisonWorld(t, cluster))
		})
	}
}

const (
	atTheEnd = "9999-12-31T23:59:59.000000Z"
	longAgo  = "2001-01-01T00:00:00.000000Z"
	// The server allows so much for the keys and values of all annotations of an object.
	annotationLimit = 256 << 10
)

var poisonTTL = poisonSettings.HeartbeatTimeout

var poisonedObjects = map[string]func(poisonWorld){
	"huge duration": func(w poisonWorld) {
		w.create(nil, object{"holderIdentity": "x", "leaseDurationSeconds": math.MaxInt32, "renewTime": longAgo})
		b := w.party("b")
		out := w.acquire(b, lease.Proposal{})
		require.Equal(w, sbr.Held, out.Kind, "%v", out)
		require.LessOrEqual(w, out.RetryAfter, poisonTTL)
		w.said("the holder's heartbeat-timeout is longer than mine", "holder=x")
		require.EqualValues(w, 1, w.had(b, poisonTTL).Token)
	},
	"times in the future": func(w poisonWorld) {
		w.create(nil, object{"holderIdentity": "x", "leaseDurationSeconds": 2, "renewTime": atTheEnd, "acquireTime": atTheEnd})
		b := w.party("b")
		require.Equal(w, sbr.Held, w.acquire(b, lease.Proposal{}).Kind)
		w.had(b, poisonTTL)
		w.said("future", "9999-12-31", "holder=x")
		require.Greater(w, b.Token(), uint64(0))
		time.Sleep(poisonTTL) // heartbeats go on from a time that makes sense again
		require.True(w, b.Check())
		require.Less(w, w.spec()["renewTime"], "9999")
	},
	"free, with times": func(w poisonWorld) {
		w.create(nil, object{"holderIdentity": "", "leaseDurationSeconds": 30, "renewTime": longAgo, "acquireTime": longAgo})
		w.had(w.party("b"), 0)
		require.Empty(w, w.log.All(), "as after a release: nothing is wrong")
	},
	"free, with times in the future": func(w poisonWorld) {
		w.create(nil, object{"renewTime": atTheEnd, "acquireTime": atTheEnd})
		w.had(w.party("b"), 0)
		w.said("future", "9999-12-31")
	},
	"a holder without annotation": func(w poisonWorld) {
		w.create(nil, object{"holderIdentity": "x"})
		b := w.party("b")
		require.Equal(w, sbr.Held, w.acquire(b, lease.Proposal{}).Kind, "nobody may take it at once")
		w.had(b, poisonTTL)
		w.said("the holder's heartbeat-timeout is longer than mine", "holder=x")
	},
	"a holder that says so little": func(w poisonWorld) { // another elector: client-go's sets a duration
		w.create(nil, object{"holderIdentity": "x", "leaseDurationSeconds": 1})
		b := w.party("b")
		require.Equal(w, sbr.Held, w.acquire(b, lease.Proposal{}).Kind)
		w.had(b, time.Second)
		require.Empty(w, w.log.All())
	},
	"as many transitions as there can be": func(w poisonWorld) {
		w.create(nil, object{"leaseTransitions": math.MaxInt32})
		b := w.party("b")
		require.EqualValues(w, math.MaxInt32+1, w.had(b, 0).Token)
		require.NoError(w, b.Release(w.Context()))
		require.EqualValues(w, math.MaxInt32+2, w.had(b, 0).Token, "the annotation counts on")
		require.EqualValues(w, math.MaxInt32, w.spec()["leaseTransitions"])
		require.Empty(w, w.log.All())
	},
	"things of others": func(w poisonWorld) {
		w.create(object{
			"labels":      object{"team": "a", "example.com/x": "y"},
			"annotations": object{"note": "keep", "example.com/large": strings.Repeat("x", 50<<10)},
			"finalizers":  []any{"example.com/hold"},
		}, object{"holderIdentity": "", "unheardOf": object{"a": 1}})
		defer w.edit(object{"metadata": object{"finalizers": []any{}}})
		b := w.party("b")
		w.had(b, 0)
		require.Equal(w, sbr.Granted, w.acquire(b, verdictOf(b.Token(), "a", "b")).Kind)
		time.Sleep(2 * poisonSettings.HeartbeatInterval)
		require.NoError(w, b.Release(w.Context()))
		metadata := w.get()["metadata"].(object)
		require.Equal(w, object{"team": "a", "example.com/x": "y"}, metadata["labels"])
		require.Equal(w, "keep", w.annotations()["note"])
		require.Len(w, w.annotations()["example.com/large"], 50<<10)
		require.Equal(w, []any{"example.com/hold"}, metadata["finalizers"])
		require.Empty(w, w.log.All())
	},
	"no room for us among the annotations": func(w poisonWorld) {
		w.create(object{"annotations": object{"other": strings.Repeat("x", annotationLimit-len("other")-10)}}, object{})
		b := w.party("b")
		before := w.get()
		out := w.acquire(b, lease.Proposal{})
		require.Equal(w, sbr.Unknown, out.Kind, "%v", out)
		require.ErrorIs(w, out.Err, lease.ErrTooLarge)
		require.ErrorIs(w, out.Err, lease.ErrRefused)
		w.clear(out.Err, w.namespace+"/"+testName, "annotations")
		require.Equal(w, before, w.get())
		require.Less(w, len(out.Err.Error()), 1000)
		w.said(w.namespace+"/"+testName, "annotations")
		w.edit(object{"metadata": object{"annotations": object{"other": nil}}})
		w.had(b, 0)
	},
	"no room left while it is held": func(w poisonWorld) {
		w.create(nil, object{})
		b := w.party("b")
		w.had(b, 0)
		ours := len(kubernetes.Annotation) + len(w.annotations()[kubernetes.Annotation].(string))
		w.edit(object{"metadata": object{"annotations": object{"other": strings.Repeat("x", annotationLimit-len("other")-ours)}}})
		for range 10 {
			time.Sleep(poisonTTL / 4)
			require.True(w, b.Check(), "a heartbeat needs no more room")
		}
		out := w.acquire(b, verdictOf(b.Token(), "a", "b"))
		require.Equal(w, sbr.Unknown, out.Kind, "%v", out)
		require.ErrorIs(w, out.Err, lease.ErrTooLarge)
		require.True(w, b.Check(), "and the lease is still held")
		require.NoError(w, b.Release(w.Context()))
	},
}

func init() {
	for name, c := range map[string]struct {
		annotation string
		parts      []string
	}{
		"a newer version":      {`{"v":99,"token":{"high":1,"low":2},"holder":""}`, []string{"99", "newer", "upgrade"}},
		"an unknown version":   {`{"token":7}`, []string{"format 0"}},
		"half of it":           {`{"v":1,"token":7,"holder":"`, nil},
		"no JSON":              {`who knows`, []string{"JSON"}},
		"JSON of another kind": {`{"v":1,"token":"seven"}`, nil},
		"a negative token":     {`{"v":1,"token":-1}`, nil},
		"a token too large":    {`{"v":1,"token":1e30}`, nil},
		"a time of no length":  {`{"v":1,"token":1,"ttl":"soon"}`, []string{"ttl"}},
		"nothing at all":       {``, nil},
	} {
		poisonedObjects["unreadable: "+name] = func(w poisonWorld) { w.unreadable(c.annotation, c.parts) }
	}
	poisonedObjects["unreadable while it is held"] = poisonWorld.unreadableWhileHeld
	poisonedObjects["the largest token"] = poisonWorld.largestToken
}

// unreadable: what cannot be read is not read as free. It is said what is wrong, where, and how to get out of it; and that works.
func (w poisonWorld) unreadable(annotation string, parts []string) {
	w.create(object{"annotations": object{kubernetes.Annotation: annotation}}, object{"holderIdentity": "", "leaseTransitions": 6})
	before := w.get()
	b := w.party("b")
	_, err := b.Read(w.Context())
	wayOut := "annotate lease " + testName + " " + kubernetes.Annotation + "-"
	parts = append(parts, w.namespace+"/"+testName, "not readable", wayOut)
	w.clear(err, parts...)
	out := w.acquire(b, lease.Proposal{})
	require.Equal(w, sbr.Unknown, out.Kind, "%v", out)
	w.clear(out.Err, parts...)
	require.Equal(w, before, w.get(), "untouched")
	w.said(parts...)
	w.annotate(nil)
	require.EqualValues(w, 7, w.had(b, 0).Token)
}

// unreadableWhileHeld: the holder cannot renew what it cannot read, and stops in time; others do not take it for free.
func (w poisonWorld) unreadableWhileHeld() {
	w.create(nil, object{})
	a, b := w.party("a"), w.party("b")
	lost := make(chan error, 1)
	require.Equal(w, sbr.Granted, linear.AnswerOf(a.Acquire(w.Context(), lease.Proposal{})).Following(func(reason error) { lost <- reason }).Kind)
	w.annotate(`{"v":99}`)
	edited := time.Now()
	select {
	case reason := <-lost:
		require.ErrorIs(w, reason, lease.ErrLost)
		w.clear(reason, "newer", w.namespace+"/"+testName)
	case <-time.After(waitFor):
		require.Fail(w, "it did not notice")
	}
	require.Less(w, time.Since(edited), poisonTTL+time.Second)
	require.False(w, a.Check())
	require.Equal(w, sbr.Unknown, w.acquire(b, lease.Proposal{}).Kind)
	w.said("lease: lost", "newer")
	w.annotate(nil)
	w.had(b, poisonTTL)
}

// largestToken: the one poison that needs a hand, as no grant could be told from the one before.
func (w poisonWorld) largestToken() {
	w.create(object{"annotations": object{kubernetes.Annotation: `{"v":1,"token":18446744073709551615}`}}, object{})
	b := w.party("b")
	out := w.acquire(b, lease.Proposal{})
	require.Equal(w, sbr.Unknown, out.Kind, "%v", out)
	require.ErrorIs(w, out.Err, lease.ErrTokenSpent)
	w.said("the token in the record cannot grow any more", "sbr lease reset")
	w.annotate(nil)
	require.EqualValues(w, 1, w.had(b, 0).Token, "no token beyond the limit was learnt")
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
