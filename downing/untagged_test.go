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
				c.Boot("n1")
				time.Sleep(10 * time.Second)
			} else {
				names = c.Form(3)
			}
			plain, err := startAt(c, "plain")
			require.NoError(t, err)
			time.Sleep(time.Minute)
			require.Equal(t, []string{"plain"}, c.provider("n1").Status().Untagged)
			require.NoError(t, c.Net.Freeze("plain"))
			time.Sleep(5 * time.Minute)
			for _, n := range names {
				require.Equal(t, sbr.StateUp, c.provider(n).Status().State, n)
			}
			require.Equal(t, names, c.Up())
			require.NoError(t, c.Net.Thaw("plain"))
			require.NoError(t, plain.Shutdown())
		})
	}
}
