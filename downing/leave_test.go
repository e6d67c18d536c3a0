package downing_test

import (
	"cmp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/internal/logtest"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

var fresh = []string{"n6", "n7", "n8"}

// crash ends members as a power failure does.
func (c *cluster) crash(names ...string) {
	c.t.Helper()
	for _, n := range names {
		if !c.Member(n).Down() {
			require.NoError(c.t, c.Net.Freeze(n))
		}
	}
	for _, n := range names {
		_ = c.Member(n).Serf.Shutdown()
		_ = c.Member(n).Stop()
	}
}

// leave makes members leave at the same moment.
func (c *cluster) leave(names ...string) {
	c.t.Helper()
	var all sync.WaitGroup
	for _, n := range names {
		all.Go(func() { require.NoError(c.t, c.Member(n).Leave()) })
	}
	all.Wait()
}

// decided is a cluster of five behind a verdict that n1 n2 n3 have survived; n4 and n5 are members again.
func (c *cluster) decided() {
	c.t.Helper()
	c.Form(5)
	c.removes(upper, lower)
	c.Net.Heal()
	c.Boot("n4", "n1")
	c.Boot("n5", "n1")
	c.requireWhole(5*time.Minute, allFive...)
	time.Sleep(2 * time.Minute) // the lease is released
}

// verdict is what stands in the store; the zero Verdict if none does.
func (c *cluster) verdict() *sbr.Verdict {
	return cmp.Or(c.Store.Snapshot().Record.Verdict, &sbr.Verdict{})
}

func nodesOf(ids []sbr.ID) (names []string) {
	for _, id := range ids {
		names = append(names, downing.NameOf(id))
	}
	slices.Sort(names)
	return names
}

func (c *cluster) requireWaiting(names ...string) {
	c.t.Helper()
	for _, n := range names {
		require.True(c.t, c.provider(n).Status().Newcomer, n)
	}
}

func leaves(t *testing.T, f func(t *testing.T, c *cluster)) { virtual(t, clustertest.MajorityFirst, f) }

// A survivor that was scaled in is waited for by nobody after a power loss of the rest (finding B11).
func TestLeave_ScaledInThenPowerLoss(t *testing.T) {
	long(t)
	leaves(t, func(t *testing.T, c *cluster) {
		c.decided()
		before := c.Store.Snapshot().Record
		c.leave("n3")
		after := c.Store.Snapshot().Record
		require.Equal(t, []string{"n3"}, nodesOf(after.Verdict.Left))
		require.Equal(t, before.Token, after.Token)
		require.Equal(t, before.Verdict.Survivors, after.Verdict.Survivors)
		rest := []string{"n1", "n2", "n4", "n5"}
		c.requireWhole(time.Minute, rest...)
		c.crash(rest...)
		c.boots(rest...)
		c.requireWhole(time.Minute, rest...)
	})
}

// After a full stop in peace the next member that starts is free, under any name. Members that leave at the
// same moment write at most once each, fewer where they receive each other's goodbyes.
func TestLeave_FullStopThenNewNames(t *testing.T) {
	long(t)
	leaves(t, func(t *testing.T, c *cluster) {
		c.decided()
		before := c.Store.Snapshot()
		writes := c.writes()
		c.leave(allFive...)
		require.LessOrEqual(t, c.writes()-writes, uint64(6),
			"a goodbye each, and a heartbeat that may fall among them")
		require.Empty(t, c.verdict().Remaining())
		require.Equal(t, before.Record.Token, c.verdict().Token)
		c.boots(fresh...)
		c.requireWhole(time.Minute, fresh...)
		require.NotEmpty(t, c.verdict().Heirs)
	})
}

// Of those that start after a full stop and cannot see each other, one part inherits the record, and the
// other waits.
func TestLeave_FullStopThenIslands(t *testing.T) {
	long(t)
	leaves(t, func(t *testing.T, c *cluster) {
		c.decided()
		c.leave(allFive...)
		c.boots("n6", "n7")
		c.boots("n8", "n9")
		time.Sleep(5 * time.Minute)
		c.requireWaiting("n8", "n9")
		require.Equal(t, sbr.StateUp, c.provider("n6").Status().State)
		require.Equal(t, sbr.StateUp, c.provider("n7").Status().State)
		require.NoError(t, c.Join(c.Member("n8").Serf, "n6"))
		c.requireWhole(5*time.Minute, "n6", "n7", "n8", "n9")
	})
}

// The last survivor that leaves hands the record to the members that are here: a newcomer that does not find
// them waits.
func TestLeave_LastSurvivorHandsTheRecordOn(t *testing.T) {
	leaves(t, func(t *testing.T, c *cluster) {
		c.decided()
		for _, n := range upper {
			c.leave(n)
		}
		require.Equal(t, []string{"n4", "n5"}, nodesOf(c.verdict().Remaining()))
		c.Boot("n6") // nobody tells it where the others are
		time.Sleep(5 * time.Minute)
		c.requireWaiting("n6")
		require.Equal(t, []string{"n4", "n5"}, c.provider("n6").Status().Awaiting)
		require.NoError(t, c.Join(c.Member("n6").Serf, "n4"))
		c.requireWhole(5*time.Minute, "n4", "n5", "n6")

		// Restarts one after another hand it on each time.
		for _, n := range []string{"n4", "n5"} {
			c.leave(n)
			c.Boot(n, "n6")
			c.requireWhole(5*time.Minute, "n4", "n5", "n6")
		}
		require.Contains(t, nodesOf(c.verdict().Remaining()), "n6")
	})
}

// A member that the last survivor did not know yet when it left takes the record over by itself, as soon as
// the store takes it: nobody else may begin anew beside it.
func TestLeave_LastSurvivorDidNotKnowAMember(t *testing.T) {
	long(t)
	leaves(t, func(t *testing.T, c *cluster) {
		c.decided()
		for _, n := range upper {
			c.leave(n)
		}
		r := c.Store.Snapshot().Record
		r.Verdict = r.Verdict.Clone()
		r.Verdict.Heirs = nil
		for _, n := range []string{"n4", "n5"} {
			c.Member(n).Store.Inject(leasetest.Writes, leasetest.Unavailable, leasetest.Always)
		}
		c.Store.Restore(r)
		time.Sleep(time.Minute)
		require.Empty(t, c.verdict().Heirs)
		c.Member("n5").Store.Heal()
		time.Sleep(10 * time.Second)
		require.Equal(t, []string{"n4", "n5"}, nodesOf(c.verdict().Heirs))
	})
}

// A leave while a member is unreachable is no goodbye in peace: the leaving member may know less of the
// cluster than the unreachable one.
func TestLeave_AmongSuspects(t *testing.T) {
	leaves(t, func(t *testing.T, c *cluster) {
		c.decided()
		require.NoError(t, c.Net.Partition(upper, lower))
		c.Eventually(time.Minute, "n3 is suspended", func() bool {
			return c.provider("n3").Status().State == sbr.StateSuspended
		})
		c.leave("n3")
		require.Empty(t, c.verdict().Left)
	})
}

// Gossip does not reach everybody: a member that has missed a goodbye hears the next one, and suspects
// nobody.
func TestLeave_AGoodbyeThatWasMissedIsSaidAgain(t *testing.T) {
	long(t)
	leaves(t, func(t *testing.T, c *cluster) {
		c.decided()
		require.NoError(t, c.Net.Partition([]string{"n1", "n2", "n3", "n4"}, []string{"n5"}))
		time.AfterFunc(700*time.Millisecond, c.Net.Heal)
		c.leave("n3")
		for range 100 {
			require.Equal(t, sbr.StateUp, c.provider("n5").Status().State)
			time.Sleep(100 * time.Millisecond)
		}
		c.requireWhole(time.Minute, "n1", "n2", "n4", "n5")
	})
}

// A goodbye is said more than once, and what arrives after the member has left is no news to anybody.
func TestLeave_InPeaceWarnsOfNothing(t *testing.T) {
	var log logtest.Log
	warned := func(_ string, c *downing.Config) { c.Logger = log.Warnings() }
	formed(t, 5, warned, func(t *testing.T, c *cluster) {
		for _, name := range clustertest.Names(4) {
			c.leave(name)
			time.Sleep(time.Minute)
		}
		require.Empty(t, log.With("ignored a message"))
	})
}

// The store is away when a member leaves: it leaves all the same, and is waited for.
func TestLeave_StoreAway(t *testing.T) {
	long(t)
	leaves(t, func(t *testing.T, c *cluster) {
		c.decided()
		c.Member("n3").Store.SetUnavailable(true)
		began := time.Now()
		c.leave("n3")
		require.Less(t, time.Since(began), 20*time.Second)
		require.Empty(t, c.verdict().Left)
	})
}

// The answer to the write is lost: it was written, and the member has left.
func TestLeave_LostAnswer(t *testing.T) {
	leaves(t, func(t *testing.T, c *cluster) {
		c.decided()
		c.Member("n3").Store.Inject(leasetest.All, leasetest.LoseResponse, 1)
		c.leave("n3")
		require.Equal(t, []string{"n3"}, nodesOf(c.verdict().Left))
		c.requireWhole(time.Minute, "n1", "n2", "n4", "n5")
	})
}

// A member that is recorded as left and did not leave goes down: others may have begun anew without it.
func TestLeave_RecordedAndStillHere(t *testing.T) {
	leaves(t, func(t *testing.T, c *cluster) {
		c.decided()
		r := c.Store.Snapshot().Record
		r.Verdict = r.Verdict.Clone()
		for _, id := range r.Verdict.Survivors {
			if downing.NameOf(id) == "n3" {
				r.Verdict.Left = append(r.Verdict.Left, id)
			}
		}
		c.Store.Restore(r)
		c.Eventually(time.Minute, "n3 is up", func() bool { return c.Member("n3").Down() })
		require.Contains(t, c.provider("n3").Reason(), "recorded to have left")
		c.requireWhole(time.Minute, "n1", "n2", "n4", "n5")
	})
}

// The node does not leave although it was told to, and the application goes on. It has said goodbye, and may be
// recorded as left: no verdict would reach it, so it goes down.
func TestLeave_FailedLeaveGoesDown(t *testing.T) {
	long(t)
	stays := func(name string, s *serf.Config) {
		if name == "n3" {
			s.LeavePropagateDelay = 5 * time.Minute
		}
	}
	goesDown := func(t *testing.T, c *cluster, left ...string) {
		var leaving sync.WaitGroup
		defer leaving.Wait()
		leaving.Go(func() { _ = c.Member("n3").Serf.Leave() })
		time.Sleep(10 * time.Second)
		require.Equal(t, left, nodesOf(c.verdict().Left))
		require.False(t, c.Member("n3").Down())
		c.Eventually(time.Minute, "n3 is up", func() bool { return c.Member("n3").Down() })
		require.Contains(t, c.provider("n3").Reason(), "its node has not left")
	}
	t.Run("recorded", func(t *testing.T) {
		leaves(t, func(t *testing.T, c *cluster) {
			c.Options.Serf = stays
			c.decided()
			goesDown(t, c, "n3")
		})
	})
	t.Run("without a lease", func(t *testing.T) {
		majority := func(_ string, cfg *downing.Config) {
			cfg.Strategy, cfg.Store = "keep-majority", nil
		}
		virtual(t, majority, func(t *testing.T, c *cluster) {
			c.Options.Serf = stays
			c.Form(3)
			goesDown(t, c)
		})
	})
}

// A member whose record is lost with the verdict is told again with it.
func TestLeave_StoreForgets(t *testing.T) {
	leaves(t, func(t *testing.T, c *cluster) {
		c.decided()
		c.leave("n3")
		time.Sleep(10 * time.Second)
		c.Store.Delete()
		time.Sleep(time.Minute)
		require.Equal(t, []string{"n3"}, nodesOf(c.verdict().Left))
	})
}

// A resolver that is stopped beside an agent takes its tags back, and is no member any more: that is a leave.
// A resolver that keeps them for its next process does not leave.
func TestLeave_BesideAgents(t *testing.T) {
	for name, keep := range map[string]bool{"for good": false, "for a restart": true} {
		t.Run(name, func(t *testing.T) {
			beside(t, 3, func(_ string, c *downing.Config) { c.KeepTags = keep }, func(t *testing.T, b *besides) {
				v := sbr.Verdict{Token: 1, Down: []sbr.ID{"n9#u"}, DecidedBy: "n9#u", Reason: "long ago"}
				for _, n := range clustertest.Names(3) {
					v.Survivors = append(v.Survivors, sbr.ID(b.provider(n).Status().Incarnation))
				}
				v.Normalize()
				b.Store.Restore(lease.Record{Token: 1, Verdict: &v})
				time.Sleep(10 * time.Second)
				require.NoError(t, b.Member("n3").Stop())
				if keep {
					require.Empty(t, b.verdict().Left)
				} else {
					require.Equal(t, []string{"n3"}, nodesOf(b.verdict().Left))
				}
			})
		})
	}
}

// After a crash of everything under new names nobody is up, and the log says what to do: one member with
// --bootstrap.
func TestBootstrap_AfterACrashOfEverything(t *testing.T) {
	leaves(t, func(t *testing.T, c *cluster) {
		c.decided()
		c.crash(allFive...)
		c.boots(fresh...)
		time.Sleep(5 * time.Minute)
		c.requireWaiting(fresh...)
		require.Contains(t, c.provider("n7").Status().SuspendedBecause, "--bootstrap=1")
		c.leave("n7")
		c.Options.Config = bootstraps(1)
		c.Boot("n7", "n6", "n8")
		c.requireWhole(2*time.Minute, fresh...)
		require.Contains(t, c.verdict().Reason,
			"an operator says by --bootstrap=1 that n1, n2, n3 have ended for good")
		require.Equal(t, upper, nodesOf(c.verdict().Down))
	})
}

func bootstraps(token uint64) func(string, *downing.Config) {
	return func(name string, c *downing.Config) {
		clustertest.MajorityFirst(name, c)
		c.Bootstrap = token
	}
}

// Two operators begin a new cluster on two islands: one of them wins, the other island goes down and waits
// for it.
func TestBootstrap_OnTwoIslands(t *testing.T) {
	leaves(t, func(t *testing.T, c *cluster) {
		c.decided()
		c.crash(allFive...)
		islands := [][]string{{"n6", "n7"}, {"n8", "n9"}}
		c.Options.Config = bootstraps(1)
		c.boots(islands[0]...)
		c.boots(islands[1]...)
		c.requireOneSide(islands, 5*time.Minute)
		require.EqualValues(t, 2, c.verdict().Token)
		lost := slices.DeleteFunc([]string{"n6", "n7", "n8", "n9"}, func(n string) bool {
			return slices.Contains(c.Up(), n)
		})
		require.Len(t, lost, 2)
		// a unit starts them again, with the option still there: it was about another verdict
		for _, n := range lost {
			<-c.provider(n).Done()
			c.Boot(n)
		}
		time.Sleep(5 * time.Minute)
		c.requireWaiting(lost...)
		require.EqualValues(t, 2, c.verdict().Token)
	})
}

// A survivor that answers is a cluster: there is nothing to begin.
func TestBootstrap_RefusedWhileASurvivorAnswers(t *testing.T) {
	leaves(t, func(t *testing.T, c *cluster) {
		c.decided()
		c.crash("n1", "n2", "n4", "n5")
		c.Eventually(5*time.Minute, "n3 waits", func() bool {
			return c.provider("n3").Status().State == sbr.StateUp
		})
		token := c.verdict().Token
		c.Options.Config = bootstraps(token)
		c.Boot("n6", "n3")
		c.requireWhole(5*time.Minute, "n3", "n6")
		require.Equal(t, token, c.verdict().Token)
	})
}

// The old cluster runs after all, where nobody saw it: it goes down, and there are never two.
func TestBootstrap_AlthoughTheOthersRun(t *testing.T) {
	leaves(t, func(t *testing.T, c *cluster) {
		c.decided()
		c.Options.Config = bootstraps(1)
		c.Boot("n6") // nobody tells it where the others are
		c.requireOneSide([][]string{{"n6"}}, 5*time.Minute)
	})
}

// writes counts what was written to the store.
func (c *cluster) writes() (n uint64) {
	for _, name := range []string{"n1", "n2", "n3", "n4", "n5"} {
		n += uint64(c.Member(name).Store.Counters().Writes)
	}
	return n
}
