package downing_test

import (
	"testing"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
)

// Serf does not see a cut between two members that the others reach: its indirect probes hide it. Our own probes do, and with
// the safeguard off the lease decides that exactly these two go down.
func TestPairCut_DownsTheIndirectlyConnected(t *testing.T) {
	virtual(t, func(_ string, c *downing.Config) { c.Resolver.DownAllWhenIndirectlyConnected = 1 }, func(t *testing.T, c *cluster) {
		c.startAll(5)
		require.NoError(t, c.net.Cut("n1", "n2"))
		c.eventually(time.Minute, func() bool { return len(c.members["n4"].provider.Status().Unreachable) == 2 }, "the cut is not noticed")
		require.Equal(t, []string{"n1", "n2"}, c.members["n4"].provider.Status().Unreachable)
		for _, m := range c.members["n4"].serf.Members() {
			require.Equal(t, serf.StatusAlive, m.Status, "Serf is blind to it")
		}
		c.requireOneSide([][]string{{"n3", "n4", "n5"}}, 2*time.Minute)
		v := c.store.Snapshot().Record.Verdict
		require.Equal(t, []string{"n3", "n4", "n5"}, names(v.Survivors))
		require.Equal(t, []string{"n1", "n2"}, names(v.Down))
		time.Sleep(3 * time.Minute)
		c.net.Heal()
		time.Sleep(time.Minute)
		require.Equal(t, []string{"n3", "n4", "n5"}, c.up())
	})
}

// A pair cut that is mended before anybody decides downs nobody.
func TestPairCut_MendedInTime(t *testing.T) {
	virtual(t, func(_ string, c *downing.Config) { c.Resolver.DownAllWhenIndirectlyConnected = 1 }, func(t *testing.T, c *cluster) {
		names := c.startAll(4)
		require.NoError(t, c.net.Cut("n1", "n2"))
		c.eventually(time.Minute, func() bool { return len(c.members["n4"].provider.Status().Unreachable) == 2 }, "the cut is not noticed")
		require.NoError(t, c.net.Mend("n1", "n2"))
		time.Sleep(2 * time.Minute)
		require.Equal(t, names, c.up())
		require.Empty(t, c.store.History())
		for _, n := range names {
			require.Empty(t, c.members[n].provider.Status().Unreachable, n)
		}
	})
}

// Members that would decide by other rules are named, by both.
func TestDigest_DisagreementIsNamed(t *testing.T) {
	virtual(t, func(name string, c *downing.Config) {
		if name == "n3" {
			c.Resolver.StableAfter = time.Minute
		}
	}, func(t *testing.T, c *cluster) {
		c.startAll(3)
		require.Equal(t, []string{"n3"}, c.members["n1"].provider.Status().Disagree)
		require.Equal(t, []string{"n3"}, c.members["n2"].provider.Status().Disagree)
		require.Equal(t, []string{"n1", "n2"}, c.members["n3"].provider.Status().Disagree)
	})
}
