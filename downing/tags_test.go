package downing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// fill makes the application's tags so large that those of the resolver have no room beside them.
func (c *cluster) fill(name string, bytes int) {
	c.t.Helper()
	require.NoError(c.t, c.Member(name).Serf.SetTags(map[string]string{"app": string(make([]byte, bytes))}))
}

// A member whose application has filled its tags has no identity in the member list. It takes no new work and
// says why, however long it lasts; it reports to the others that it is still the same member, so that no
// decision is about it; and it goes on as soon as its tags fit again.
func TestTags_Full(t *testing.T) {
	long(t)
	metered(t, 3, clustertest.MajorityFirst, func(t *testing.T, c *cluster, m *meters) {
		c.fill("n2", 480)
		time.Sleep(5 * time.Second)
		for range 2 {
			st := c.provider("n2").Status()
			require.Equal(t, sbr.StateSuspended, st.State)
			require.Contains(t, st.SuspendedBecause, "the tags of this node take ")
			require.Contains(t, st.SuspendedBecause, "Serf allows 512")
			for _, n := range []string{"n1", "n3"} {
				require.Equal(t, sbr.StateUp, c.provider(n).Status().State, n)
			}
			time.Sleep(10 * time.Minute)
		}
		m.require("n2", "sbr.suspensions{cause=tags} = 1")
		require.Zero(t, c.Store.Snapshot().Record.Token, "nobody was decided about")

		c.fill("n2", 100)
		c.Whole(3)
		time.Sleep(5 * time.Second)
		for _, m := range c.Member("n1").Serf.Members() {
			require.NotEmpty(t, m.Tags[downing.TagUID], "%s: they are put back beside the application's", m.Name)
		}
	})
}

// While its tags are full a member is one of its side as before: a cut is decided by the sides as they are.
func TestTags_FullInACut(t *testing.T) {
	long(t)
	formed(t, 3, clustertest.MajorityFirst, func(t *testing.T, c *cluster) {
		c.fill("n2", 480)
		time.Sleep(5 * time.Minute)
		require.NoError(t, c.Net.Partition([]string{"n1", "n2"}, []string{"n3"}))
		c.requireOneSide([][]string{{"n1", "n2"}}, 5*time.Minute)
		require.Equal(t, sbr.StateSuspended, c.provider("n2").Status().State,
			"the cut is decided, its tags are still full")
	})
}
