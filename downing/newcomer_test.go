package downing_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// minorityWins cuts n1 n2 n3 off from the store and from n4 n5, which win.
func minorityWins(t *testing.T, c *cluster) {
	t.Helper()
	larger := []string{"n1", "n2", "n3"}
	for _, n := range larger {
		c.store.View(n).SetUnavailable(true)
	}
	require.NoError(t, c.net.Partition(larger, []string{"n4", "n5"}))
	c.requireOneSide([][]string{{"n4", "n5"}}, 5*time.Minute)
	for _, n := range larger {
		<-c.members[n].provider.Done()
		c.store.View(n).SetUnavailable(false)
	}
}

// leaveFor stops a node in peace, if it was not downed.
func (c *cluster) leaveFor(name string) {
	m := c.members[name]
	if !c.down(name) {
		require.NoError(c.t, m.serf.Leave())
		require.NoError(c.t, m.provider.Stop(context.Background()))
	}
	require.NoError(c.t, m.serf.Shutdown())
}

func three(_ string, c *downing.Config) { c.Resolver.MinMembers = 3 }

// Downed members that are started again while the cut lasts find each other, and are enough to be a cluster. They wait all the same: the cluster is
// the one that the verdict has left. After the heal they join it.
func TestNewcomer_RestartedLosersAreNoSecondCluster(t *testing.T) {
	virtual(t, three, func(t *testing.T, c *cluster) {
		c.startAll(5)
		minorityWins(t, c)
		c.start("n1")
		c.start("n2", "n1")
		c.start("n3", "n1")
		time.Sleep(10 * time.Minute)
		for _, n := range []string{"n1", "n2", "n3"} {
			s := c.members[n].provider.Status()
			require.Equal(t, sbr.StateSuspended, s.State, n)
			require.Equal(t, []string{"n4", "n5"}, s.Awaiting, n)
			require.Contains(t, s.SuspendedBecause, "nobody is to be found here: n4, n5", n)
		}
		require.Equal(t, sbr.StateUp, c.members["n4"].provider.Status().State)

		// One of them crashes: the others, who wait, decide nothing that could reach the winners.
		require.NoError(t, c.net.Freeze("n3"))
		time.Sleep(5 * time.Minute)
		require.Equal(t, uint64(1), c.store.Snapshot().Record.Verdict.Token)
		require.NoError(t, c.net.Thaw("n3"))

		c.net.Heal()
		_, err := c.members["n1"].serf.Join(c.addresses([]string{"n4"}), true)
		require.NoError(t, err)
		c.eventually(5*time.Minute, func() bool {
			for _, m := range c.members {
				if s := m.provider.Status(); s.State != sbr.StateUp || len(s.Unreachable) > 0 {
					return false
				}
			}
			return true
		}, "not all are up again")
		require.Len(t, c.up(), 5)
	})
}

// When the whole cluster was stopped and starts anew, nobody waits for survivors that are there as newer incarnations; a newcomer after them finds those
// that were admitted. A survivor that does not come back is waited for, until an operator says that it will not.
func TestNewcomer_ColdStart(t *testing.T) {
	virtual(t, nil, func(t *testing.T, c *cluster) {
		c.startAll(3)
		require.NoError(t, c.net.Partition([]string{"n1", "n2"}, []string{"n3"}))
		c.requireOneSide([][]string{{"n1", "n2"}, {"n3"}}, 5*time.Minute)
		for _, n := range []string{"n1", "n2", "n3"} {
			c.leaveFor(n)
		}
		c.net.Heal()
		time.Sleep(time.Minute)
		left := c.store.Snapshot().Record.Verdict.Survivors
		first, others := downing.NameOf(left[0]), []string{"n1", "n2", "n3"}

		c.start("n1")
		time.Sleep(time.Minute)
		if len(left) > 1 || first != "n1" {
			require.NotEqual(t, sbr.StateUp, c.members["n1"].provider.Status().State)
		}
		for _, n := range others[1:] {
			c.start(n, "n1")
		}
		c.eventually(time.Minute, func() bool { return len(c.up()) == 3 && c.members["n3"].provider.Status().State == sbr.StateUp }, "they wait")
		c.start("n9", "n1")
		c.eventually(time.Minute, func() bool { return c.members["n9"].provider.Status().State == sbr.StateUp }, "a newcomer after them waits")
	})
}

func TestNewcomer_Bootstrap(t *testing.T) {
	virtual(t, func(name string, c *downing.Config) { c.Bootstrap = name == "n1" && c.Store != nil }, func(t *testing.T, c *cluster) {
		c.startAll(5)
		minorityWins(t, c)
		for _, n := range []string{"n4", "n5"} { // gone for good
			c.leaveFor(n)
		}
		c.start("n2")
		time.Sleep(time.Minute)
		require.Equal(t, []string{"n4", "n5"}, c.members["n2"].provider.Status().Awaiting)
		c.start("n1", "n2")
		c.eventually(time.Minute, func() bool { return c.members["n2"].provider.Status().State == sbr.StateUp }, "it has found a member that was admitted")
	})
}

// The same beside agents, which ask for a look at the members before the lease was taken in. The token of the record is beyond that of the verdict: the
// lease was released since.
func TestNewcomer_BesideAgents(t *testing.T) {
	beside(t, nil, func(t *testing.T, b *besides) {
		b.store.Restore(lease.Record{Token: 7, Verdict: &sbr.Verdict{Token: 5, Survivors: []sbr.ID{"n9#u"}, DecidedBy: "n9#u", Reason: "long ago"}})
		b.boot("n1")
		b.boot("n2", "n1")
		time.Sleep(10 * time.Minute)
		for _, n := range []string{"n1", "n2"} {
			s := b.members[n].provider.Status()
			require.True(t, s.Newcomer, n)
			require.Equal(t, []string{"n9"}, s.Awaiting, n)
			require.Equal(t, sbr.StateSuspended, s.State, n)
		}
		b.boot("n9", "n1") // its host is there again: nobody of the old cluster is left
		b.whole(3)
		require.False(t, b.members["n1"].provider.Status().Newcomer)
	})
}

// What a downed predecessor left in the tags of its agent does not vouch for the member that begins after it.
func TestNewcomer_StaleTagVouchesForNobody(t *testing.T) {
	beside(t, nil, func(t *testing.T, b *besides) {
		b.store.Restore(lease.Record{Token: 5, Verdict: &sbr.Verdict{Token: 5, Survivors: []sbr.ID{"n9#u"}, DecidedBy: "n9#u", Reason: "long ago"}})
		a := &stockAgent{c: b.cluster, name: "n1"}
		b.agents["n1"] = a
		a.boot(map[string]string{downing.TagUID: "old", downing.TagBorn: "1", downing.TagSeen: "5", downing.TagIn: "5"})
		b.protect("n1", func(c *downing.Config) { c.WasDowned = func(id string) bool { return id == "n1#old" } })
		b.boot("n2", "n1")
		time.Sleep(time.Minute)
		for _, n := range []string{"n1", "n2"} {
			require.True(t, b.members[n].provider.Status().Newcomer, n)
		}
	})
}
