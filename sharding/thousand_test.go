package sharding_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/sharding"
)

func (r *register) started() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.starts {
		n += k
	}
	return n
}

// A thousand shards on twenty members, of which one leaves: its shards move, and those that bounded load
// forces to; all run again within five seconds.
func TestThousandShards_OneOfTwentyMembersLeaves(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while: left out by -short")
	}
	clustertest.Virtual(t, clustertest.Options{Config: clustertest.Quick},
		func(t *testing.T, cl *clustertest.Cluster) {
			c := newCrew(t, cl, 1000)
			// the twentieth member need not wait for long
			c.change = func(_ string, cfg *sharding.Config) { cfg.MaxMoves = 100 }
			c.startAll(20)
			defer c.stop()
			c.settles(2 * time.Minute)
			c.rests(10*time.Minute, 20*time.Second)
			had, before, left := c.register.on()["n7"], c.register.started(), time.Now()
			go func() { _ = c.managers["n7"].Stop(t.Context()) }()
			c.Eventually(time.Minute, "its shards do not move",
				func() bool { return c.register.on()["n7"] == 0 && c.register.all() == 1000 })
			settled := time.Since(left)
			moved := c.register.started() - before
			c.rests(10*time.Minute, 20*time.Second)
			t.Logf("it had %d shards: %d moved within %v, %d later; nothing ran for at most %v", had, moved, settled,
				c.register.started()-before-moved,
				longest(c.register.gaps))
			require.LessOrEqual(t, settled, 5*time.Second)
			require.LessOrEqual(t, c.register.started()-before, had+had/10, "bounded load may force a few others")
			require.Empty(t, c.register.broken)
		})
}

// rests waits until nothing has started for a while.
func (c *crew) rests(within, quiet time.Duration) {
	c.t.Helper()
	last, since := c.register.started(), time.Now()
	c.Eventually(within, "shards move on and on", func() bool {
		if n := c.register.started(); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) >= quiet
	})
}

func longest(all []time.Duration) (d time.Duration) {
	for _, x := range all {
		d = max(d, x)
	}
	return d
}
