package downing_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/memnet/serfnet"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// afterOneVerdict forms a cluster of five that has removed n5, is whole again, and has released the lease.
func (c *cluster) afterOneVerdict() (before, after lease.Record) {
	c.t.Helper()
	c.Form(5)
	before = c.Store.Snapshot().Record
	c.removes([]string{"n1", "n2", "n3", "n4"}, []string{"n5"})
	c.Net.Heal()
	time.Sleep(3 * time.Minute)
	return before, c.Store.Snapshot().Record
}

// requireWhole waits until the members are up, see each other and nobody else, and know one verdict, which
// the store holds.
func (c *cluster) requireWhole(within time.Duration, names ...string) {
	c.t.Helper()
	c.Eventually(within, "one cluster", func() bool {
		for _, n := range names {
			s := c.provider(n).Status()
			if s.State != sbr.StateUp || len(s.Members) != len(names) || s.Verdict.Token != c.verdict().Token {
				return false
			}
		}
		return true
	})
}

// A store that loses its record while the cluster is whole is told again before anybody could start without
// knowing the verdict: newcomers, later cuts and restarts go on as if nothing had happened (design rule 16).
func TestForgets_WhileWhole(t *testing.T) {
	long(t)
	for _, how := range []string{"deleted", "restored"} {
		t.Run(how, func(t *testing.T) {
			virtual(t, clustertest.MajorityFirst, func(t *testing.T, c *cluster) {
				before, after := c.afterOneVerdict()
				if how == "deleted" {
					c.Store.Delete()
				} else {
					c.Store.Restore(before)
				}
				time.Sleep(time.Second)
				require.Equal(t, after.Verdict, c.Store.Snapshot().Record.Verdict, "written back")
				writes := c.Store.Snapshot().Version
				time.Sleep(time.Minute)
				require.Equal(t, writes, c.Store.Snapshot().Version, "once")

				c.Boot("n6", "n1")
				c.Boot("n7", "n1")
				c.requireWhole(5*time.Minute, "n1", "n2", "n3", "n4", "n6", "n7")
				require.NoError(t, c.Member("n3").Leave())
				time.Sleep(30 * time.Second)
				c.Boot("n3", "n1")
				c.requireWhole(5*time.Minute, "n1", "n2", "n3", "n4", "n6", "n7")
				require.NoError(t, c.Net.Partition([]string{"n1", "n2", "n3", "n4", "n5"}, []string{"n6", "n7"}))
				c.requireOneSide([][]string{{"n1", "n2", "n3", "n4"}}, 5*time.Minute)
			})
		})
	}
}

// The losers of a cut were away from the store, the winners' verdict is lost, and the losers get the store
// back: the winners have written it back, and the losers go down by it.
func TestForgets_RightAfterAVerdict(t *testing.T) {
	long(t)
	for _, how := range []string{"deleted", "restored"} {
		t.Run(how, func(t *testing.T) {
			virtual(t, nil, func(t *testing.T, c *cluster) {
				c.Options.Config = func(_ string, d *downing.Config) { d.Resolver.WhenLeaseUnknown = sbr.UnknownSuspend }
				c.Form(5)
				before := c.Store.Snapshot().Record
				c.storeAway(lower...)
				require.NoError(t, c.Net.Partition(upper, lower))
				c.Eventually(5*time.Minute, "a verdict", func() bool { return c.Store.Snapshot().Record.Token == 1 })
				time.Sleep(10 * time.Second)
				if how == "deleted" {
					c.Store.Delete()
				} else {
					c.Store.Restore(before)
				}
				c.storeBack(lower...)
				c.requireOneSide([][]string{upper}, 5*time.Minute)
			})
		})
	}
}

// The one schedule that no store allows to be safe: it loses an acknowledged verdict while no survivor of it
// reaches the store, and the losers write another one under its token. At the first contact the members that
// what is in the store leaves out go down.
func TestForgets_WhileNoSurvivorReachesTheStore(t *testing.T) {
	virtual(t, nil, func(t *testing.T, c *cluster) {
		c.Options.Config = func(_ string, d *downing.Config) { d.Resolver.WhenLeaseUnknown = sbr.UnknownSuspend }
		c.Form(5)
		reach := func(names []string, yes bool) {
			for _, n := range names {
				c.Store.View(n).SetUnavailable(!yes)
			}
		}
		reach(lower, false)
		require.NoError(t, c.Net.Partition(upper, lower))
		c.Eventually(5*time.Minute, "a verdict", func() bool { return c.Store.Snapshot().Record.Token == 1 })
		time.Sleep(10 * time.Second)
		reach(upper, false)
		c.Store.Delete()
		reach(lower, true)
		c.Eventually(5*time.Minute, "a second verdict with the same token",
			func() bool { return c.Store.Snapshot().Record.Token == 1 })
		time.Sleep(time.Minute)
		require.Len(t, c.Up(), 5, "both sides hold a verdict with the token 1")
		reach(upper, true)
		c.requireOneSide([][]string{lower}, time.Minute)
	})
}

// The record is lost while nobody runs. The first that starts again remembers the last verdict and writes it
// back, so that the next one gets a token of its own.
func TestForgets_WhileNobodyRuns(t *testing.T) {
	onDisks(t, clustertest.MajorityFirst, func(t *testing.T, c *cluster) {
		before, after := c.afterOneVerdict()
		four := []string{"n1", "n2", "n3", "n4"}
		c.crash(four...)
		c.Store.Restore(before)
		c.boots(four...)
		c.requireWhole(5*time.Minute, four...)
		require.Equal(t, after.Verdict, c.Store.Snapshot().Record.Verdict)
	})
}

// What an operator resets stays so, although the hosts remember a verdict in their state folders: the next
// start does not write back a forgotten verdict, nor a verdict with a spent token.
func TestForgets_AResetIsNotUndoneByStateFolders(t *testing.T) {
	long(t)
	for name, verdictSpent := range map[string]bool{"token spent": false, "verdict spent": true} {
		t.Run(name, func(t *testing.T) {
			onDisks(t, clustertest.MajorityFirst, func(t *testing.T, c *cluster) {
				_, rec := c.afterOneVerdict()
				rec.Token = lease.MaxToken
				if verdictSpent {
					rec.Verdict.Token = lease.MaxToken
				}
				c.Store.Restore(rec)
				time.Sleep(time.Minute)
				four := []string{"n1", "n2", "n3", "n4"}
				c.crash(four...)
				_, _, err := lease.Reset(t.Context(), c.Store.View("operator"), true)
				require.NoError(t, err)
				c.boots(four...)
				c.requireWhole(5*time.Minute, four...)
				require.Nil(t, c.Store.Snapshot().Record.Verdict)
			})
		})
	}
}

// The runbook's page about a spent token, played: nobody could win the next cut, a reset while members run is
// undone by them, and one with all members stopped holds. They come back as one cluster that decides its cuts
// as before.
func TestForgets_SpentTokenIsReset(t *testing.T) {
	long(t)
	for _, forget := range []bool{false, true} {
		virtual(t, clustertest.MajorityFirst, func(t *testing.T, c *cluster) {
			_, rec := c.afterOneVerdict()
			rec.Token = lease.MaxToken
			c.Store.Restore(rec)
			time.Sleep(time.Minute)
			operator := c.Store.View("operator")
			require.Equal(t, lease.MaxToken, c.provider("n1").Status().Lease.Token,
				"what sbr lease reset asks an agent for")

			_, after, err := lease.Reset(t.Context(), operator, forget)
			require.NoError(t, err)
			require.Less(t, after.Token, uint64(3))
			time.Sleep(time.Minute)
			require.Equal(t, lease.MaxToken, c.Store.Snapshot().Record.Token,
				"a member that runs writes back what it remembers")

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

// Whatever takes members that cannot be reached from Serf's list, one side goes on: the list is no proof that
// they have ended (design rule 15).
func TestVanished_OneSideGoesOn(t *testing.T) {
	long(t)
	three, two := upper, lower
	forgets := func(after time.Duration) func(string, *serf.Config) {
		return func(_ string, s *serf.Config) { s.ReconnectTimeout, s.ReapInterval = after, 2*time.Second }
	}
	suspend := func(_ string, c *downing.Config) { c.Resolver.WhenLeaseUnknown = sbr.UnknownSuspend }
	for name, c := range map[string]struct {
		config func(string, *downing.Config)
		serf   func(string, *serf.Config)
		blind  []string // cannot reach the store
		remove []string // where an operator's script force-leaves the failed members each second
		prune  bool
		want   [][]string
	}{
		"the reconnect time-out is short":        {config: clustertest.MajorityFirst, serf: forgets(5 * time.Second), want: [][]string{three}},
		"it ends while one side has no store":    {config: suspend, serf: forgets(time.Minute), blind: three, want: [][]string{two}},
		"force-leave on both sides":              {remove: []string{"n1", "n4"}, want: [][]string{three, two}},
		"force-leave everywhere":                 {remove: []string{"n1", "n2", "n3", "n4", "n5"}, want: [][]string{three, two}},
		"prune on both sides":                    {remove: []string{"n1", "n4"}, prune: true, want: [][]string{three, two}},
		"force-leave where there is no store":    {blind: three, remove: []string{"n1"}, want: [][]string{two}},
		"force-leave where the store is":         {blind: two, remove: []string{"n1"}, want: [][]string{three}},
		"prune where there is no store, suspend": {config: suspend, blind: three, remove: []string{"n2"}, prune: true, want: [][]string{two}},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, c.config, func(t *testing.T, k *cluster) {
				k.Options.Serf = c.serf
				k.Form(5)
				k.storeAway(c.blind...)
				require.NoError(t, k.Net.Partition(three, two))
				for range 90 {
					k.removeFailed(c.remove, c.prune)
					time.Sleep(time.Second)
				}
				k.requireOneSide(c.want, 20*time.Minute)
			})
		})
	}
}

// removeFailed force-leaves what Serf calls failed on some members.
func (c *cluster) removeFailed(on []string, prune bool) {
	for _, n := range on {
		s := c.Member(n).Serf
		if c.Member(n).Down() {
			continue
		}
		for _, m := range s.Members() {
			switch {
			case m.Status != serf.StatusFailed:
			case prune:
				_ = s.RemoveFailedNodePrune(m.Name)
			default:
				_ = s.RemoveFailedNode(m.Name)
			}
		}
	}
}

// A platform starts a node anew under its old name on this side of a cut, while the old one still runs on the
// other side: the new one is no proof that the old one has ended.
func TestVanished_SecondNodeOfOneName(t *testing.T) {
	reclaim := func(_ string, s *serf.Config) {
		s.MemberlistConfig.DeadNodeReclaimTime = 5 * time.Second
		s.EnableNameConflictResolution = false
	}
	virtual(t, clustertest.MajorityFirst, func(t *testing.T, c *cluster) {
		c.Options.Serf = reclaim
		c.Form(4)
		old := c.Member("n4")
		require.NoError(t, c.Net.Partition([]string{"n1", "n2", "n3"}, []string{"n4"}))
		time.Sleep(16 * time.Second)
		again := c.NewMember("n4")
		var err error
		again.Serf, err = serfnet.Start(c.Net, "host9", func(conf *serf.Config) {
			conf.NodeName = "n4"
			reclaim("n4", conf)
			require.NoError(t, again.Provider.Prepare(context.Background(), conf))
		})
		require.NoError(t, err)
		require.NoError(t, again.Provider.Start(context.Background(), again.Serf))
		require.NoError(t, c.Net.Partition([]string{"n1", "n2", "n3", "host9"}, []string{"n4"}))
		for range 20 {
			if c.Join(again.Serf, "n1") == nil {
				break
			}
			time.Sleep(time.Second)
		}
		c.storeAway(upper...)
		again.Store.SetUnavailable(false)
		time.Sleep(10 * time.Minute)
		here := !c.Member("n1").Down() || !c.Member("n2").Down() || !c.Member("n3").Down() || !again.Down()
		require.NotEqual(t, here, !old.Down(), "one side goes on")
		_ = old.Serf.Shutdown()
		_ = old.Stop()
	})
}

// A member without a resolver that crashes is no partition for ever: it is decided about like any other, or
// does not count.
func TestUntagged_CrashSuspendsNobodyForEver(t *testing.T) {
	long(t)
	for _, lone := range []bool{false, true} {
		virtual(t, nil, func(t *testing.T, c *cluster) {
			names := []string{"n1"}
			if lone {
				c.Boot("n1")
				time.Sleep(10 * time.Second)
			} else {
				names = c.Form(3)
			}
			require.NoError(t, startAt(c, "plain", nil))
			time.Sleep(time.Minute)
			require.Equal(t, []string{"plain"}, c.provider("n1").Status().Untagged)
			require.NoError(t, c.Net.Freeze("plain"))
			time.Sleep(5 * time.Minute)
			for _, n := range names {
				require.Equal(t, sbr.StateUp, c.provider(n).Status().State, n)
			}
			require.Equal(t, names, c.Up())
			require.NoError(t, c.Net.Thaw("plain"))
		})
	}
}

// What a member offered is known for as long as nothing is decided about it, also where Serf has forgotten
// it, and after that: what it ran starts nowhere before its margin is over.
func TestVanished_ServesWhatItDid(t *testing.T) {
	formed(t, 5, clustertest.MajorityFirst, func(t *testing.T, c *cluster) {
		require.NoError(t, c.provider("n5").Offer(t.Context(), "mail", true))
		time.Sleep(10 * time.Second)
		id, n1 := c.id("n5"), c.provider("n1")
		require.NoError(t, c.Net.Partition(allFive[:4], allFive[4:]))
		c.Eventually(time.Minute, "Serf calls it failed", func() bool {
			return slices.ContainsFunc(c.Member("n1").Serf.Members(), func(m serf.Member) bool {
				return m.Name == "n5" && m.Status == serf.StatusFailed
			})
		})
		require.NoError(t, c.Member("n1").Serf.RemoveFailedNodePrune("n5"))
		time.Sleep(2 * time.Second)
		p := n1.Peers()
		require.True(t, p.Find(id).Unreachable, "nothing is decided")
		require.Equal(t, []string{"mail"}, p.Find(id).Serves)
		c.requireOneSide([][]string{allFive[:4]}, time.Minute)
		gone := n1.Peers().Gone
		require.Len(t, gone, 1)
		require.Equal(t, []string{"mail"}, gone[0].Serves)
	})
}
