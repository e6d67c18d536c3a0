package singleton_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/singleton"
)

// A process that stood still for longer than it may be trusted finds Check false at once, when nothing else in it has gone on yet.
func TestCheck_IsRightBeforeAnythingElseGoesOn(t *testing.T) {
	for way, want := range map[string]error{"without a lease": singleton.ErrUnsure, "with a lease": singleton.ErrLeaseLost} {
		t.Run(way, func(t *testing.T) {
			clustertest.Troubled(t, 3, 1, func(t *testing.T, c *clustertest.Cluster, trouble *clustertest.Trouble) {
				store := leasetest.NewMemory()
				trouble.Stores = func(name string) []*leasetest.Faulty { return []*leasetest.Faulty{store.View(name)} }
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

// A process that stood still while its run rested does not start the run that others have taken over meanwhile.
func TestRest_NothingStartsAfterAStandstill(t *testing.T) {
	for _, way := range []string{"without a lease", "with a lease"} {
		t.Run(way, func(t *testing.T) {
			clustertest.Troubled(t, 3, 1, func(t *testing.T, c *clustertest.Cluster, trouble *clustertest.Trouble) {
				store := leasetest.NewMemory()
				trouble.Stores = func(name string) []*leasetest.Faulty { return []*leasetest.Faulty{store.View(name)} }
				type run struct {
					member string
					token  uint64
				}
				runs, end := make(chan run, 10), make(chan struct{})
				crew := newCrew(t, c, func(name string, cfg *singleton.Config) {
					cfg.Pause = func() { trouble.Pass(name) }
					if way == "with a lease" {
						cfg.Store = store.View(name)
					}
					cfg.Run = func(ctx context.Context, r *singleton.Run) error {
						runs <- run{name, r.Token()}
						select {
						case <-end:
						case <-ctx.Done():
						}
						return nil
					}
				})
				crew.startAll(3)
				defer crew.stop()
				require.Equal(t, "n1", (<-runs).member)
				end <- struct{}{}
				time.Sleep(singleton.DefaultConfig().RestartAfter / 2)
				trouble.Pause("n1")
				next := <-runs
				require.Equal(t, "n2", next.member)
				trouble.End()
				time.Sleep(2 * time.Minute)
				for len(runs) > 0 {
					r := <-runs
					require.GreaterOrEqual(t, r.token, next.token, "%s", r.member)
				}
			})
		})
	}
}
