package downing_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// A lone node of ten learns last. Even without the watch, and cut off from the lease store as well, it is
// down within the bound: its own probes, stable-after, the minority delay and the lease deadline.
func TestSplit_LoneNodeWithoutWatchAndStore(t *testing.T) {
	long(t)
	nineOne, _ := sidesOf("9|1")
	formed(t, 10, func(_ string, c *downing.Config) { c.Resolver.Watched = false },
		func(t *testing.T, c *cluster) {
			c.Store.View("n10").SetUnavailable(true)
			require.NoError(t, c.Net.Partition(nineOne...))
			cut := time.Now()
			c.requireOneSide(nineOne, 90*time.Second)
			took := c.Member("n10").DownAt().Sub(cut)
			t.Logf("the lone node was down %v after the cut: %s", took, c.provider("n10").Reason())
			require.Less(t, took, 60*time.Second)
			require.ElementsMatch(t, nineOne[0], c.Up())
		})
}

// S2: a member that stood still through everything reads its fate before it does anything else, and goes down
// although the cut has healed and everybody answers it.
func TestPause_DownedWhileItStoodStill(t *testing.T) {
	var gates clustertest.Gates
	// Without the watch nothing but the pause itself makes it look.
	virtual(t, func(name string, c *downing.Config) {
		gated(&gates)(name, c)
		c.Resolver.Watched = false
	}, func(t *testing.T, c *cluster) {
		c.Form(5)
		gates.Of("n5").Close()
		require.NoError(t, c.Net.Freeze("n5"))
		time.Sleep(5 * time.Minute)
		require.Equal(t, []string{"n1", "n2", "n3", "n4", "n5"}, c.Up(), "n5 does not know yet")
		require.Len(t, c.Store.Snapshot().Record.Verdict.Down, 1)

		require.NoError(t, c.Net.Thaw("n5"))
		gates.Of("n5").Open()
		time.Sleep(time.Second)
		require.True(t, c.Member("n5").Down())
		require.Contains(t, c.provider("n5").Reason(), "does not list this member")
		require.True(t, slices.ContainsFunc(c.Occurred("n5"),
			func(o downing.Occurrence) bool { return o.Kind == string(sbr.TopicPaused) }), "the pause was noticed")
		require.Equal(t, []string{"n1", "n2", "n3", "n4"}, c.Up())
	})
}

// S2: members that stood still together know nothing of what the others may have decided before they left.
// With a silent store they do not take each other's word; once the store answers they go on.
func TestPause_TogetherWhileTheOthersLeft(t *testing.T) {
	var gates clustertest.Gates
	formed(t, 4, gated(&gates), func(t *testing.T, c *cluster) {
		sleepers := []string{"n3", "n4"}
		for _, name := range sleepers {
			gates.Of(name).Close()
			c.Store.View(name).SetUnavailable(true)
		}
		for _, name := range []string{"n1", "n2"} {
			require.NoError(t, c.Member(name).Serf.Leave())
			require.NoError(t, c.Member(name).Serf.Shutdown())
		}
		time.Sleep(time.Minute)
		for _, name := range sleepers {
			gates.Of(name).Open()
		}
		for range 20 {
			time.Sleep(500 * time.Millisecond)
			for _, name := range sleepers {
				require.NotEqual(t, sbr.StateUp, c.provider(name).Status().State, name)
			}
		}
		c.storeBack(sleepers...)
		time.Sleep(10 * time.Second)
		for _, name := range sleepers {
			require.Equal(t, sbr.StateUp, c.provider(name).Status().State, name)
		}
	})
}

// S2: what the others had said before a member stood still is no answer to what it asks when it goes on.
func TestPause_AnAnswerFromBeforeDoesNotCount(t *testing.T) {
	var gates clustertest.Gates
	formed(t, 4, gated(&gates), func(t *testing.T, c *cluster) {
		gate := gates.Of("n4")
		c.Store.View("n4").SetUnavailable(true)
		gate.Close()
		time.Sleep(10 * time.Second)
		gate.Open()
		synctest.Wait() // it has asked for its standing
		gate.Close()
		time.Sleep(time.Second) // the answers are there, and it does not read them
		require.NoError(t, c.Net.Freeze("n4"))
		c.Eventually(time.Minute, "no verdict", func() bool { return c.Store.Snapshot().Record.Verdict != nil })
		gate.Open()
		for range 40 {
			time.Sleep(50 * time.Millisecond)
			require.NotEqual(t, sbr.StateUp, c.provider("n4").Status().State)
		}
	})
}

// S2: a lone node whose partition heals before it has decided, and which cannot reach the store, hears from
// the winners that it was downed.
func TestHeal_LoserIsToldByTheWinners(t *testing.T) {
	formed(t, 5, nil, func(t *testing.T, c *cluster) {
		c.Store.View("n5").SetUnavailable(true)
		require.NoError(t, c.Net.Partition([]string{"n1", "n2", "n3", "n4"}, []string{"n5"}))
		c.Eventually(time.Minute, "no verdict", func() bool { return c.Store.Snapshot().Record.Verdict != nil })
		require.False(t, c.Member("n5").Down(), "it cannot know")
		c.Net.Heal()
		c.Eventually(time.Minute, "n5 was not told", func() bool { return c.Member("n5").Down() })
		require.Equal(t, []string{"n1", "n2", "n3", "n4"}, c.Up())
	})
}

// A loser that never noticed the partition, and does not watch the lease, asks nobody. When it comes back,
// the winners do not keep it waiting outside for ever: they let it in to tell it.
func TestHeal_LoserThatNoticedNothingIsTold(t *testing.T) {
	blind := func(_ string, c *downing.Config) { c.Resolver.Watched, c.Probe.Neighbours = false, 0 }
	virtual(t, blind, func(t *testing.T, c *cluster) {
		c.Options.Serf = func(name string, conf *serf.Config) {
			if name == "n4" {
				conf.MemberlistConfig.ProbeInterval = time.Hour
			}
		}
		c.Form(4)
		require.NoError(t, c.Net.Partition([]string{"n1", "n2", "n3"}, []string{"n4"}))
		c.Eventually(2*time.Minute, "no verdict", func() bool { return c.Store.Snapshot().Record.Verdict != nil })
		time.Sleep(time.Minute)
		require.Equal(t, sbr.StateUp, c.provider("n4").Status().State, "it has noticed nothing")
		c.Net.Heal()
		c.Eventually(2*time.Minute, "n4 was not told", func() bool { return c.Member("n4").Down() })
		require.Equal(t, []string{"n1", "n2", "n3"}, c.Up())
	})
}

// A heal before anybody has decided downs nobody, ends the suspension and writes nothing. Every member has its
// own trace, which ends when the members were together again.
func TestHeal_BeforeTheDecision(t *testing.T) {
	m := newMeters(t)
	traced(t, 5, m.config, func(t *testing.T, c *cluster, x *tracers) {
		var heard []string
		c.provider("n5").OnSuspend(func(string) { heard = append(heard, "suspended") })
		c.provider("n5").OnResume(func(string) { heard = append(heard, "resumed") })
		require.NoError(t, c.Net.Partition(upper, lower))
		time.Sleep(15 * time.Second)
		require.Equal(t, sbr.StateSuspended, c.provider("n5").Status().State)
		c.Net.Heal()
		healed := time.Now()
		time.Sleep(3 * time.Minute)
		require.Equal(t, allFive, c.Up())
		require.Equal(t, []string{"suspended", "resumed"}, heard)
		require.Empty(t, c.Store.History())
		ids := make(map[trace.TraceID]bool)
		for _, name := range allFive {
			ep := x.episode(name)
			require.Equal(t, "healed", attr(ep.Attributes, "sbr.outcome"))
			require.Nil(t, attr(ep.Attributes, "sbr.verdict.token"))
			require.Equal(t, codes.Unset, ep.Status.Code)
			require.WithinDuration(t, healed, ep.EndTime, 20*time.Second, "the calm after it does not count")
			require.Len(t, events(&ep, "resumed"), 1)
			ids[ep.SpanContext.TraceID()] = true
		}
		require.Len(t, ids, 5)
		m.require("n1", "sbr.partition.duration{outcome=healed} = 1", "sbr.partition.active = 0", "sbr.downs = 0",
			"sbr.decisions{decision=acquire-lease-and-down-unreachable} = 0")
	})
}

// L3: while the cluster is whole nothing is written, for hours, with members that come and go gracefully.
func TestWhole_NothingIsWritten(t *testing.T) {
	long(t)
	formed(t, 3, nil, func(t *testing.T, c *cluster) {
		time.Sleep(10 * time.Minute)
		c.Boot("n4", "n1")
		time.Sleep(time.Minute)
		require.NoError(t, c.Member("n4").Serf.Leave())
		require.NoError(t, c.Member("n4").Serf.Shutdown())
		time.Sleep(10 * time.Minute)
		require.Empty(t, c.Store.History())
		require.False(t, c.Member("n4").Down(), "a graceful leave is not a downing")
		require.Len(t, c.provider("n1").Status().Members, 3)
	})
}

// F1: a node whose Serf is shut down under it fails safe.
func TestFailSafe_SerfClosedUnderIt(t *testing.T) {
	formed(t, 3, nil, func(t *testing.T, c *cluster) {
		require.NoError(t, c.Member("n3").Serf.Shutdown())
		time.Sleep(time.Second)
		require.True(t, c.Member("n3").Down())
		require.Equal(t, "the Serf node was shut down under it", c.provider("n3").Reason())
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
		c.Form(3)
		armed.Store(true)
		time.Sleep(2 * time.Second)
		require.True(t, c.Member("n2").Down())
		require.Contains(t, c.provider("n2").Reason(), "panic: a broken hook")
	})
}

// S1: the answer to the winning write is lost, and the writer dies. Its side still survives: another member
// finds the verdict.
func TestVerdict_AnswerLostAndWriterCrashes(t *testing.T) {
	var gates clustertest.Gates
	formed(t, 5, gated(&gates), func(t *testing.T, c *cluster) {
		c.Store.View("n1").Inject(leasetest.All, leasetest.LoseResponse, 1)
		c.Store.OnCommit(func(lease.Record) { gates.Of("n1").Close() })
		require.NoError(t, c.Net.Partition(upper, lower))
		c.Eventually(time.Minute, "no verdict", func() bool { return c.Store.Snapshot().Record.Verdict != nil })
		c.Store.View("n1").SetUnavailable(true)
		require.NoError(t, c.Net.Freeze("n1"))
		defer gates.Of("n1").Open()
		c.Eventually(2*time.Minute, "the losers are still up",
			func() bool { return c.Member("n4").Down() && c.Member("n5").Down() })
		time.Sleep(3 * time.Minute)
		require.False(t, c.Member("n2").Down())
		require.False(t, c.Member("n3").Down())
	})
}

// L1: the leader of the only side that reaches the store cannot reach it itself; another member of its side
// races in its place.
func TestLease_AnotherMemberRacesForTheLeader(t *testing.T) {
	long(t)
	formed(t, 5, clustertest.MajorityFirst, func(t *testing.T, c *cluster) {
		c.storeAway("n1", "n2", "n4", "n5")
		groups := [][]string{{"n1", "n2", "n3"}, {"n4", "n5"}}
		require.NoError(t, c.Net.Partition(groups...))
		c.requireOneSide(groups, 2*time.Minute)
		require.Equal(t, groups[0], c.Up())
		// losers can be down before it
		c.Eventually(time.Minute, "no verdict", func() bool { return c.Store.Snapshot().Record.Verdict != nil })
		require.Equal(t, "n3", downing.NameOf(c.Store.Snapshot().Record.Verdict.DecidedBy))
	})
}

// S4: when nobody reaches the store, nobody takes that for a grant: every side goes down.
func TestLease_StoreUnreachableForAll(t *testing.T) {
	virtual(t, nil, func(t *testing.T, c *cluster) {
		for _, n := range c.Form(5) {
			c.Store.View(n).SetUnavailable(true)
		}
		require.NoError(t, c.Net.Partition(upper, lower))
		c.Eventually(2*time.Minute, "somebody is still up", func() bool { return len(c.Up()) == 0 })
	})
}

// Every strategy that counts instead of asking a lease resolves a clean cut on real Serf as well.
func TestSplit_StrategiesWithoutALease(t *testing.T) {
	long(t)
	for strategy, winners := range map[string][]string{
		"keep-majority": {"n1", "n2", "n3"}, "static-quorum": {"n1", "n2", "n3"}, "keep-oldest": {"n1", "n2", "n3"}, "keep-referee": {"n4", "n5"}, "down-all": nil,
	} {
		t.Run(strategy, func(t *testing.T) {
			virtual(t, func(_ string, c *downing.Config) {
				c.Strategy, c.Store = strategy, nil
				c.Strategies.StaticQuorum.QuorumSize = 3
				c.Strategies.KeepReferee.Address = "n4"
			}, func(t *testing.T, c *cluster) {
				c.Form(5)
				require.NoError(t, c.Net.Partition(upper, lower))
				c.requireOneSide([][]string{winners}, 2*time.Minute)
				time.Sleep(2 * time.Minute)
				c.Net.Heal()
				time.Sleep(2 * time.Minute)
				require.Equal(t, winners, c.Up())
			})
		})
	}
}
