package agent

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/internal/config"
)

// Nodes of their own that are stopped at one moment do not wait for each other: a node without a receiver for
// its leave waits for less than Serf's time-out. Of two nodes, one is always left so; of more, seldom.
func TestOwn_AllStopAtOnce(t *testing.T) {
	asAgent := func(name string, conf *serf.Config) {
		own, err := serfConfig(&config.Serf{Node: name, Profile: "lan", Bind: "127.0.0.1:7946"}, clustertest.Logger(name))
		require.NoError(t, err)
		*conf = *own
	}
	for _, n := range []int{2, 3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			clustertest.Virtual(t, clustertest.Options{Serf: asAgent}, func(t *testing.T, c *clustertest.Cluster) {
				c.Form(n)
				ctx, cancel := context.WithTimeout(t.Context(), leaveTime)
				defer cancel()
				began := time.Now()
				var stops sync.WaitGroup
				for _, m := range c.Members() {
					o := &own{serf: m.Serf, stop: func() {}}
					stops.Go(func() { assert.NoError(t, o.leave(ctx, m.Provider), m.Name) })
				}
				stops.Wait()
				took := time.Since(began)
				t.Logf("stopped after %v", took)
				require.Less(t, took, serf.DefaultConfig().BroadcastTimeout)
			})
		})
	}
}
