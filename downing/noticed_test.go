package downing_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/clustertest"
)

// A single broken link between two members that are no neighbours is noticed by everybody: among 20 within 10
// s, among 50 within 30 s, among 100 within a minute (the 99th percentile). SBR_NOTICED=N plays each size N
// times, instead of 20 members twice; -v shows the times.
func TestNoticed_OneBrokenLink(t *testing.T) {
	long(t)
	plays, limits := 2, map[int]time.Duration{20: 10 * time.Second}
	if _, err := fmt.Sscan(os.Getenv("SBR_NOTICED"), &plays); err == nil {
		limits[50], limits[100] = 30*time.Second, time.Minute
	}
	for n, limit := range limits {
		t.Run(fmt.Sprint(n, " members"), func(t *testing.T) {
			var took []time.Duration
			for i := range plays {
				took = append(took, noticed(t, n, uint64(i+1)))
			}
			slices.Sort(took)
			p99 := took[(len(took)*99+99)/100-1]
			t.Logf("%d members, %d plays: noticed by everybody after p50 %.1f s, p99 %.1f s", n, plays, took[len(took)/2].Seconds(), p99.Seconds())
			require.LessOrEqual(t, p99, limit)
		})
	}
}

// noticed breaks a link of a whole cluster, and returns how long it takes until everybody has a report of it.
func noticed(t *testing.T, n int, seed uint64) (took time.Duration) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	clustertest.Virtual(t, clustertest.Options{}, func(t *testing.T, c *clustertest.Cluster) {
		names := c.Form(n)
		time.Sleep(time.Duration(rng.IntN(30_000)) * time.Millisecond) // virtual: at any moment of the sweep
		pair := rng.Perm(n)
		x, y := names[pair[0]], names[pair[1]]
		require.NoError(t, c.Net.Cut(x, y))
		start := time.Now()
		c.Eventually(3*time.Minute, "somebody has not noticed", func() bool {
			for _, m := range c.Members() {
				seen := false
				for _, r := range m.Provider.Status().Reports {
					seen = seen || r.Observer == x && r.Subject == y || r.Observer == y && r.Subject == x
				}
				if !seen {
					return false
				}
			}
			return true
		})
		took = time.Since(start)
	})
	return took
}
