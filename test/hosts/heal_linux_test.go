package hosts_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The losers are started again while the cut lasts, find each other, and wait: fewer than min-members are no
// cluster. However long that takes, once the cut is healed they belong to the winners.
func TestHeal_LosersThatFoundEachOtherJoinTheWinners(t *testing.T) {
	for _, m := range allModes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, m, restarting(3))
			require.NoError(t, r.lab.Partition([]string{"n1", "n2", "n3"}, []string{"n4", "n5"}))
			up := r.waitOneSide(resolveWithin)
			losers := without(five, up)
			require.Eventually(t, func() bool {
				for _, name := range losers {
					s, err := r.Member(name).Status(t.Context())
					if err != nil || len(s.Members) < len(losers) {
						return false
					}
				}
				return true
			}, 2*time.Minute, 100*time.Millisecond, "the restarted losers find each other")
			// The winners remove the losers, and Serf stops looking for them.
			time.Sleep(20 * time.Second)
			require.Equal(t, up, r.waitOneSide(resolveWithin), "the losers wait")

			require.NoError(t, r.lab.Heal())
			r.waitWhole(rejoinWithin)
			r.verify()
		})
	}
}
