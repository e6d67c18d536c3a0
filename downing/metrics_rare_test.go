package downing_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/gossip"
	"github.com/serf-sbr/serf-sbr/downing/memnet/serfnet"
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
		c.startAll(n)
		f(t, c, m)
	})
}

// A process that stands still, alive to Serf: what it is told is not answered, what it does not do piles up, and when it wakes it asks everybody.
func TestMetrics_Pause(t *testing.T) {
	var gates gates
	metered(t, 4, gates.config, func(t *testing.T, c *cluster, m *meters) {
		require.NoError(t, c.net.Partition([]string{"n1", "n2", "n3"}, []string{"n4"}))
		time.Sleep(15 * time.Second)
		gates.close("n3")
		time.Sleep(time.Minute)
		m.require("n1", "sbr.told{outcome=answered} = 1", "sbr.told{outcome=unanswered} = 1")
		m.require("n3", "sbr.loop.queue > 10")
		gates.open("n3")
		time.Sleep(5 * time.Second)
		m.require("n3", "sbr.loop.queue = 0", "sbr.pauses = 1", "sbr.pause.time > 50", "sbr.messages.sent{kind=standing} > 0", "sbr.messages.received{kind=clear} > 0", "sbr.state{state=up} = 1")
		m.require("n1", "sbr.messages.received{kind=standing} > 0", "sbr.messages.sent{kind=clear} > 0")
	})
	metered(t, 1, gates.config, func(_ *testing.T, _ *cluster, m *meters) {
		gates.close("n1")
		time.Sleep(10 * time.Second)
		gates.open("n1")
		time.Sleep(5 * time.Second)
		m.require("n1", "sbr.partitions{cause=pause} = 1", "sbr.suspensions{cause=resolver} = 1")
	})
}

// A downed incarnation that comes back knocks, and is refused.
func TestMetrics_Knocks(t *testing.T) {
	metered(t, 3, majorityFirst, func(t *testing.T, c *cluster, m *meters) {
		require.NoError(t, c.net.Partition([]string{"n1", "n2"}, []string{"n3"}))
		c.eventually(time.Minute, func() bool { return c.down("n3") }, "nobody won")
		_, uid, _ := strings.Cut(string(c.id("n3")), "#")
		<-c.members["n3"].provider.Done()
		c.net.Heal()
		m.require("n1", "sbr.knocks.refused = 0")
		s, err := startAt(c, "n3", downing.TagUID, uid, downing.TagBorn, "1", downing.TagSeen, "0")
		t.Log(err)
		time.Sleep(5 * time.Second)
		require.Positive(t, m.value("n1", "sbr.knocks.refused")+m.value("n2", "sbr.knocks.refused"))
		require.NoError(t, s.Shutdown())
	})
}

// Messages that change nothing are counted by what is wrong with them.
func TestMetrics_IgnoredMessages(t *testing.T) {
	metered(t, 2, nil, func(t *testing.T, c *cluster, m *meters) {
		p := c.puppet()
		p.send([]byte("junk"))
		p.say(gossip.Message{Kind: gossip.KindVerdict, From: p.id, Token: 1, By: p.id, Whole: true, Up: []sbr.ID{p.id}, Down: []sbr.ID{c.id("n2")}})
		p.say(gossip.Message{Kind: gossip.KindOrder, From: "stranger#u", Decided: "down-all", Down: []sbr.ID{c.id("n1")}})
		m.require("n1", "sbr.messages.ignored{kind=none,reason=invalid} = 1", "sbr.messages.ignored{kind=verdict,reason=unverified} = 1",
			"sbr.messages.ignored{kind=order,reason=forged} = 1", "sbr.downs = 0")
		require.NoError(t, p.serf.Shutdown())
	})
}

// An order that does not fit what the resolver sees.
func TestMetrics_IgnoredByTheResolver(t *testing.T) {
	m := newMeters(t)
	virtual(t, func(name string, c *downing.Config) { m.config(name, c); c.Strategy = "keep-majority" }, func(t *testing.T, c *cluster) {
		require.NoError(t, c.net.Add("puppet")) // the first address: it leads
		c.startAll(2)
		p := c.puppet()
		p.say(gossip.Message{Kind: gossip.KindOrder, From: p.id, Decided: "down-all", Down: []sbr.ID{c.id("n1"), c.id("n2"), p.id}})
		m.require("n1", "sbr.messages.ignored{kind=order,reason=resolver} = 1", "sbr.downs = 0")
		require.NoError(t, p.serf.Shutdown())
	})
}

// The lease is lost to somebody who has no business with it.
func TestMetrics_LeaseLost(t *testing.T) {
	metered(t, 3, majorityFirst, func(t *testing.T, c *cluster, m *meters) {
		require.NoError(t, c.net.Partition([]string{"n1", "n2"}, []string{"n3"}))
		c.eventually(time.Minute, func() bool { return c.down("n3") }, "nobody won")
		m.require("n1", "sbr.lease.held = 1", "sbr.lease.losses = 0")
		rec := c.store.Snapshot().Record
		rec.Holder, rec.Nonce, rec.Token = "somebody", "else", rec.Token+1
		c.store.Restore(rec)
		time.Sleep(5 * time.Second)
		m.require("n1", "sbr.lease.held = 0", "sbr.lease.losses = 1")
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

// standIn is a Serf agent that runs in this process.
type standIn struct {
	serf   *serf.Serf
	events chan serf.Event
	done   chan struct{}
	once   sync.Once

	mu     sync.Mutex
	blind  bool
	refuse error
}

func (a *standIn) set(blind bool, refuse error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.blind, a.refuse = blind, refuse
}

func (a *standIn) Open(_ context.Context, ev downing.AgentEvents) (serf.Member, error) {
	go func() {
		for {
			select {
			case <-a.done:
				return
			case e := <-a.events:
				if q, ok := e.(*serf.Query); ok {
					ev.Query(q.Name, q.SourceNode(), q.Payload, q.Respond)
				} else {
					ev.Changed()
				}
			}
		}
	}()
	return a.serf.LocalMember(), nil
}

func (a *standIn) Members() ([]serf.Member, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.serf.Members(), !a.blind
}

func (a *standIn) Tag(_ context.Context, set map[string]string, remove []string) error {
	tags := make(map[string]string)
	maps.Copy(tags, a.serf.LocalMember().Tags)
	for _, k := range remove {
		delete(tags, k)
	}
	maps.Copy(tags, set)
	return a.serf.SetTags(tags)
}

func (a *standIn) Join(_ context.Context, name, addr string) error {
	_, err := a.serf.Join([]string{name + "/" + addr}, true)
	return err
}

func (a *standIn) Remove(_ context.Context, name string) (bool, error) {
	a.mu.Lock()
	err := a.refuse
	a.mu.Unlock()
	if err != nil {
		return false, err
	}
	return true, a.serf.RemoveFailedNode(name)
}

func (a *standIn) Query(name string, payload []byte, timeout time.Duration) (<-chan serf.NodeResponse, error) {
	resp, err := a.serf.Query(name, payload, &serf.QueryParam{Timeout: timeout})
	if err != nil {
		return nil, err
	}
	return resp.ResponseCh(), nil
}

func (a *standIn) Leave(context.Context) error { return a.serf.Leave() }
func (a *standIn) Close()                      { a.once.Do(func() { close(a.done) }) }

// besideOne starts a Serf node and a provider beside it, and joins it to n1.
func (c *cluster) besideOne(name string, m *meters, x *tracers) (*standIn, *downing.Provider) {
	c.t.Helper()
	a := &standIn{events: make(chan serf.Event, 1024), done: make(chan struct{})}
	cfg := downing.DefaultConfig()
	cfg.System, cfg.Store, cfg.Exit, cfg.Logger = "payments", c.store.View(name), func(int) {}, quietLog
	m.config(name, &cfg)
	x.config(name, &cfg)
	p, err := downing.New(cfg)
	require.NoError(c.t, err)
	a.serf, err = startNode(c, name, a.events)
	require.NoError(c.t, err)
	require.NoError(c.t, p.Beside(context.Background(), a, nil))
	return a, p
}

// A Serf agent that does not answer makes its member blind, suspended, and in the end down. One that refuses a removal is asked again.
func TestMetrics_AgentBlind(t *testing.T) {
	m, x := newMeters(t), newTracers(t)
	virtual(t, func(name string, c *downing.Config) { m.config(name, c); majorityFirst(name, c) }, func(t *testing.T, c *cluster) {
		require.NoError(t, c.net.Add("n1")) // the first address: it leads
		c.start("n2")
		a, p := c.besideOne("n1", m, x)
		c.start("n3", "n2")
		time.Sleep(20 * time.Second)
		m.require("n1", "sbr.state{state=up} = 1", "sbr.members = 3", "sbr.agent.blind = 0")

		a.set(true, nil)
		time.Sleep(5 * time.Second)
		m.require("n1", "sbr.agent.blind = 1", "sbr.agent.blind.time > 3", "sbr.suspensions{cause=agent} = 1", "sbr.partitions{cause=agent} = 1", "sbr.state{state=suspended} = 1")
		a.set(false, nil)
		time.Sleep(2 * time.Minute)
		m.require("n1", "sbr.agent.blind = 0", "sbr.agent.blind.time < 7", "sbr.partition.duration{outcome=healed} = 1")
		ep := x.episode("n1")
		require.Equal(t, "agent", attr(ep.Attributes, "sbr.cause"))
		require.Len(t, events(&ep, "resumed"), 1)

		a.set(false, errors.New("refused"))
		require.NoError(t, c.net.Partition([]string{"n1", "n2"}, []string{"n3"}))
		c.eventually(time.Minute, func() bool { return c.down("n3") }, "n3 is up")
		time.Sleep(30 * time.Second)
		m.require("n1", "sbr.removals{outcome=failed} > 0")
		a.set(true, nil)
		<-p.Downed()
		<-p.Done()
		m.require("n1", "sbr.downs = 1", "sbr.agent.blind = 0")
		stop(t, p)
		require.NoError(t, a.serf.Shutdown())
	})
}

var quietLog = slog.New(slog.DiscardHandler)

func startNode(c *cluster, name string, events chan serf.Event) (*serf.Serf, error) {
	s, err := serfnet.Start(c.net, name, func(conf *serf.Config) { conf.EventCh = events })
	if err == nil {
		_, err = s.Join(c.addresses([]string{"n2"}), true)
	}
	return s, err
}
