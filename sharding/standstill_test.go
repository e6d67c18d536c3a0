package sharding_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sharding"
)

// still runs a test with one shard on members that can stand still, without leases and with them.
func still(t *testing.T, test func(t *testing.T, way string, c *crew, trouble *clustertest.Trouble)) {
	for _, way := range []string{"without leases", "with leases"} {
		t.Run(way, func(t *testing.T) {
			clustertest.Troubled(t, 3, 1, func(t *testing.T, cl *clustertest.Cluster, trouble *clustertest.Trouble) {
				c := newCrew(t, cl, 1)
				if way == "with leases" {
					c.leases = make(map[string]*leasetest.Memory)
				}
				trouble.Stores = c.views
				test(t, way, c, trouble)
			})
		})
	}
}

// A process that stood still for longer than it may be trusted finds Check false at once, when nothing else in it has gone on yet.
func TestCheck_IsRightBeforeAnythingElseGoesOn(t *testing.T) {
	want := map[string]error{"without leases": sharding.ErrUnsure, "with leases": sharding.ErrLeaseLost}
	still(t, func(t *testing.T, way string, c *crew, trouble *clustertest.Trouble) {
		type run struct {
			member string
			*sharding.Shard
		}
		runs := make(chan run, 10)
		c.change = func(name string, cfg *sharding.Config) {
			cfg.Pause = func() { trouble.Pass(name) }
			cfg.Run = func(ctx context.Context, s *sharding.Shard) error {
				runs <- run{name, s}
				<-ctx.Done()
				return nil
			}
		}
		c.startAll(3)
		defer c.stop()
		time.Sleep(time.Minute)
		var r run
		for len(runs) > 0 {
			r = <-runs
		}
		require.NoError(t, r.Check())
		trouble.Pause(r.member)
		defer trouble.End()
		time.Sleep(2 * time.Second)
		require.NoError(t, r.Check(), "nobody can have taken over yet")
		next := <-runs
		require.NoError(t, next.Check())
		require.Greater(t, next.Token(), r.Token())
		err := r.Check()
		require.ErrorIs(t, err, sharding.ErrNotRunning)
		require.ErrorIs(t, err, want[way])
	})
}

// A process that stood still while a shard's run rested does not start it once others have taken it over.
func TestRest_NothingStartsAfterAStandstill(t *testing.T) {
	still(t, func(t *testing.T, _ string, c *crew, trouble *clustertest.Trouble) {
		type run struct {
			member string
			token  uint64
		}
		runs, end := make(chan run, 10), make(chan struct{})
		c.change = func(name string, cfg *sharding.Config) {
			cfg.Pause = func() { trouble.Pass(name) }
			cfg.Run = func(ctx context.Context, s *sharding.Shard) error {
				runs <- run{name, s.Token()}
				select {
				case <-end:
				case <-ctx.Done():
				}
				return nil
			}
		}
		c.startAll(3)
		defer c.stop()
		time.Sleep(time.Minute)
		var last run
		for len(runs) > 0 {
			last = <-runs
		}
		end <- struct{}{}
		time.Sleep(sharding.DefaultConfig().RestartAfter / 2)
		trouble.Pause(last.member)
		next := <-runs
		require.NotEqual(t, last.member, next.member)
		trouble.End()
		time.Sleep(2 * time.Minute)
		for len(runs) > 0 {
			r := <-runs
			require.GreaterOrEqual(t, r.token, next.token, "%s", r.member)
		}
	})
}
