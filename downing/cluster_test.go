package downing_test

import (
	"testing"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
)

// cluster is a cluster and what the tests of this package ask it.
type cluster struct {
	*clustertest.Cluster
	t     testing.TB
	disks *disks // nil: the hosts have no state folders
}

// long skips what takes a second or more of processor time, where the short tests are asked for.
func long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("plays for long: run without -short")
	}
}

func newCluster(t testing.TB, config func(name string, c *downing.Config)) *cluster {
	return &cluster{Cluster: clustertest.New(t, clustertest.Options{Config: config}), t: t}
}

// virtual runs a test on a fresh cluster in virtual time.
func virtual(t *testing.T, config func(string, *downing.Config), f func(t *testing.T, c *cluster)) {
	t.Helper()
	clustertest.Virtual(t, clustertest.Options{Config: config}, func(t *testing.T, c *clustertest.Cluster) {
		f(t, &cluster{Cluster: c, t: t})
	})
}

// formed runs a test in virtual time, on a cluster of n1 to nN that is whole.
func formed(t *testing.T, n int, config func(string, *downing.Config), f func(t *testing.T, c *cluster)) {
	t.Helper()
	virtual(t, config, func(t *testing.T, c *cluster) {
		c.Form(n)
		f(t, c)
	})
}

// storeAway makes members lose their way to the store; storeBack gives it back.
func (c *cluster) storeAway(names ...string) {
	for _, name := range names {
		c.Store.View(name).SetUnavailable(true)
	}
}

func (c *cluster) storeBack(names ...string) {
	for _, name := range names {
		c.Store.View(name).SetUnavailable(false)
	}
}

func (c *cluster) provider(name string) *downing.Provider { return c.Member(name).Provider }

// gated makes members stand still while their gates are closed.
func gated(gates *clustertest.Gates) func(name string, c *downing.Config) {
	return func(name string, c *downing.Config) {
		clustertest.MajorityFirst(name, c)
		c.Pause = gates.Of(name).Pass
	}
}
