package sharding_test

import (
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding"
	"github.com/serf-sbr/serf-sbr/sharding/allocation"
)

// Shard 0 belongs to members with the role large, on whichever member the coordinator runs; the other shards
// go where they would go anyway.
func TestTarget_PinsAShardToARole(t *testing.T) {
	large := func(name string, conf *serf.Config) {
		if name == "n2" || name == "n3" {
			conf.Tags[downing.TagRole] = "large,east"
		}
	}
	clustertest.Virtual(t, clustertest.Options{Config: clustertest.Quick, Serf: large}, func(t *testing.T, cl *clustertest.Cluster) {
		c := newCrew(t, cl, 6)
		c.change = func(_ string, cfg *sharding.Config) {
			cfg.Target = func(_ []string, members []allocation.Member, _ map[string]sbr.ID) map[string]sbr.ID {
				for _, m := range members {
					if slices.Contains(m.Roles, "large") {
						return map[string]sbr.ID{"0": m.ID}
					}
				}
				return nil
			}
		}
		c.startAll(4)
		defer c.stop()
		c.settles(time.Minute)
		time.Sleep(time.Minute)
		require.Equal(t, "n2", c.register.running["0"])
		require.NoError(t, c.managers["n2"].Stop(t.Context()))
		c.settles(10 * time.Second)
		time.Sleep(time.Minute)
		require.Equal(t, "n3", c.register.running["0"])
	})
}
