package downing_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/internal/race"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr/timing"
)

// splits is how many splits a measurement makes; SBR_SPLITS changes it (`make bench` makes 100).
func splits(usual int) int {
	if n, err := strconv.Atoi(os.Getenv("SBR_SPLITS")); err == nil && n > 0 {
		return n
	}
	if testing.Short() || race.Enabled {
		return max(usual/5, 1)
	}
	return usual
}

// storeDelay is what one request to the simulated lease store takes.
const storeDelay = 5 * time.Millisecond

// measureSplit cuts a cluster of real Serf nodes in virtual time and returns how long losers were up after the verdict
// was written.
func measureSplit(t *testing.T, nodes int, losers []string, cutStore bool) (doubleActive time.Duration) {
	virtual(t, nil, func(t *testing.T, c *cluster) {
		all := c.Form(nodes)
		for _, n := range all {
			c.Store.View(n).SetDelay(storeDelay)
		}
		// A cut can come at any moment of everything periodic.
		time.Sleep(time.Duration(rand.Int64N(int64(40 * time.Second))))
		var written time.Time
		c.Store.OnCommit(func(r lease.Record) {
			if written.IsZero() && r.Verdict != nil {
				written = time.Now()
			}
		})
		winners := slices.DeleteFunc(slices.Clone(all), func(n string) bool { return slices.Contains(losers, n) })
		require.NoError(t, c.Net.Partition(winners, losers))
		if cutStore {
			for _, n := range losers {
				c.Store.View(n).SetUnavailable(true)
			}
		}
		c.requireOneSide([][]string{winners, losers}, 3*time.Minute)
		for _, m := range c.Members() {
			if at := m.DownAt(); !at.IsZero() {
				doubleActive = max(doubleActive, at.Sub(written))
			}
		}
	})
	return doubleActive
}

// Losers that reach the store are down within 100 ms of virtual time after the verdict was written, whatever their own failure
// detector thinks.
func TestDoubleActive_LosersReachTheStore(t *testing.T) {
	shapes := [][]string{{"n4", "n5"}, {"n5"}, {"n1"}, {"n1", "n2"}}
	var q clustertest.Times
	for i := range splits(20) {
		q = append(q, measureSplit(t, 5, shapes[i%len(shapes)], false))
	}
	t.Logf("double-active time, losers reach the store: %v", q)
	require.LessOrEqual(t, q.At(0.99), 100*time.Millisecond)
}

// Losers that do not reach the store are down within the computed worst case.
func TestDoubleActive_LosersCutOffFromTheStore(t *testing.T) {
	cfg := downing.DefaultConfig()
	bound := timing.Compute(cfg.Timing(5, memberlist.DefaultLANConfig())).DoubleActive.CutOff
	shapes := [][]string{{"n4", "n5"}, {"n5"}, {"n1"}, {"n1", "n2"}}
	var q clustertest.Times
	for i := range splits(20) {
		q = append(q, measureSplit(t, 5, shapes[i%len(shapes)], true))
	}
	t.Logf("double-active time, losers cut off from the store: %v; computed worst case %v", q, bound)
	require.LessOrEqual(t, q.At(1), bound)
}
