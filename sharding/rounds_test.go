package sharding_test

import (
	"context"
	"testing"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sharding"
)

// load lets each of the twelve shards of a round write to a resource of its own, every 100 ms.
func load(r *clustertest.Round, withLeases bool) clustertest.Load {
	c := newCrew(r.T(), r.Cluster, 12)
	if withLeases {
		c.leases = make(map[string]*leasetest.Memory)
	}
	c.change = func(name string, cfg *sharding.Config) {
		cfg.Run = func(ctx context.Context, s *sharding.Shard) error {
			return r.Work(ctx, name, s.Name(), 100*time.Millisecond, s)
		}
		cfg.Pause = func() { r.Trouble.Pass(name) }
	}
	return clustertest.Load{
		Start: c.start,
		Stop:  func(ctx context.Context, name string) error { return c.managers[name].Stop(ctx) },
		// The coordinator knows that every shard runs.
		Settled: func() bool {
			for name, m := range c.managers {
				if l := m.Listing(); l.Running == c.shards && !r.Trouble.Paused(name) && !r.Member(name).Down() {
					return true
				}
			}
			return false
		},
		Favourite: func() string {
			for _, name := range r.Trouble.Attending() {
				if c.managers[name].Listing().Coordinator {
					return name
				}
			}
			return ""
		},
		Stores: c.views,
		Dump:   c.dump,
	}
}

func TestRounds_TheResourcesSeeTokensInOrder(t *testing.T) {
	for _, way := range []string{"without leases", "with leases"} {
		t.Run(way, func(t *testing.T) {
			clustertest.PlayRounds(t, 2, func(r *clustertest.Round) clustertest.Load { return load(r, way == "with leases") })
		})
	}
}
