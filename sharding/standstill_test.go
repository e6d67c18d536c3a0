package sharding_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/lease/memory"
	"github.com/serf-sbr/serf-sbr/sharding"
)

// A process that stood still for longer than it may be trusted finds Check false at once, when nothing else in it has gone on yet.
func TestCheck_IsRightBeforeAnythingElseGoesOn(t *testing.T) {
	for way, want := range map[string]error{"without leases": sharding.ErrUnsure, "with leases": sharding.ErrLeaseLost} {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				trouble := clustertest.NewTrouble(3, 1)
				c := clustertest.New(t, clustertest.Options{Config: func(name string, cfg *downing.Config) {
					quick(name, cfg)
					cfg.Pause = func() { trouble.Pass(name) }
				}})
				trouble.For(c)
				defer c.Stop()
				crew := newCrew(t, c, 1)
				if way == "with leases" {
					crew.leases = make(map[string]*memory.Store)
				}
				trouble.Stores = func(name string) (views []*memory.View) {
					for _, s := range crew.leases {
						views = append(views, s.View(name))
					}
					return views
				}
				type run struct {
					member string
					*sharding.Shard
				}
				runs := make(chan run, 10)
				crew.change = func(name string, cfg *sharding.Config) {
					cfg.Pause = func() { trouble.Pass(name) }
					cfg.Run = func(ctx context.Context, s *sharding.Shard) error {
						runs <- run{name, s}
						<-ctx.Done()
						return nil
					}
				}
				crew.startAll(3)
				defer crew.stop()
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
				require.ErrorIs(t, err, want)
			})
		})
	}
}
