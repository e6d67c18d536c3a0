package sharding_test

import (
	"testing"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/sharding"
)

// A member that lacks the role has a manager all the same, to know who runs what. It keeps nobody waiting, and knows.
func TestManager_AMemberWithoutTheRoleKeepsNobodyWaiting(t *testing.T) {
	workers := func(name string, conf *serf.Config) {
		if name != clustertest.Name(1) {
			conf.Tags[downing.TagRole] = "worker"
		}
	}
	clustertest.Virtual(t, clustertest.Options{Config: clustertest.Quick, Serf: workers}, func(t *testing.T, cl *clustertest.Cluster) {
		c := newCrew(t, cl, 4)
		c.change = func(_ string, cfg *sharding.Config) { cfg.Role = "worker" }
		c.startAll(3)
		defer c.stop()
		time.Sleep(time.Minute)
		require.Equal(t, 4, c.register.all())
		require.Zero(t, c.register.on()[clustertest.Name(1)])
		for _, o := range c.managers[clustertest.Name(1)].Owners() {
			require.NotEmpty(t, o.Name, o.Shard)
		}
	})
}
