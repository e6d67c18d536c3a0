package downing_test

import (
	"testing"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
)

// cluster is a cluster and what the tests of this package ask it.
type cluster struct {
	*clustertest.Cluster
	t testing.TB
}

// long skips what takes a second or more of processor time, where the short tests are asked for.
func long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("plays for long: run without -short")
	}
}

func newCluster(t testing.TB, config func(name string, c *downing.Config)) *cluster {
	return &cluster{clustertest.New(t, clustertest.Options{Config: config}), t}
}

// virtual runs a test on a fresh cluster in virtual time.
func virtual(t *testing.T, config func(string, *downing.Config), f func(t *testing.T, c *cluster)) {
	t.Helper()
	clustertest.Virtual(t, clustertest.Options{Config: config}, func(t *testing.T, c *clustertest.Cluster) { f(t, &cluster{c, t}) })
}

func (c *cluster) provider(name string) *downing.Provider { return c.Member(name).Provider }

// gated makes members stand still while their gates are closed.
func gated(gates *clustertest.Gates) func(name string, c *downing.Config) {
	return func(name string, c *downing.Config) {
		clustertest.MajorityFirst(name, c)
		c.Pause = gates.Of(name).Pass
	}
}
