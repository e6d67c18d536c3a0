package downing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
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
		c.Eventually(5*time.Minute, "a second verdict with the same token", func() bool { return c.Store.Snapshot().Record.Token == 1 })
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
