package downing_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/memnet"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// minorityWins cuts n1 n2 n3 off from the store and from n4 n5, which win.
func minorityWins(t *testing.T, c *cluster) {
	t.Helper()
	c.storeAway(upper...)
	c.removes(lower, upper)
	// losers can be down before it
	c.Eventually(time.Minute, "no verdict", func() bool { return c.provider("n4").Status().State == "up" })
	c.storeBack(upper...)
}

func three(_ string, c *downing.Config) { c.Resolver.MinMembers = 3 }

// Downed members that are started again while the cut lasts find each other, and are enough to be a cluster.
// They wait all the same: the cluster is the one that the verdict has left. After the heal they join it.
func TestNewcomer_RestartedLosersAreNoSecondCluster(t *testing.T) {
	formed(t, 5, three, func(t *testing.T, c *cluster) {
		minorityWins(t, c)
		c.Boot("n1")
		c.Boot("n2", "n1")
		c.Boot("n3", "n1")
		time.Sleep(10 * time.Minute)
		for _, n := range []string{"n1", "n2", "n3"} {
			s := c.provider(n).Status()
			require.Equal(t, sbr.StateSuspended, s.State, n)
			require.Equal(t, []string{"n4", "n5"}, s.Awaiting, n)
			require.Contains(t, s.SuspendedBecause, "no survivor of the last verdict found: n4, n5", n)
			require.True(t, slices.ContainsFunc(c.Occurred(n), func(o downing.Occurrence) bool {
				return strings.HasPrefix(o.Text, "verdict 1 by n4: ")
			}), "%s does not know n4, and names it", n)
		}
		require.Equal(t, sbr.StateUp, c.provider("n4").Status().State)

		// One of them crashes: the others, which wait, decide nothing that could reach the winners.
		require.NoError(t, c.Net.Freeze("n3"))
		time.Sleep(5 * time.Minute)
		require.Equal(t, uint64(1), c.Store.Snapshot().Record.Verdict.Token)
		require.NoError(t, c.Net.Thaw("n3"))

		c.Net.Heal()
		require.NoError(t, c.Join(c.Member("n1").Serf, "n4"))
		c.Eventually(5*time.Minute, "not all are up again", func() bool {
			for _, m := range c.Members() {
				if s := m.Provider.Status(); s.State != sbr.StateUp || len(s.Unreachable) > 0 {
					return false
				}
			}
			return true
		})
		require.Len(t, c.Up(), 5)
	})
}

// A loser that starts again in the cut hears of the winners from a node that has not missed them yet, as from
// a Serf agent that lived on. To find the cluster is to have an answer of its members: until the heal it
// waits, and writes no verdict against them.
func TestNewcomer_HearsayIsNoCluster(t *testing.T) {
	long(t)
	// before Serf has missed anybody
	soon := func(_ string, c *downing.Config) { c.Resolver.StableAfter = 5 * time.Second }
	formed(t, 5, soon, func(t *testing.T, c *cluster) {
		relay := c.Node("relay", func(conf *serf.Config) { conf.MemberlistConfig.ProbeInterval = time.Hour })
		require.NoError(t, c.Join(relay, "n1"))
		winners := []string{"n1", "n2", "n3", "n4"}
		require.NoError(t, c.Net.Partition(winners, []string{"n5", "relay"}))
		c.requireOneSide([][]string{winners}, 5*time.Minute)
		<-c.provider("n5").Done()
		c.Boot("n5")
		require.NoError(t, c.Join(relay, "n5"))
		time.Sleep(10 * time.Minute)
		s := c.provider("n5").Status()
		require.True(t, s.Newcomer)
		require.Subset(t, s.Awaiting, winners)
		require.Equal(t, uint64(1), c.Store.Snapshot().Record.Verdict.Token)

		c.Net.Heal()
		require.NoError(t, c.Join(c.Member("n5").Serf, "n1"))
		c.Eventually(5*time.Minute, "n5 is not admitted",
			func() bool { return c.provider("n5").Status().State == sbr.StateUp })
		require.Len(t, c.Up(), 5)
	})
}

func (c *cluster) suspensions(name string) (n int) {
	for _, o := range c.Occurred(name) {
		if o.Kind == downing.OccurredSuspended {
			n++
		}
	}
	return n
}

// A member that was downed for a broken link and is started again behind it takes no part until every member
// has answered it: it suspends nobody, and no further verdict is written (design rule 17). It shows as
// joining meanwhile, and may crash.
func TestStart_BehindABrokenLinkWaits(t *testing.T) {
	long(t)
	for _, broken := range []struct {
		name string
		cut  func(n *memnet.Network, a, b string) error
	}{
		{"in both directions", (*memnet.Network).Cut},
		{"to it", (*memnet.Network).CutOneWay},
		{"from it", func(n *memnet.Network, a, b string) error { return n.CutOneWay(b, a) }},
	} {
		t.Run(broken.name, func(t *testing.T) {
			formed(t, 5, nil, func(t *testing.T, c *cluster) {
				require.NoError(t, broken.cut(c.Net, "n2", "n4"))
				<-c.provider("n4").Done()
				c.Boot("n4", "n1")
				time.Sleep(time.Minute)
				suspendedOnce := func() {
					for _, n := range []string{"n1", "n2", "n3", "n5"} {
						require.Equal(t, sbr.StateUp, c.provider(n).Status().State, n)
						require.Equal(t, 1, c.suspensions(n), n)
					}
				}
				waits := func() {
					suspendedOnce()
					s := c.provider("n4").Status()
					require.True(t, s.Newcomer)
					require.Equal(t, []string{"n2"}, s.Awaiting)
					require.Contains(t, s.SuspendedBecause, "do not answer this one: n2")
					require.Equal(t, uint64(1), c.Store.Snapshot().Record.Verdict.Token)
				}
				waits()
				time.Sleep(5 * time.Minute)
				waits()

				require.NoError(t, c.Net.Freeze("n4"))
				time.Sleep(time.Minute)
				suspendedOnce()
				require.NoError(t, c.Net.Thaw("n4"))
				c.Net.Heal()
				c.Eventually(5*time.Minute, "n4 is not admitted",
					func() bool { return c.provider("n4").Status().State == sbr.StateUp })
				c.Whole(5)
			})
		})
	}
}

// A cluster that starts with a broken link does not wait for it: one of its ends goes down as in any cut.
func TestStart_WithABrokenLink(t *testing.T) {
	virtual(t, nil, func(t *testing.T, c *cluster) {
		names := []string{"n1", "n2", "n3", "n4", "n5"}
		require.NoError(t, c.Net.Add(names...))
		require.NoError(t, c.Net.Cut("n2", "n4"))
		for i, n := range names {
			c.Boot(n, names[:min(i, 1)]...)
		}
		c.Eventually(5*time.Minute, "not four are up", func() bool {
			return len(c.Up()) == 4 && c.provider("n1").Status().State == sbr.StateUp
		})
		require.Equal(t, []string{"n1", "n2", "n3", "n5"}, c.Up())
	})
}

// When the whole cluster lost power and starts anew, nobody waits for survivors that are there as newer
// incarnations; a newcomer after them finds those that were admitted. A survivor that does not come back is
// waited for, until an operator says that it will not.
func TestNewcomer_ColdStart(t *testing.T) {
	formed(t, 3, clustertest.MajorityFirst, func(t *testing.T, c *cluster) {
		require.NoError(t, c.Net.Partition([]string{"n1", "n2"}, []string{"n3"}))
		c.requireOneSide([][]string{{"n1", "n2"}}, 5*time.Minute)
		c.crash("n1", "n2", "n3")
		c.Net.Heal()

		c.Boot("n1")
		time.Sleep(time.Minute)
		require.Equal(t, []string{"n2"}, c.provider("n1").Status().Awaiting)
		for _, n := range []string{"n2", "n3"} {
			c.Boot(n, "n1")
		}
		c.Eventually(time.Minute, "they wait",
			func() bool { return len(c.Up()) == 3 && c.provider("n3").Status().State == sbr.StateUp })
		c.Boot("n9", "n1")
		c.Eventually(time.Minute, "a newcomer after them waits",
			func() bool { return c.provider("n9").Status().State == sbr.StateUp })
	})
}

// The same beside agents, which ask for a look at the members before the lease was taken in. The token of the
// record is beyond that of the verdict: the lease was released since.
func TestNewcomer_BesideAgents(t *testing.T) {
	beside(t, 0, nil, func(t *testing.T, b *besides) {
		b.Store.Restore(lease.Record{Token: 7, Verdict: &sbr.Verdict{Token: 5, Survivors: []sbr.ID{"n9#u"},
			DecidedBy: "n9#u", Reason: "long ago"}})
		b.boot("n1")
		b.boot("n2", "n1")
		time.Sleep(10 * time.Minute)
		for _, n := range []string{"n1", "n2"} {
			s := b.provider(n).Status()
			require.True(t, s.Newcomer, n)
			require.Equal(t, []string{"n9"}, s.Awaiting, n)
			require.Equal(t, sbr.StateSuspended, s.State, n)
		}
		b.boot("n9", "n1") // its host is there again: nobody of the old cluster is left
		b.Whole(3)
		require.False(t, b.provider("n1").Status().Newcomer)
	})
}

// A newcomer goes on joining a member that its agent calls failed, although it pings nobody that has failed: a
// restarted agent has forgotten the address. It waits for as long as the agent may dial.
func TestNewcomer_BesideAnAgentThatMissesAMember(t *testing.T) {
	beside(t, 0, nil, func(t *testing.T, b *besides) {
		b.Store.Restore(lease.Record{Token: 7, Verdict: &sbr.Verdict{Token: 5, Survivors: []sbr.ID{"n9#u"},
			DecidedBy: "n9#u", Reason: "long ago"}})
		b.boot("n1")
		b.boot("n2", "n1")
		time.Sleep(time.Minute)
		require.NoError(t, b.Net.Partition([]string{"n1"}, []string{"n2"}))
		time.Sleep(3 * time.Minute)
		require.True(t, b.provider("n1").Status().Newcomer)
		a := b.agents["n1"]
		a.mu.Lock()
		defer a.mu.Unlock()
		require.Greater(t, len(a.joins), 6)
		require.Greater(t, slices.Min(a.joins), 30*time.Second)
	})
}

// What a downed predecessor left in the tags of its agent does not vouch for the member that begins after it.
func TestNewcomer_StaleTagVouchesForNobody(t *testing.T) {
	beside(t, 0, nil, func(t *testing.T, b *besides) {
		b.Store.Restore(lease.Record{Token: 5, Verdict: &sbr.Verdict{Token: 5, Survivors: []sbr.ID{"n9#u"},
			DecidedBy: "n9#u", Reason: "long ago"}})
		b.agent("n1", tagsOf("old", downing.TagSeen, "5", downing.TagIn, "5"))
		b.protect("n1", func(c *downing.Config) { c.Memory = remembering(t, `{"incarnation": "n1#old", "over": true}`) })
		b.boot("n2", "n1")
		time.Sleep(time.Minute)
		for _, n := range []string{"n1", "n2"} {
			require.True(t, b.provider(n).Status().Newcomer, n)
		}
	})
}

// A process that goes on for an agent whose tags say that the member waits goes on waiting, also where no
// verdict exists; it tells the others what it is in the end.
func TestNewcomer_GoesOnWaiting(t *testing.T) {
	beside(t, 0, nil, func(t *testing.T, b *besides) {
		a := b.agent("n1", tagsOf("old", downing.TagIn, "-"))
		b.protect("n1", func(c *downing.Config) {
			c.Memory = remembering(t, `{"incarnation": "n1#old", "members": [{"id": "n2#x"}]}`)
		})
		time.Sleep(10 * time.Second)
		s := b.provider("n1").Status()
		require.True(t, s.Newcomer)
		require.Equal(t, []string{"n2"}, s.Awaiting)
		b.boot("n2", "n1")
		b.Whole(2)
		node, err := a.answering()
		require.NoError(t, err)
		require.Equal(t, "0", node.LocalMember().Tags[downing.TagIn])
	})
}
