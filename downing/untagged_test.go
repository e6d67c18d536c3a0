package downing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// A member without a resolver that crashes is no partition for ever: it is decided about like any other, or does not count.
func TestUntagged_CrashSuspendsNobodyForEver(t *testing.T) {
	for _, lone := range []bool{false, true} {
		virtual(t, nil, func(t *testing.T, c *cluster) {
			names := []string{"n1"}
			if lone {
				c.start("n1")
				time.Sleep(10 * time.Second)
			} else {
				names = c.startAll(3)
			}
			plain, err := startAt(c, "plain")
			require.NoError(t, err)
			time.Sleep(time.Minute)
			require.Equal(t, []string{"plain"}, c.members["n1"].provider.Status().Untagged)
			require.NoError(t, c.net.Freeze("plain"))
			time.Sleep(5 * time.Minute)
			for _, n := range names {
				require.Equal(t, sbr.StateUp, c.members[n].provider.Status().State, n)
			}
			require.Equal(t, names, c.up())
			require.NoError(t, c.net.Thaw("plain"))
			require.NoError(t, plain.Shutdown())
		})
	}
}
