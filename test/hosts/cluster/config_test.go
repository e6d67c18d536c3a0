//go:build linux

package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/config"
)

var onN1 = place{
	host: "n1", bind: "10.0.0.1:7946", others: []string{"10.0.0.2:7946"}, hooks: "/dir/hooks.txt",
	kind: "kubernetes", section: map[string]any{"namespace": "ns", "kubeconfig": "/kubeconfig"},
}

func parsed(t *testing.T, o Options) *config.File {
	raw, err := o.sbrYAML(onN1)
	require.NoError(t, err)
	f, err := config.Parse("sbr.yaml", raw)
	require.NoError(t, err)
	return f
}

func TestSbrYAML_OwnNode(t *testing.T) {
	f := parsed(t, Options{
		Own: true, Settings: Fast().With("min-members", 3), Profile: "local",
		Encrypt: "T9jncgl9mbLus+baTTa7q7nPSUrXwbDi2dhbtqir37s=",
		Roles:   map[string][]string{"n1": {"web", "db"}}, Nodes: map[string]string{"n1": "one"},
	})
	require.True(t, f.Serf.OwnNode())
	require.Equal(t, "one", f.Serf.Node)
	require.Equal(t, "local", f.Serf.Profile)
	require.Equal(t, map[string]string{"role": "web,db"}, f.Serf.Tags)
	require.Equal(t, []string{"10.0.0.2:7946"}, f.Serf.Join)
	require.EqualValues(t, 4*time.Second, f.SplitBrainResolver.StableAfter)
	require.Equal(t, 3, f.SplitBrainResolver.MinMembers)
	require.Equal(t, "/kubeconfig", f.Lease.Kubernetes.Kubeconfig)
}

func TestSbrYAML_BesideAStockAgent(t *testing.T) {
	f := parsed(t, Options{Settings: Fast()})
	require.False(t, f.Serf.OwnNode())
	require.Equal(t, 4*time.Second, f.Serf.RPCTimeout)
	require.Equal(t, "/dir/hooks.txt", f.Hooks.OnDown[3])
}

func TestSbrYAML_WithoutSettingsAreTheDefaults(t *testing.T) {
	f := parsed(t, Options{})
	require.Equal(t, config.Default().SplitBrainResolver, f.SplitBrainResolver)
}

func TestSbrYAML_AnotherStore(t *testing.T) {
	elsewhere := onN1
	elsewhere.kind, elsewhere.section = "etcd", map[string]any{"endpoints": []string{"http://10.0.0.6:20000"}}
	for _, o := range []Options{{}, {Settings: Fast(), Singleton: &Singleton{Name: "backup", Guard: ByBoth}}} {
		raw, err := o.sbrYAML(elsewhere)
		require.NoError(t, err)
		f, err := config.Parse("sbr.yaml", raw)
		require.NoError(t, err)
		kind, err := f.LeaseStore()
		require.NoError(t, err)
		require.Equal(t, "etcd", kind)
		if o.Singleton != nil {
			require.Equal(t, "etcd", f.Singleton.UseLease)
			require.Equal(t, time.Second, f.SplitBrainResolver.LeaseMajority.AcquireLeaseDelayForMinority)
		}
	}
	require.NotContains(t, Fast().Resolver[majorityBlock], "lease-implementation")
}

func TestSbrYAML_Singleton(t *testing.T) {
	for g, lease := range map[Guard]string{ByMembers: "", ByBoth: "kubernetes"} {
		f := parsed(t, Options{Singleton: &Singleton{Name: "backup", Guard: g,
			Settings: map[string]any{"lease-retry-interval": "1s"}}})
		require.Equal(t, lease, f.Singleton.UseLease, g)
		require.Equal(t, time.Second, f.Singleton.LeaseRetryInterval)
	}
	require.Equal(t, config.Default().Singleton, parsed(t,
		Options{Singleton: &Singleton{Name: "backup", Guard: ByLease}}).Singleton, "no agent has to do with it")
	s := &Singleton{Name: "backup"}
	require.Equal(t, (&config.File{System: System}).SingletonLeaseName("backup"), s.lease())
}
