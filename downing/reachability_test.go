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
		c.Form(5)
		require.NoError(t, c.Net.Cut("n1", "n2"))
		c.Eventually(time.Minute, "the cut is not noticed", func() bool { return len(c.provider("n4").Status().Unreachable) == 2 })
		require.Equal(t, []string{"n1", "n2"}, c.provider("n4").Status().Unreachable)
		for _, m := range c.Member("n4").Serf.Members() {
			require.Equal(t, serf.StatusAlive, m.Status, "Serf is blind to it")
		}
		c.requireOneSide([][]string{{"n3", "n4", "n5"}}, 2*time.Minute)
		v := c.Store.Snapshot().Record.Verdict
		require.Equal(t, []string{"n3", "n4", "n5"}, nodesOf(v.Survivors))
		require.Equal(t, []string{"n1", "n2"}, nodesOf(v.Down))
		time.Sleep(3 * time.Minute)
		c.Net.Heal()
		time.Sleep(time.Minute)
		require.Equal(t, []string{"n3", "n4", "n5"}, c.Up())
	})
}

// A pair cut that is mended before anybody decides downs nobody.
func TestPairCut_MendedInTime(t *testing.T) {
	virtual(t, func(_ string, c *downing.Config) { c.Resolver.DownAllWhenIndirectlyConnected = 1 }, func(t *testing.T, c *cluster) {
		names := c.Form(4)
		require.NoError(t, c.Net.Cut("n1", "n2"))
		c.Eventually(time.Minute, "the cut is not noticed", func() bool { return len(c.provider("n4").Status().Unreachable) == 2 })
		require.NoError(t, c.Net.Mend("n1", "n2"))
		time.Sleep(2 * time.Minute)
		require.Equal(t, names, c.Up())
		require.Empty(t, c.Store.History())
		for _, n := range names {
			require.Empty(t, c.provider(n).Status().Unreachable, n)
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
		c.Form(3)
		require.Equal(t, []string{"n3"}, c.provider("n1").Status().Disagree)
		require.Equal(t, []string{"n3"}, c.provider("n2").Status().Disagree)
		require.Equal(t, []string{"n1", "n2"}, c.provider("n3").Status().Disagree)
	})
}
