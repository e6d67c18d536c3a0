package singleton_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/singleton"
)

// Until is the moment at which Check fails when nothing is renewed any more, and moves on while something is.
func TestRun_UntilIsWhenCheckFails(t *testing.T) {
	for _, way := range []string{"without a lease", "with a lease"} {
		t.Run(way, func(t *testing.T) {
			clustertest.Virtual(t, clustertest.Options{Config: func(name string, c *downing.Config) {
				clustertest.Quick(name, c)
				c.Resolver.WhenLeaseUnknown = 1 // suspend: the resolver stops nothing here
			}}, func(t *testing.T, cl *clustertest.Cluster) {
				stores, runs := leasetest.NewMemory(), make(chan *singleton.Run, 10)
				store := stores.View("n1")
				c := newCrew(t, cl, func(name string, c *singleton.Config) {
					c.Run = func(ctx context.Context, r *singleton.Run) error {
						runs <- r
						<-ctx.Done()
						return nil
					}
					if way == "with a lease" && name == "n1" {
						c.Store = store
					} else if way == "with a lease" {
						c.Store = stores.View(name)
					}
				})
				c.startAll(3)
				defer c.stop()
				r := <-runs
				first, ok := r.Until()
				require.True(t, ok)
				require.Positive(t, time.Until(first))
				time.Sleep(time.Minute)
				last, ok := r.Until()
				require.True(t, ok)
				require.Positive(t, time.Until(last), "it moves on")
				require.Less(t, time.Until(last), time.Minute)

				store.SetUnavailable(true)
				c.Member("n1").Store.SetUnavailable(true)
				require.NoError(t, c.Net.Partition([]string{"n1"}, []string{"n2", "n3"}))
				for at, ok := r.Until(); ok; at, ok = r.Until() {
					require.NoError(t, r.Check())
					last = at
					time.Sleep(time.Millisecond)
				}
				require.ErrorIs(t, r.Check(), singleton.ErrNotRunning)
				require.WithinDuration(t, last, time.Now(), 2*time.Millisecond)
			})
		})
	}
}
