package kubernetes_test

import (
	"encoding/json"
	"maps"
	"net/http"
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

// poisonWorld is one Lease object, an administrator who does what he likes with it, and a party with least privilege.
type poisonWorld struct {
	*testing.T
	cluster    *kubetest.Cluster
	namespace  string
	kubeconfig string
	log        *logtest.Log
}

func newPoisonWorld(t *testing.T, cluster *kubetest.Cluster) poisonWorld {
	namespace := cluster.Namespace(t)
	kubeconfig, err := cluster.LeastPrivilegeKubeconfig(t.Context(), namespace, testName)
	require.NoError(t, err)
	return poisonWorld{t, cluster, namespace, kubeconfig, new(logtest.Log)}
}

// party opens a lease of owner.
func (w poisonWorld) party(owner string) *lease.Lease {
	w.Helper()
	cfg := kubernetes.DefaultConfig()
	cfg.Kubeconfig, cfg.Namespace, cfg.Name = w.kubeconfig, w.namespace, testName
	cfg.RequestTimeout = poisonSettings.OperationTimeout
	cfg.Logger = w.log.Warnings()
	store, err := kubernetes.New(cfg)
	require.NoError(w, err)
	l, err := lease.New(store, owner, poisonSettings, lease.Options{Logger: w.log.Warnings()})
	require.NoError(w, err)
	w.Cleanup(func() {
		l.Close()
		require.NoError(w, store.Close())
	})
	return l
}

func (w poisonWorld) request(method string, body any, want int) object {
	w.Helper()
	path := "/apis/coordination.k8s.io/v1/namespaces/" + w.namespace + "/leases"
	if method != http.MethodPost {
		path += "/" + testName
	}
	code, answer, err := w.cluster.Do(w.Context(), method, path, body)
	require.NoError(w, err)
	require.Equal(w, want, code, "%s", answer)
	var out object
	require.NoError(w, json.Unmarshal(answer, &out))
	return out
}

// create makes the object, as an administrator or another program does.
func (w poisonWorld) create(metadata, spec object) object {
	w.Helper()
	metadata = withName(metadata)
	return w.request(http.MethodPost, object{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}, 201)
}

func withName(metadata object) object {
	out := object{"name": testName}
	maps.Copy(out, metadata)
	return out
}

func (w poisonWorld) get() object        { w.Helper(); return w.request(http.MethodGet, nil, 200) }
func (w poisonWorld) edit(patch object)  { w.Helper(); w.request(http.MethodPatch, patch, 200) }
func (w poisonWorld) annotate(value any) { w.Helper(); w.edit(annotated(value)) }
func (w poisonWorld) remove()            { w.Helper(); w.request(http.MethodDelete, nil, 200) }
func annotated(value any) object {
	return object{"metadata": object{"annotations": object{kubernetes.Annotation: value}}}
}
func (w poisonWorld) annotations() object {
	return w.get()["metadata"].(object)["annotations"].(object)
}
func (w poisonWorld) spec() object { return w.get()["spec"].(object) }
func (w poisonWorld) restore(backup object) {
	w.Helper()
	w.request(http.MethodPut, ready(backup), 200)
}

// ready is a backup without what only the server may say.
func ready(backup object) object {
	metadata := backup["metadata"].(object)
	return object{
		"apiVersion": backup["apiVersion"], "kind": backup["kind"], "spec": backup["spec"],
		"metadata": object{"name": testName, "annotations": metadata["annotations"], "labels": metadata["labels"], "resourceVersion": metadata["resourceVersion"]},
	}
}

// at is a backup that may be written over what is there now.
func (w poisonWorld) at(backup object) object {
	out := ready(backup)
	out["metadata"].(object)["resourceVersion"] = w.get()["metadata"].(object)["resourceVersion"]
	return out
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
	return lease.Proposal{Base: base, Verdict: &sbr.Verdict{Survivors: survivors, Down: []sbr.ID{"z"}, DecidedBy: "b", Reason: "majority"}}
}

// said demands a warning of one line that has all the parts.
func (w poisonWorld) said(parts ...string) {
	w.Helper()
	var lines []string
	require.Eventually(w, func() bool {
		lines = w.log.All()
		for _, line := range lines {
			if hasAll(line, parts) && !strings.Contains(line, "\n") {
				return true
			}
		}
		return false
	}, 2*poisonSettings.HeartbeatTimeout, 20*time.Millisecond, "no line in the log says it: wanted %q, got %q", parts, &lines)
}

func hasAll(line string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(line, part) {
			return false
		}
	}
	return true
}
