package downing_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// apiServer is a real kube-apiserver behind a proxy that counts, with one lease that others have marked as
// theirs as well.
type apiServer struct {
	t          *testing.T
	cluster    *kubetest.Cluster
	namespace  string
	kubeconfig string // least privilege, through the proxy
	mu         sync.Mutex
	writes     []string // requests that change something
}

const leaseName = "payments-sbr"

func TestMain(m *testing.M) { os.Exit(kubetest.M(m).Run()) }

func newAPIServer(t *testing.T) *apiServer {
	a := &apiServer{t: t, cluster: kubetest.Shared(t)}
	a.namespace = a.cluster.Namespace(t)
	plain, err := a.cluster.LeastPrivilegeKubeconfig(context.Background(), a.namespace, leaseName)
	require.NoError(t, err)
	proxy := kubetest.NewProxy(t, a.cluster.AdminKubeconfig())
	a.kubeconfig, err = proxy.KubeconfigFor(plain)
	require.NoError(t, err)
	proxy.SetFault(func(r *http.Request) kubetest.Fault {
		if r.Method != http.MethodGet && r.URL.Query().Get("dryRun") == "" {
			a.mu.Lock()
			a.writes = append(a.writes, r.Method+" "+r.URL.Path)
			a.mu.Unlock()
		}
		return kubetest.Fault{}
	})
	return a
}

func (a *apiServer) written() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.writes
}

func (a *apiServer) path() string {
	return "/apis/coordination.k8s.io/v1/namespaces/" + a.namespace + "/leases"
}

func (a *apiServer) do(method, path string, body any) map[string]any {
	a.t.Helper()
	code, answer, err := a.cluster.Do(context.Background(), method, path, body)
	require.NoError(a.t, err)
	require.Less(a.t, code, 300, string(answer))
	var o map[string]any
	require.NoError(a.t, json.Unmarshal(answer, &o))
	return o
}

func (a *apiServer) store() *kubernetes.Store {
	cfg := kubernetes.DefaultConfig()
	cfg.Kubeconfig, cfg.Namespace, cfg.Name = a.kubeconfig, a.namespace, kubernetes.Name("payments")
	s, err := kubernetes.New(cfg)
	require.NoError(a.t, err)
	return s
}

// quick shortens what real time would make long. Both sides still notice, wait and race as with the defaults.
func quick(c *downing.Config) {
	c.Resolver.StableAfter = 2 * time.Second
	c.Resolver.DownAllWhenUnstable = 20 * time.Second
	c.Resolver.SettleAfter = time.Second
	c.Probe.Interval, c.Probe.Timeout, c.Probe.Tries = 300*time.Millisecond, 200*time.Millisecond, 3
	c.Strategies.LeaseMajority.AcquireLeaseDelayForMinority = 10 * time.Second
	c.Grace = 5 * time.Second
}

// Five real Serf nodes are cut while the lease lives in a real kube-apiserver, with credentials that allow
// nothing but that one lease. One side survives, the object holds the verdict, what others wrote into it is
// untouched, and nothing was written while the cluster was whole.
func TestSplit_RealAPIServer(t *testing.T) {
	for _, tc := range []struct{ losers, winners []string }{
		{[]string{"n4", "n5"}, []string{"n1", "n2", "n3"}},
		{[]string{"n1"}, []string{"n2", "n3", "n4", "n5"}},
	} {
		t.Run(fmt.Sprintf("%d|%d", len(tc.winners), len(tc.losers)), func(t *testing.T) {
			a := newAPIServer(t)
			a.do(http.MethodPost, a.path(), map[string]any{
				"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
				"metadata": map[string]any{"name": leaseName, "labels": map[string]any{"team": "payments"}, "annotations": map[string]any{"example.org/owner": "ops"}},
				"spec":     map[string]any{},
			})
			c := clustertest.New(t, clustertest.Options{Config: func(_ string, cfg *downing.Config) {
				quick(cfg)
				cfg.Store = a.store()
			}})
			defer c.Shutdown()
			c.Form(5)
			whole := time.NewTimer(2 * time.Second) // long enough for several rounds of everything periodic
			<-whole.C
			require.Empty(t, a.written(), "the cluster was whole")

			require.NoError(t, c.Net.Partition(tc.winners, tc.losers))
			c.Eventually(time.Minute, "the majority has not won",
				func() bool { return slices.Equal(tc.winners, c.Up()) })

			object := a.do(http.MethodGet, a.path()+"/"+leaseName, nil)
			meta := object["metadata"].(map[string]any)
			require.Equal(t, map[string]any{"team": "payments"}, meta["labels"])
			require.Equal(t, "ops", meta["annotations"].(map[string]any)["example.org/owner"])
			rec, err := a.store().Read(context.Background())
			require.NoError(t, err)
			v := rec.Record.Verdict
			require.NotNil(t, v)
			require.Equal(t, tc.winners, names(v.Survivors))
			require.Equal(t, tc.losers, names(v.Down))
			require.Equal(t, uint64(1), v.Token)
			require.NotEmpty(t, v.Reason)
			require.Equal(t, tc.winners[0], downing.NameOf(sbr.ID(rec.Record.Holder)))
		})
	}
}

func names(ids []sbr.ID) (out []string) {
	for _, id := range ids {
		out = append(out, downing.NameOf(id))
	}
	return out
}
