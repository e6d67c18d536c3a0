package kubernetes_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/kubefake"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// described are the Events that kubectl describe finds for a lease, as it asks for them: reasons and
// messages.
func described(t *testing.T, cluster *kubetest.Cluster, l object) (events [][2]string) {
	t.Helper()
	m := kubefake.Meta(l)
	namespace := m["namespace"].(string)
	selector := "involvedObject.kind=Lease,involvedObject.name=" + m["name"].(string) +
		",involvedObject.namespace=" + namespace + ",involvedObject.uid=" + m["uid"].(string)
	path := "/api/v1/namespaces/" + namespace + "/events?fieldSelector=" + url.QueryEscape(selector)
	code, answer, err := cluster.Do(t.Context(), http.MethodGet, path, nil)
	require.NoError(t, err)
	require.Equal(t, 200, code, "%s", answer)
	var list struct{ Items []object }
	require.NoError(t, json.Unmarshal(answer, &list))
	for _, e := range list.Items {
		events = append(events, [2]string{e["reason"].(string), e["message"].(string)})
	}
	return events
}

// The rights of the manifests are enough for an Event that kubectl describe shows, and to tell which store it
// is. Without them the doctor warns, and nothing else changes.
func TestAnnounce_Real(t *testing.T) {
	cluster := kubetest.Shared(t)
	for _, api := range []kubernetes.API{kubernetes.Native, kubernetes.Akka} {
		t.Run(string(api), func(t *testing.T) {
			w := newRealWorld(t, cluster)
			if api.Custom() {
				w = newCustomWorld(t, cluster, api)
			}
			s := w.store(t)
			mustWrite(t, s, record("a", 1), "")
			require.NoError(t, s.Announce(t.Context(), "Verdict", "a: verdict 1", false))
			require.Equal(t, [][2]string{{"Verdict", "a: verdict 1"}}, described(t, cluster, w.stored(t)))
			requireFound(t, w, "events", "")
			requireFound(t, w, "which store", "")

			w.grant(t, w.rights()) // and none beside the lease
			var err error
			require.Eventually(t, func() bool {
				err = s.Announce(t.Context(), "Downed", "a: down", true)
				return err != nil
			}, waitFor, 10*time.Millisecond)
			require.ErrorIs(t, err, lease.ErrRefused)
			require.ErrorContains(t, err, "must allow create on resource events: sbr manifests prints it")
			require.NoError(t, s.Preflight(t.Context()))
			requireFound(t, w, "events", kubernetes.Warning)
			requireFound(t, w, "which store", kubernetes.Warning)
		})
	}
}

// requireFound says what the doctor must find of one right beside the lease, and that the lease works.
func requireFound(t *testing.T, w realWorld, check string, want kubernetes.Status) {
	t.Helper()
	d := kubernetes.Diagnose(t.Context(), w.config(w.kubeconfig))
	require.True(t, d.OK(), "%+v", d.Findings)
	var got kubernetes.Status
	for _, f := range d.Findings {
		if f.Check == check {
			got = f.Status
			require.Contains(t, f.Fix, "to the Role: sbr manifests prints it")
		}
	}
	require.Equal(t, want, got, "%+v", d.Findings)
}
