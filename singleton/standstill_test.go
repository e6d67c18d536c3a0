package singleton_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/lease/memory"
	"github.com/serf-sbr/serf-sbr/singleton"
)

// A process that stood still for longer than it may be trusted finds Check false at once, when nothing else in it has gone on yet.
func TestCheck_IsRightBeforeAnythingElseGoesOn(t *testing.T) {
	for way, want := range map[string]error{"without a lease": singleton.ErrUnsure, "with a lease": singleton.ErrLeaseLost} {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				trouble := clustertest.NewTrouble(3, 1)
				store := memory.NewStore()
				trouble.Stores = func(name string) []*memory.View { return []*memory.View{store.View(name)} }
				c := clustertest.New(t, clustertest.Options{Config: func(name string, cfg *downing.Config) {
					quick(name, cfg)
					cfg.Pause = func() { trouble.Pass(name) }
				}})
				trouble.For(c)
				defer c.Stop()
				runs := make(chan *singleton.Run, 10)
				crew := newCrew(t, c, func(name string, cfg *singleton.Config) {
					cfg.Pause = func() { trouble.Pass(name) }
					if way == "with a lease" {
						cfg.Store = store.View(name)
					}
					cfg.Run = func(ctx context.Context, r *singleton.Run) error {
						runs <- r
						<-ctx.Done()
						return nil
					}
				})
				crew.startAll(3)
				defer crew.stop()
				r := <-runs
				require.NoError(t, r.Check())
				trouble.Pause("n1")
				defer trouble.End()
				time.Sleep(2 * time.Second)
				require.NoError(t, r.Check(), "nobody can have taken over yet")
				next := <-runs
				require.NoError(t, next.Check())
				require.Greater(t, next.Token(), r.Token())
				err := r.Check()
				require.ErrorIs(t, err, singleton.ErrNotRunning)
				require.ErrorIs(t, err, want)
				time.Sleep(time.Minute)
				require.ErrorIs(t, r.Check(), want)
			})
		})
	}
}
