package downing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/lease"
)

// The runbook's page about a spent token, played: nobody could win the next cut, a reset while members run is undone by them, and one with
// all members stopped holds. They come back as one cluster that decides its cuts as before.
func TestForgets_SpentTokenIsReset(t *testing.T) {
	for _, forget := range []bool{false, true} {
		clustertest.Virtual(t, clustertest.Options{Config: clustertest.MajorityFirst}, func(t *testing.T, cl *clustertest.Cluster) {
			c := &cluster{cl, t}
			_, rec := c.afterOneVerdict()
			rec.Token = lease.MaxToken
			c.Store.Restore(rec)
			time.Sleep(time.Minute)
			operator := c.Store.View("operator")
			require.Equal(t, lease.MaxToken, c.provider("n1").Status().Lease.Token, "what sbr lease reset asks an agent for")

			_, after, err := lease.Reset(t.Context(), operator, forget)
			require.NoError(t, err)
			require.Less(t, after.Token, uint64(3))
			time.Sleep(time.Minute)
			require.Equal(t, lease.MaxToken, c.Store.Snapshot().Record.Token, "a member that runs writes back what it remembers")

			four := []string{"n1", "n2", "n3", "n4"}
			for _, n := range four {
				require.NoError(t, c.Member(n).Leave())
			}
			_, _, err = lease.Reset(t.Context(), operator, forget)
			require.NoError(t, err)
			for i, n := range four {
				c.Boot(n, four[:i]...)
			}
			c.requireWhole(5*time.Minute, four...)
			require.NoError(t, c.Net.Partition([]string{"n1", "n2", "n3", "n5"}, []string{"n4"}))
			c.requireOneSide([][]string{{"n1", "n2", "n3"}}, 5*time.Minute)
		})
	}
}
