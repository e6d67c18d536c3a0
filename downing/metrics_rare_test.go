package downing_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// metered runs a test in virtual time in a cluster of n members that are armed.
func metered(t *testing.T, n int, config func(name string, c *downing.Config), f func(t *testing.T, c *cluster, m *meters)) {
	t.Helper()
	m := newMeters(t)
	both := func(name string, c *downing.Config) {
		m.config(name, c)
		if config != nil {
			config(name, c)
		}
	}
	virtual(t, both, func(t *testing.T, c *cluster) {
		c.Form(n)
		f(t, c, m)
	})
}

// A process that stands still, alive to Serf: what it is told is not answered, what it does not do piles up,
// and when it wakes it asks everybody.
func TestMetrics_Pause(t *testing.T) {
	var gates clustertest.Gates
	metered(t, 4, gated(&gates), func(t *testing.T, c *cluster, m *meters) {
		require.NoError(t, c.Net.Partition([]string{"n1", "n2", "n3"}, []string{"n4"}))
		time.Sleep(15 * time.Second)
		gates.Of("n3").Close()
		time.Sleep(time.Minute)
		m.require("n1", "sbr.told{outcome=answered} = 1", "sbr.told{outcome=unanswered} = 1")
		m.require("n3", "sbr.loop.queue > 10")
		gates.Of("n3").Open()
		time.Sleep(5 * time.Second)
		m.require("n3", "sbr.loop.queue = 0", "sbr.pauses = 1", "sbr.pause.time > 50", "sbr.messages.sent{message=standing} > 0", "sbr.messages.received{message=clear} > 0", "sbr.state{state=up} = 1")
		m.require("n1", "sbr.messages.received{message=standing} > 0", "sbr.messages.sent{message=clear} > 0")
	})
	metered(t, 1, gated(&gates), func(_ *testing.T, _ *cluster, m *meters) {
		gates.Of("n1").Close()
		time.Sleep(10 * time.Second)
		gates.Of("n1").Open()
		time.Sleep(5 * time.Second)
		m.require("n1", "sbr.partitions{cause=pause} = 1", "sbr.suspensions{cause=resolver} = 1")
	})
}

// A downed incarnation that comes back tries to rejoin, and is refused.
func TestMetrics_Rejoins(t *testing.T) {
	metered(t, 3, clustertest.MajorityFirst, func(t *testing.T, c *cluster, m *meters) {
		require.NoError(t, c.Net.Partition([]string{"n1", "n2"}, []string{"n3"}))
		c.Eventually(time.Minute, "nobody won", func() bool { return c.Member("n3").Down() })
		_, uid, _ := strings.Cut(string(c.id("n3")), "#")
		<-c.provider("n3").Done()
		c.Net.Heal()
		m.require("n1", "sbr.rejoins.refused = 0")
		s, err := startAt(c, "n3", downing.TagUID, uid, downing.TagBorn, "1", downing.TagSeen, "0")
		t.Log(err)
		time.Sleep(5 * time.Second)
		require.Positive(t, m.value("n1", "sbr.rejoins.refused")+m.value("n2", "sbr.rejoins.refused"))
		require.NoError(t, s.Shutdown())
	})
}

// Messages that change nothing are counted by what is wrong with them.
func TestMetrics_IgnoredMessages(t *testing.T) {
	metered(t, 2, nil, func(t *testing.T, c *cluster, m *meters) {
		p := c.puppet()
		p.send([]byte("junk"))
		p.say(wire.Message{Kind: wire.KindVerdict, From: p.id, Token: 1, By: p.id, Whole: true, Up: []sbr.ID{p.id}, Down: []sbr.ID{c.id("n2")}})
		p.say(wire.Message{Kind: wire.KindOrder, From: "stranger#u", Decided: "down-all", Down: []sbr.ID{c.id("n1")}})
		m.require("n1", "sbr.messages.ignored{message=none,reason=invalid} = 1", "sbr.messages.ignored{message=verdict,reason=unverified} = 1",
			"sbr.messages.ignored{message=order,reason=forged} = 1", "sbr.downs = 0")
		require.NoError(t, p.serf.Shutdown())
	})
}

// An order that does not fit what the resolver sees.
func TestMetrics_IgnoredByTheResolver(t *testing.T) {
	m := newMeters(t)
	virtual(t, func(name string, c *downing.Config) { m.config(name, c); c.Strategy = "keep-majority" }, func(t *testing.T, c *cluster) {
		require.NoError(t, c.Net.Add("puppet")) // the first address: it leads
		c.Form(2)
		p := c.puppet()
		p.say(wire.Message{Kind: wire.KindOrder, From: p.id, Decided: "down-all", Down: []sbr.ID{c.id("n1"), c.id("n2"), p.id}})
		m.require("n1", "sbr.messages.ignored{message=order,reason=resolver} = 1", "sbr.downs = 0")
		require.NoError(t, p.serf.Shutdown())
	})
}

// The lease is lost to a foreign owner.
func TestMetrics_LeaseLost(t *testing.T) {
	metered(t, 3, clustertest.MajorityFirst, func(t *testing.T, c *cluster, m *meters) {
		require.NoError(t, c.Net.Partition([]string{"n1", "n2"}, []string{"n3"}))
		c.Eventually(time.Minute, "nobody won", func() bool { return c.Member("n3").Down() })
		m.require("n1", "sbr.lease.held = 1", "sbr.lease.losses = 0")
		rec := c.Store.Snapshot().Record
		rec.Holder, rec.Nonce, rec.Token = "somebody", "else", rec.Token+1
		c.Store.Restore(rec)
		time.Sleep(5 * time.Second)
		m.require("n1", "sbr.lease.held = 0", "sbr.lease.losses = 1")
	})
}

// A store that forgets, and one in which another verdict stands under the token of the last one.
func TestMetrics_StoreForgets(t *testing.T) {
	metered(t, 3, clustertest.MajorityFirst, func(t *testing.T, c *cluster, m *meters) {
		require.NoError(t, c.Net.Partition([]string{"n1", "n2"}, []string{"n3"}))
		c.Eventually(time.Minute, "nobody won", func() bool { return c.Member("n3").Down() })
		time.Sleep(3 * time.Minute)
		m.require("n1", "sbr.lease.backwards = 0", "sbr.lease.conflicts = 0")
		rec := c.Store.Snapshot().Record
		c.Store.Delete()
		time.Sleep(5 * time.Second)
		m.require("n1", "sbr.lease.backwards = 1", "sbr.lease.conflicts = 0")
		rec.Verdict.DecidedBy, rec.Nonce, rec.Renewed = c.id("n2"), "another", time.Now()
		c.Store.Restore(rec)
		time.Sleep(5 * time.Second)
		m.require("n1", "sbr.lease.conflicts = 1")
	})
}

// answering is a store whose watch ends, and which knows when it had an answer.
type answering struct {
	lease.Store
	last time.Time
}

func (answering) Watch(context.Context, func(lease.Snapshot)) error { return errors.New("no") }
func (s answering) LastAnswer() time.Time                           { return s.last }

func TestMetrics_WatchEndsAndStoreKnowsWhenItWasAnswered(t *testing.T) {
	var last time.Time
	metered(t, 1, func(_ string, c *downing.Config) {
		last = time.Now().Add(time.Minute)
		c.Store = answering{c.Store, last}
	}, func(t *testing.T, _ *cluster, m *meters) {
		time.Sleep(time.Until(last) + 10*time.Second)
		m.require("n1", "sbr.lease.watch.running = 0", "sbr.lease.watch.failures > 10")
		require.InDelta(t, 10, m.value("n1", "sbr.lease.answer.age"), .1)
	})
}

// A Serf agent that does not answer makes its member suspended, and in the end down. An agent that refuses a
// removal is asked again.
func TestMetrics_AgentUnreachable(t *testing.T) {
	m, x := newMeters(t), newTracers(t)
	virtual(t, func(name string, c *downing.Config) { m.config(name, c); clustertest.MajorityFirst(name, c) }, func(t *testing.T, c *cluster) {
		require.NoError(t, c.Net.Add("n1")) // the first address: it leads
		c.Boot("n2")
		a := &stockAgent{c: c, name: "n1"}
		a.boot(nil, "n2")
		n1 := c.NewMember("n1", func(cfg *downing.Config) { x.config("n1", cfg) })
		n1.Serf = a.node
		require.NoError(t, n1.Provider.Beside(t.Context(), a, nil))
		c.Boot("n3", "n2")
		time.Sleep(20 * time.Second)
		m.require("n1", "sbr.state{state=up} = 1", "sbr.members = 3", "sbr.agent.unreachable = 0")

		a.setSilent(true)
		time.Sleep(5 * time.Second)
		m.require("n1", "sbr.agent.unreachable = 1", "sbr.agent.unreachable.time > 3", "sbr.agent.failures{reason=timeout} = 1", "sbr.suspensions{cause=agent} = 1", "sbr.partitions{cause=agent} = 1", "sbr.state{state=suspended} = 1")
		a.setSilent(false)
		time.Sleep(2 * time.Minute)
		m.require("n1", "sbr.agent.unreachable = 0", "sbr.agent.unreachable.time < 7", "sbr.partition.duration{outcome=healed} = 1")
		ep := x.episode("n1")
		require.Equal(t, "agent", attr(ep.Attributes, "sbr.cause"))
		require.Len(t, events(&ep, "resumed"), 1)

		a.refuseRemovals(errors.New("refused"))
		require.NoError(t, c.Net.Partition([]string{"n1", "n2"}, []string{"n3"}))
		c.Eventually(time.Minute, "n3 is up", func() bool { return c.Member("n3").Down() })
		time.Sleep(30 * time.Second)
		m.require("n1", "sbr.removals{outcome=failed} > 0")
		a.setSilent(true)
		<-n1.Provider.Done()
		m.require("n1", "sbr.downs = 1", "sbr.agent.unreachable = 0")
		require.NoError(t, n1.Stop())
		a.halt()
	})
}
