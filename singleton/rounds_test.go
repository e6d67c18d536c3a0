package singleton_test

import (
	"context"
	"testing"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/singleton"
)

// load lets the singleton of a round write every 20 ms.
func load(r *clustertest.Round, withLease bool) clustertest.Load {
	store := leasetest.NewMemory()
	c := newCrew(r.T(), r.Cluster, func(name string, cfg *singleton.Config) {
		cfg.Run = func(ctx context.Context, run *singleton.Run) error {
			return r.Work(ctx, name, "backup", 20*time.Millisecond, run)
		}
		cfg.Pause = func() { r.Trouble.Pass(name) }
		if withLease {
			cfg.Store = store.View(name)
		}
	})
	return clustertest.Load{
		Start: c.start,
		Stop:  func(ctx context.Context, name string) error { return c.managers[name].Stop(ctx) },
		Settled: func() bool {
			active := 0
			for name, m := range c.managers {
				if m.Status().Phase == "active" && !r.Trouble.Paused(name) {
					active++
				}
			}
			return active == 1
		},
		Favourite: func() string {
			for _, name := range r.Trouble.Attending() {
				if c.managers[name].Status().Token != 0 {
					return name
				}
			}
			return ""
		},
		Stores: func(name string) []*leasetest.Faulty { return []*leasetest.Faulty{store.View(name)} },
		Dump: func() {
			for name, m := range c.managers {
				r.T().Logf("%s: %+v", name, m.Status())
			}
		},
	}
}

func TestRounds_TheResourceSeesTokensInOrder(t *testing.T) {
	for _, way := range []string{"without a lease", "with a lease"} {
		t.Run(way, func(t *testing.T) {
			rounds := uint64(4)
			if testing.Short() {
				rounds = 1
			}
			clustertest.PlayRounds(t, rounds,
				func(r *clustertest.Round) clustertest.Load { return load(r, way == "with a lease") })
		})
	}
}
