package downing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// A member that the newest verdict downed is shown until it is back, though Serf lists it no longer; and a
// member that is down does not call itself reachable.
func TestStatus_ShowsWhoWasDowned(t *testing.T) {
	virtual(t, clustertest.MajorityFirst, func(t *testing.T, c *cluster) {
		members := func(name string) int { return len(c.provider(name).Status().Members) }
		c.Form(3)
		id := c.id("n3")
		require.NoError(t, c.Net.Partition([]string{"n1", "n2"}, []string{"n3"}))
		gone := []downing.MemberStatus{{Name: "n3", Incarnation: string(id), Status: sbr.Down.String()}}
		for _, name := range []string{"n1", "n2"} {
			c.Eventually(2*time.Minute, "n3 is not removed", func() bool { return members(name) == 2 })
			require.Equal(t, gone, c.provider(name).Status().Downed, name)
		}
		<-c.provider("n3").Done()
		s := c.provider("n3").Status()
		require.Equal(t, sbr.StateDown, s.State)
		require.Empty(t, s.Downed, "it is listed")
		for _, m := range s.Members {
			require.False(t, m.Reachable, m.Name)
			require.Equal(t, m.Name == "n3", m.Status == sbr.Down.String(), m.Name)
		}

		c.Net.Heal()
		c.Boot("n3", "n1")
		c.Eventually(time.Minute, "n3 is not back", func() bool { return members("n1") == 3 })
		require.Empty(t, c.provider("n1").Status().Downed)
		require.NotZero(t, c.provider("n1").Status().Verdict.Token, "the verdict still names it")
	})
}
