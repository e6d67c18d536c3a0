package downing_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// virtual runs a test on a fresh cluster in virtual time.
func virtual(t *testing.T, config func(string, *downing.Config), f func(t *testing.T, c *cluster)) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, config)
		defer c.stop()
		f(t, c)
	})
}

var nineOne = [][]string{{"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9"}, {"n10"}}

// A lone node of ten learns last. Even without the watch, and cut off from the lease store as well, it is down within the
// bound: its own probes, stable-after, the minority delay and the lease deadline.
func TestSplit_LoneNodeWithoutWatchAndStore(t *testing.T) {
	virtual(t, func(_ string, c *downing.Config) { c.NoWatch = true }, func(t *testing.T, c *cluster) {
		c.startAll(10)
		c.store.View("n10").SetUnavailable(true)
		require.NoError(t, c.net.Partition(nineOne...))
		cut := time.Now()
		c.requireOneSide(nineOne, 90*time.Second)
		took := c.members["n10"].downAt().Sub(cut)
		t.Logf("the lone node was down %v after the cut: %s", took, c.members["n10"].provider.Reason())
		require.Less(t, took, 60*time.Second)
		require.Equal(t, nineOne[0], sortedLikeNames(c.up()))
	})
}

func sortedLikeNames(names []string) []string {
	slices.SortFunc(names, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		if a < b {
			return -1
		}
		return 1
	})
	return names
}

// S2: a member that stood still through everything reads its fate before it does anything else, and goes down although the
// cut has healed and everybody answers it.
func TestPause_DownedWhileItStoodStill(t *testing.T) {
	var gates gates
	// Without the watch nothing but the pause itself makes it look.
	virtual(t, func(name string, c *downing.Config) {
		gates.config(name, c)
		c.NoWatch = true
	}, func(t *testing.T, c *cluster) {
		c.startAll(5)
		gates.close("n5")
		require.NoError(t, c.net.Freeze("n5"))
		time.Sleep(5 * time.Minute)
		require.Equal(t, []string{"n1", "n2", "n3", "n4", "n5"}, c.up(), "n5 does not know yet")
		require.Len(t, c.store.Snapshot().Record.Verdict.Down, 1)

		require.NoError(t, c.net.Thaw("n5"))
		gates.open("n5")
		time.Sleep(time.Second)
		require.True(t, c.down("n5"))
		require.Contains(t, c.members["n5"].provider.Reason(), "does not list this member")
		require.True(t, slices.ContainsFunc(c.occurred("n5"), func(o downing.Occurrence) bool { return o.Kind == string(sbr.TopicPaused) }), "the pause was noticed")
		require.Equal(t, []string{"n1", "n2", "n3", "n4"}, c.up())
	})
}

// S2: a lone node whose partition heals before it has decided, and which cannot reach the store, hears from the winners that
// it was downed.
func TestHeal_LoserIsToldByTheWinners(t *testing.T) {
	virtual(t, nil, func(t *testing.T, c *cluster) {
		c.startAll(5)
		c.store.View("n5").SetUnavailable(true)
		require.NoError(t, c.net.Partition([]string{"n1", "n2", "n3", "n4"}, []string{"n5"}))
		c.eventually(time.Minute, func() bool { return c.store.Snapshot().Record.Verdict != nil }, "no verdict")
		require.False(t, c.down("n5"), "it cannot know")
		c.net.Heal()
		c.eventually(time.Minute, func() bool { return c.down("n5") }, "n5 was not told")
		require.Equal(t, []string{"n1", "n2", "n3", "n4"}, c.up())
	})
}

// A loser that never noticed the partition, and does not watch the lease, asks nobody. When it comes back, the winners do not keep
// it waiting outside for ever: they let it in to tell it.
func TestHeal_LoserThatNoticedNothingIsTold(t *testing.T) {
	blind := func(_ string, c *downing.Config) { c.NoWatch, c.Probe.Neighbours = true, 0 }
	virtual(t, blind, func(t *testing.T, c *cluster) {
		c.serf = func(name string, conf *serf.Config) {
			if name == "n4" {
				conf.MemberlistConfig.ProbeInterval = time.Hour
			}
		}
		c.startAll(4)
		require.NoError(t, c.net.Partition([]string{"n1", "n2", "n3"}, []string{"n4"}))
		c.eventually(2*time.Minute, func() bool { return c.store.Snapshot().Record.Verdict != nil }, "no verdict")
		time.Sleep(time.Minute)
		require.Equal(t, sbr.StateUp, c.members["n4"].provider.Status().State, "it has noticed nothing")
		c.net.Heal()
		c.eventually(2*time.Minute, func() bool { return c.down("n4") }, "n4 was not told")
		require.Equal(t, []string{"n1", "n2", "n3"}, c.up())
	})
}

// A heal before anybody has decided downs nobody, ends the suspension and writes nothing.
func TestHeal_BeforeTheDecision(t *testing.T) {
	virtual(t, nil, func(t *testing.T, c *cluster) {
		c.startAll(5)
		var heard []string
		c.members["n5"].provider.OnSuspend(func(string) { heard = append(heard, "suspended") })
		c.members["n5"].provider.OnResume(func(string) { heard = append(heard, "resumed") })
		require.NoError(t, c.net.Partition([]string{"n1", "n2", "n3"}, []string{"n4", "n5"}))
		time.Sleep(15 * time.Second)
		require.Equal(t, sbr.StateSuspended, c.members["n5"].provider.Status().State)
		c.net.Heal()
		time.Sleep(3 * time.Minute)
		require.Len(t, c.up(), 5)
		require.Equal(t, []string{"suspended", "resumed"}, heard)
		require.Empty(t, c.store.History())
	})
}

// L3: while the cluster is whole nothing is written, for hours, with members that come and go gracefully.
func TestWhole_NothingIsWritten(t *testing.T) {
	virtual(t, nil, func(t *testing.T, c *cluster) {
		c.startAll(3)
		time.Sleep(10 * time.Minute)
		c.start("n4", "n1")
		time.Sleep(time.Minute)
		require.NoError(t, c.members["n4"].serf.Leave())
		require.NoError(t, c.members["n4"].serf.Shutdown())
		time.Sleep(10 * time.Minute)
		require.Empty(t, c.store.History())
		require.False(t, c.down("n4"), "a graceful leave is not a downing")
		require.Len(t, c.members["n1"].provider.Status().Members, 3)
	})
}

// F1: a node whose Serf is shut down under it fails safe.
func TestFailSafe_SerfClosedUnderIt(t *testing.T) {
	virtual(t, nil, func(t *testing.T, c *cluster) {
		c.startAll(3)
		require.NoError(t, c.members["n3"].serf.Shutdown())
		time.Sleep(time.Second)
		require.True(t, c.down("n3"))
		require.Contains(t, c.members["n3"].provider.Reason(), "the resolver failed")
	})
}

// F1: a panic in the resolver's own machinery downs the member instead of leaving it unprotected.
func TestFailSafe_Panic(t *testing.T) {
	var armed atomic.Bool
	virtual(t, func(name string, c *downing.Config) {
		c.Pause = func() {
			if armed.Load() && name == "n2" {
				panic("a broken hook")
			}
		}
	}, func(t *testing.T, c *cluster) {
		c.startAll(3)
		armed.Store(true)
		time.Sleep(2 * time.Second)
		require.True(t, c.down("n2"))
		require.Contains(t, c.members["n2"].provider.Reason(), "panic: a broken hook")
	})
}

// S1: the answer to the winning write is lost, and the writer dies. Its side still survives: another member finds the verdict.
func TestVerdict_AnswerLostAndWriterCrashes(t *testing.T) {
	var gates gates
	virtual(t, gates.config, func(t *testing.T, c *cluster) {
		c.startAll(5)
		c.store.View("n1").LoseResponses(1)
		c.store.OnCommit(func(lease.Record) { gates.close("n1") })
		require.NoError(t, c.net.Partition([]string{"n1", "n2", "n3"}, []string{"n4", "n5"}))
		c.eventually(time.Minute, func() bool { return c.store.Snapshot().Record.Verdict != nil }, "no verdict")
		c.store.View("n1").SetUnavailable(true)
		require.NoError(t, c.net.Freeze("n1"))
		defer gates.open("n1")
		c.eventually(2*time.Minute, func() bool { return c.down("n4") && c.down("n5") }, "the losers are still up")
		time.Sleep(3 * time.Minute)
		require.False(t, c.down("n2"))
		require.False(t, c.down("n3"))
	})
}

// L1: the leader of the only side that reaches the store cannot reach it itself; another member of its side races in its place.
func TestLease_AnotherMemberRacesForTheLeader(t *testing.T) {
	virtual(t, majorityFirst, func(t *testing.T, c *cluster) {
		c.startAll(5)
		for _, n := range []string{"n1", "n2", "n4", "n5"} {
			c.store.View(n).SetUnavailable(true)
		}
		groups := [][]string{{"n1", "n2", "n3"}, {"n4", "n5"}}
		require.NoError(t, c.net.Partition(groups...))
		c.requireOneSide(groups, 2*time.Minute)
		require.Equal(t, groups[0], c.up())
		require.Equal(t, "n3", downing.NameOf(c.store.Snapshot().Record.Verdict.DecidedBy))
	})
}

// S4: when nobody reaches the store, nobody takes that for a grant: every side goes down.
func TestLease_StoreUnreachableForAll(t *testing.T) {
	virtual(t, nil, func(t *testing.T, c *cluster) {
		for _, n := range c.startAll(5) {
			c.store.View(n).SetUnavailable(true)
		}
		require.NoError(t, c.net.Partition([]string{"n1", "n2", "n3"}, []string{"n4", "n5"}))
		c.eventually(2*time.Minute, func() bool { return len(c.up()) == 0 }, "somebody is still up")
	})
}

// A member that must not be counted, because it runs no resolver, neither decides nor is told; it is named in the status.
func TestUntagged_IsNamedAndNotCounted(t *testing.T) {
	virtual(t, nil, func(t *testing.T, c *cluster) {
		c.startAll(2)
		plain := startPlain(t, c, "plain")
		time.Sleep(10 * time.Second)
		s := c.members["n1"].provider.Status()
		require.Equal(t, []string{"plain"}, s.Untagged)
		require.Equal(t, "joining", s.Members[slices.IndexFunc(s.Members, func(m downing.MemberStatus) bool { return m.Name == "plain" })].Status)
		require.NoError(t, plain.Shutdown())
	})
}

// A restarted member under its old name is another incarnation: it is admitted although the old one was downed.
func TestRestart_NewIncarnationIsAdmitted(t *testing.T) {
	virtual(t, majorityFirst, func(t *testing.T, c *cluster) {
		c.startAll(5)
		require.NoError(t, c.net.Partition([]string{"n1", "n2", "n3", "n4"}, []string{"n5"}))
		c.eventually(2*time.Minute, func() bool { return c.down("n5") }, "n5 is still up")
		old := c.members["n5"].provider
		<-old.Done()
		c.net.Heal()
		c.start("n5", "n1")
		c.eventually(time.Minute, func() bool {
			s := c.members["n1"].provider.Status()
			return len(s.Members) == 5 && len(s.Unreachable) == 0 && s.State == sbr.StateUp
		}, "the new n5 is no member")
		time.Sleep(3 * time.Minute)
		require.Len(t, c.up(), 5)
		require.NoError(t, old.Stop(context.Background()))
	})
}

// Every strategy that counts instead of asking a lease resolves a clean cut on real Serf as well.
func TestSplit_StrategiesWithoutALease(t *testing.T) {
	for strategy, winners := range map[string][]string{
		"keep-majority": {"n1", "n2", "n3"}, "static-quorum": {"n1", "n2", "n3"}, "keep-oldest": {"n1", "n2", "n3"}, "keep-referee": {"n4", "n5"}, "down-all": nil,
	} {
		t.Run(strategy, func(t *testing.T) {
			virtual(t, func(_ string, c *downing.Config) {
				c.Strategy, c.Store = strategy, nil
				c.Strategies.StaticQuorum.QuorumSize = 3
				c.Strategies.KeepReferee.Address = "n4"
			}, func(t *testing.T, c *cluster) {
				c.startAll(5)
				require.NoError(t, c.net.Partition([]string{"n1", "n2", "n3"}, []string{"n4", "n5"}))
				c.requireOneSide([][]string{winners}, 2*time.Minute)
				time.Sleep(2 * time.Minute)
				c.net.Heal()
				time.Sleep(2 * time.Minute)
				require.Equal(t, winners, c.up())
			})
		})
	}
}
