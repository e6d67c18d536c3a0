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
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// apiServer is a real kube-apiserver behind a proxy that counts, with one lease that others have marked as
// theirs as well.
type apiServer struct {
	t          testing.TB
	cluster    *kubetest.Cluster
	namespace  string
	kubeconfig string // least privilege, through the proxy
	mu         sync.Mutex
	writes     []string // requests that change something
}

const leaseName = "payments-sbr"

func TestMain(m *testing.M) { os.Exit(kubetest.M(m).Run()) }

func newAPIServer(t testing.TB) *apiServer {
	a := &apiServer{t: t, cluster: kubetest.Shared(t)}
	a.namespace = a.cluster.Namespace(t)
	plain, err := a.cluster.LeastPrivilegeKubeconfig(context.Background(), a.namespace, leaseName)
	require.NoError(t, err)
	proxy, err := kubetest.NewProxy(a.cluster.AdminKubeconfig())
	require.NoError(t, err)
	t.Cleanup(func() { _ = proxy.Close() })
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
			requireSide(t, c, tc.winners) // the majority wins

			object := a.do(http.MethodGet, a.path()+"/"+leaseName, nil)
			meta := object["metadata"].(map[string]any)
			require.Equal(t, map[string]any{"team": "payments"}, meta["labels"])
			require.Equal(t, "ops", meta["annotations"].(map[string]any)["example.org/owner"])
			rec, err := a.store().Read(context.Background())
			require.NoError(t, err)
			requireVerdict(t, rec.Record, tc.winners, tc.losers)
			require.Equal(t, tc.winners[0], downing.NameOf(sbr.ID(rec.Record.Holder)))
		})
	}
}

func requireVerdict(t testing.TB, rec lease.Record, survivors, down []string) {
	t.Helper()
	require.NotNil(t, rec.Verdict)
	require.Equal(t, survivors, names(rec.Verdict.Survivors))
	require.Equal(t, down, names(rec.Verdict.Down))
	require.Equal(t, uint64(1), rec.Verdict.Token)
	require.NotEmpty(t, rec.Verdict.Reason)
}

func names(ids []sbr.ID) (out []string) {
	for _, id := range ids {
		out = append(out, downing.NameOf(id))
	}
	return out
}

// requireSide waits until the members that are up are those of one side.
func requireSide(t testing.TB, c *clustertest.Cluster, side []string) {
	t.Helper()
	c.Eventually(time.Minute, "the members that are up are not the side", func() bool { return slices.Equal(side, c.Up()) })
}

// BenchmarkDoubleActive_RealAPIServer reports how long losers are up after the verdict was written into a
// real kube-apiserver, in round trips to that server that are measured beside it.
func BenchmarkDoubleActive_RealAPIServer(b *testing.B) {
	a := newAPIServer(b)
	var q, trips clustertest.Times
	for b.Loop() {
		d, trip := a.split(b)
		q, trips = append(q, d), append(trips, trip)
	}
	b.ReportMetric(float64(q.At(0.99))/float64(trips.At(0.5)), "roundtrips/p99")
	b.ReportMetric(float64(q.At(0.5))/float64(time.Millisecond), "ms/p50")
	b.ReportMetric(float64(q.At(0.99))/float64(time.Millisecond), "ms/p99")
	b.ReportMetric(float64(trips.At(0.5))/float64(time.Millisecond), "ms/roundtrip")
	b.ReportMetric(0, "ns/op")
}

func (a *apiServer) split(b *testing.B) (doubleActive, roundTrip time.Duration) {
	c := clustertest.New(b, clustertest.Options{Config: func(_ string, cfg *downing.Config) {
		quick(cfg)
		cfg.Store = a.store()
	}})
	defer c.Shutdown()
	c.Form(5)
	winners, losers := []string{"n1", "n2", "n3"}, []string{"n4", "n5"}
	require.NoError(b, c.Net.Partition(winners, losers))
	requireSide(b, c, winners)
	roundTrip = a.roundTrip(b)
	// The clock starts when the winner knows: on loopback that is within a round trip of the commit itself,
	// which it is given here.
	granted := first(c, downing.OccurredGranted).At.Add(-roundTrip)
	for _, n := range losers {
		doubleActive = max(doubleActive, c.Member(n).DownAt().Sub(granted))
	}
	a.forget()
	return doubleActive, roundTrip
}

// roundTrip is the median of some conditional writes of another lease through the same proxy, the way the
// product makes them.
func (a *apiServer) roundTrip(b *testing.B) time.Duration {
	s := a.store()
	var q clustertest.Times
	for range 20 {
		began := time.Now()
		snap, err := s.Read(b.Context())
		require.NoError(b, err)
		read := time.Since(began)
		began = time.Now()
		snap.Record.Renewed = began
		_, err = s.Write(b.Context(), snap.Record, snap.Version)
		require.NoError(b, err)
		q = append(q, max(read, time.Since(began)))
	}
	return q.At(0.5)
}

// first is the first thing of a kind that has happened to any node; the zero Occurrence if nothing has.
func first(c *clustertest.Cluster, kind string) (first downing.Occurrence) {
	log := c.Occurred("")
	if i := slices.IndexFunc(log, func(o downing.Occurrence) bool { return o.Kind == kind }); i >= 0 {
		first = log[i]
	}
	return first
}

// forget deletes the lease, so that the next cluster starts without a verdict.
func (a *apiServer) forget() {
	code, answer, err := a.cluster.Do(a.t.Context(), http.MethodDelete, a.path()+"/"+leaseName, nil)
	require.NoError(a.t, err)
	require.Less(a.t, code, 300, string(answer))
}
