package hosts_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
)

const (
	// resolveWithin bounds one resolution with cluster.Fast on a busy machine; alone it takes some 8 s.
	resolveWithin = 90 * time.Second
	// rejoinWithin bounds how long a healed cluster takes to be whole: Serf tries to reconnect every 30 s.
	rejoinWithin = 150 * time.Second
	// reachesStore bounds double-active time where the losers reach the store: they watch the verdict.
	reachesStore = 2 * time.Second
)

// restarting is Fast for clusters whose losers are started again while the cut lasts: they wait until they
// are more than a side.
func restarting(members int) cluster.Options {
	return cluster.Options{Settings: cluster.Fast().With("min-members", members), RestartAfter: time.Second}
}

// A cluster is cut; exactly one side stays, the losers' processes end with status 70, start again as new
// incarnations and, once the cut is healed, belong to the winners again.
func TestPartition_ExactlyOneSideStays(t *testing.T) {
	for _, tc := range []struct {
		name    string
		sides   [][]string
		encrypt string // the gossip key: with one everything works as without
	}{
		{"halves 3|2", [][]string{{"n1", "n2", "n3"}, {"n4", "n5"}}, ""},
		{"lone 4|1", [][]string{{"n2", "n3", "n4", "n5"}, {"n1"}}, "T9jncgl9mbLus+baTTa7q7nPSUrXwbDi2dhbtqir37s="},
		{"three-way 2|2|1", [][]string{{"n1", "n2"}, {"n3", "n4"}, {"n5"}}, ""},
	} {
		for _, m := range allModes {
			t.Run(tc.name+" "+m.name, func(t *testing.T) {
				t.Parallel()
				o := restarting(3)
				o.Encrypt = tc.encrypt
				r := newRig(t, m, o)
				before := r.incarnations()
				require.NoError(t, r.lab.Partition(tc.sides...))
				up := r.waitOneSide(resolveWithin)
				require.Contains(t, tc.sides, up, "one side, whole")
				losers := without(five, up)
				require.ElementsMatch(t, losers, r.downed())
				for _, name := range losers {
					require.Equal(t, 70, r.Exits(name)[0].Code)
				}
				for _, name := range up {
					require.Empty(t, r.Exits(name))
				}
				r.requireDoubleActive(reachesStore)

				require.NoError(t, r.lab.Heal())
				r.waitWhole(rejoinWithin)
				after := r.incarnations()
				for _, name := range five {
					require.Equal(t, before[name] != after[name], r.lost(name), name)
				}
				r.verify()
			})
		}
	}
}

func (r *rig) lost(name string) bool { return len(r.Exits(name)) > 0 }

// requireDoubleActive bounds how long losers worked on after the verdict, and says how long it was.
func (r *rig) requireDoubleActive(bound time.Duration) {
	r.t.Helper()
	all, err := r.DoubleActive()
	require.NoError(r.t, err)
	for _, a := range all {
		r.t.Logf("%s was at work for %v after verdict %d", a.Member, a.For, a.Verdict)
		require.LessOrEqual(r.t, a.For, bound, a.Member)
	}
}

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
