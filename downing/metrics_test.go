package downing_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// meters collects the metrics of each member of a cluster.
type meters struct {
	t       testing.TB
	mu      sync.Mutex
	readers map[string]*sdkmetric.ManualReader
}

func newMeters(t testing.TB) *meters {
	return &meters{t: t, readers: make(map[string]*sdkmetric.ManualReader)}
}

func (m *meters) config(name string, c *downing.Config) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.readers[name] = sdkmetric.NewManualReader()
	c.Meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(m.readers[name]))
}

// collect returns the values of one member by name and labels, as in `sbr.state{state=up}`; of a histogram
// the number of measurements.
func (m *meters) collect(member string) map[string]float64 {
	m.t.Helper()
	m.mu.Lock()
	r := m.readers[member]
	m.mu.Unlock()
	var all metricdata.ResourceMetrics
	require.NoError(m.t, r.Collect(context.Background(), &all))
	values := make(map[string]float64)
	for _, s := range all.ScopeMetrics {
		for _, x := range s.Metrics {
			switch d := x.Data.(type) {
			case metricdata.Gauge[int64]:
				points(values, x.Name, d.DataPoints)
			case metricdata.Gauge[float64]:
				points(values, x.Name, d.DataPoints)
			case metricdata.Sum[int64]:
				points(values, x.Name, d.DataPoints)
			case metricdata.Sum[float64]:
				points(values, x.Name, d.DataPoints)
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					values[seriesOf(x.Name, p.Attributes)] = float64(p.Count)
				}
			default:
				require.Failf(m.t, "unexpected", "%s is a %T", x.Name, d)
			}
		}
	}
	return values
}

func points[N int64 | float64](into map[string]float64, name string, points []metricdata.DataPoint[N]) {
	for _, p := range points {
		into[seriesOf(name, p.Attributes)] = float64(p.Value)
	}
}

func seriesOf(name string, set attribute.Set) string {
	var labels []string
	for _, kv := range set.ToSlice() {
		labels = append(labels, fmt.Sprintf("%s=%s", kv.Key, kv.Value.String()))
	}
	if len(labels) == 0 {
		return name
	}
	return name + "{" + strings.Join(labels, ",") + "}"
}

func (m *meters) value(member, series string) float64 {
	m.t.Helper()
	all := m.collect(member)
	v, ok := all[series]
	require.True(m.t, ok, "%s has no %s", member, series)
	return v
}

// require requires values, each written as `series = value`, or with > instead.
func (m *meters) require(member string, want ...string) {
	m.t.Helper()
	all := m.collect(member)
	for _, w := range want {
		f := strings.Fields(w)
		v, ok := all[f[0]]
		var limit float64
		_, err := fmt.Sscan(f[2], &limit)
		require.NoError(m.t, err)
		ok = ok && (f[1] == "=" && v == limit || f[1] == ">" && v > limit || f[1] == "<" && v < limit)
		require.True(m.t, ok, "%s: %s, but it is %v of %v", member, w, v, slices.Sorted(keysOf(all)))
	}
}

func keysOf(m map[string]float64) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k, v := range m {
			if !yield(fmt.Sprintf("%s %v", k, v)) {
				return
			}
		}
	}
}

// A whole cluster, a split, its resolution and the heal after it, as the metrics show them.
func TestMetrics_Split(t *testing.T) {
	metered(t, 0, clustertest.MajorityFirst, func(t *testing.T, c *cluster, m *meters) {
		c.Boot("n1")
		m.require("n1", "sbr.state{state=arming} = 1", "sbr.armed = 0", "sbr.responsible = 0")
		for _, name := range []string{"n2", "n3", "n4", "n5"} {
			c.Boot(name, "n1")
		}
		for _, x := range c.Members() {
			x.Provider.OnSuspend(func(string) {})
			x.Provider.OnResume(func(string) {})
		}
		c.Whole(5) // Serf's gossip may leave a member out, until an exchange of states brings it
		time.Sleep(30 * time.Second)
		for _, name := range []string{"n1", "n2", "n3", "n4", "n5"} {
			m.require(name, "sbr.members = 5", "sbr.unreachable = 0", "sbr.state{state=up} = 1",
				"sbr.state{state=suspended} = 0", "sbr.armed = 1",
				"sbr.reports = 0", "sbr.untagged = 0", "sbr.disagreeing = 0", "sbr.suspended.age = 0", "sbr.suspended.time = 0", "sbr.partition.active = 0",
				"sbr.downs = 0", "sbr.verdict.token = 0", "sbr.lease.held = 0", "sbr.lease.watch.running = 1", "sbr.lease.reads{outcome=ok} > 0",
				"sbr.lease.reads{outcome=error} = 0", "sbr.probes{outcome=answered} > 50", "sbr.probes{outcome=unanswered} = 0", "sbr.probe.duration > 50",
				"sbr.decisions{decision=acquire-lease-and-down-unreachable} = 0", "sbr.partitions{cause=unreachable} = 0", "sbr.agent.unreachable = 0", "sbr.agent.unreachable.time = 0",
				"sbr.suspensions{cause=resolver} = 0", "sbr.rejoins.refused = 0", "sbr.told{outcome=unanswered} = 0", "sbr.removals{outcome=failed} = 0",
				"sbr.callback.panics{callback=down} = 0", "sbr.loop.queue = 0", "sbr.pauses = 0", "sbr.pause.time = 0")
		}
		m.require("n1", "sbr.responsible = 1")
		m.require("n2", "sbr.responsible = 0")

		require.NoError(t, c.Net.Partition(upper, lower))
		time.Sleep(15 * time.Second)
		m.require("n1", "sbr.unreachable = 2", "sbr.reports > 1", "sbr.state{state=suspended} = 1",
			"sbr.state{state=up} = 0", "sbr.suspended.age > 8",
			"sbr.suspended.time > 8", "sbr.suspensions{cause=resolver} = 1", "sbr.partitions{cause=unreachable} = 1", "sbr.partition.active = 1",
			"sbr.probes{outcome=unanswered} > 2", "sbr.messages.sent{message=report} > 0", "sbr.messages.received{message=report} > 0", "sbr.callback.duration{callback=suspend} = 1")
		m.require("n4", "sbr.unreachable = 3", "sbr.responsible = 1")

		c.Eventually(time.Minute, "nobody won",
			func() bool { return c.Member("n4").Down() && c.Member("n5").Down() })
		m.require("n1", "sbr.lease.held = 1")
		time.Sleep(2 * time.Minute)
		m.require("n1", "sbr.members = 3", "sbr.unreachable = 0", "sbr.state{state=up} = 1",
			"sbr.suspended.age = 0", "sbr.suspended.time > 15",
			"sbr.decisions{decision=acquire-lease-and-down-unreachable} = 1", "sbr.lease.acquire.duration{outcome=granted} = 1", "sbr.verdict.token = 1",
			"sbr.messages.sent{message=verdict} > 0", "sbr.messages.received{message=done} > 1", "sbr.told{outcome=answered} = 2", "sbr.removals{outcome=removed} = 2",
			"sbr.partition.active = 0", "sbr.partition.duration{outcome=resolved} = 1", "sbr.partition.decision.duration = 1", "sbr.partition.removal.duration = 1",
			"sbr.callback.duration{callback=resume} = 1", "sbr.lease.held = 0", "sbr.lease.answer.age > 10")
		m.require("n2", "sbr.messages.sent{message=done} > 0", "sbr.messages.received{message=verdict} > 0",
			"sbr.partition.duration{outcome=resolved} = 1")
		m.require("n4", "sbr.downs = 1", "sbr.state{state=down} = 1", "sbr.state{state=suspended} = 0",
			"sbr.partition.duration{outcome=down} = 1",
			"sbr.verdict.token = 1", "sbr.callback.duration{callback=down} = 1", "sbr.responsible = 0", "sbr.suspended.age = 0", "sbr.partition.active = 0")
	})
}

// What a metric must count, each in a cluster of its own. do has the cluster of n members that are armed.
func TestMetrics_Move(t *testing.T) {
	for _, tc := range []struct {
		name   string
		n      int
		config func(name string, c *downing.Config)
		do     func(t *testing.T, c *cluster, m *meters)
	}{
		{"a node without a resolver is untagged", 2, nil, func(t *testing.T, c *cluster, m *meters) {
			require.NoError(t, startAt(c, "plain", nil))
			time.Sleep(5 * time.Second)
			m.require("n1", "sbr.untagged = 1", "sbr.members = 3")
		}},
		{"the smaller side is denied", 3, func(_ string, c *downing.Config) {
			c.Strategies.LeaseMajority.AcquireLeaseDelayForMinority = 2 * time.Second
			c.Resolver.Watched = false
		}, func(t *testing.T, c *cluster, m *meters) {
			m.require("n1", "sbr.lease.watch.running = 0")
			require.NoError(t, c.Net.Partition([]string{"n1", "n2"}, []string{"n3"}))
			c.Eventually(2*time.Minute, "n3 is up", func() bool { return c.Member("n3").Down() })
			m.require("n3", "sbr.lease.acquire.duration{outcome=held} = 1")
		}},
		{"a strategy without a lease", 5, func(_ string, c *downing.Config) { c.Strategy = "keep-majority" }, func(t *testing.T, c *cluster, m *meters) {
			require.NoError(t, c.Net.Partition(upper, lower))
			time.Sleep(3 * time.Minute)
			m.require("n1", "sbr.decisions{decision=down-unreachable} = 1", "sbr.partition.duration{outcome=resolved} = 1", "sbr.partition.decision.duration = 1", "sbr.verdict.token = 0")
			m.require("n2", "sbr.partition.duration{outcome=resolved} = 1", "sbr.messages.received{message=order} > 0")
			m.require("n4", "sbr.decisions{decision=down-reachable} = 1", "sbr.downs = 1")
		}},
		{"a callback that panics", 1, nil, func(t *testing.T, c *cluster, m *meters) {
			c.provider("n1").OnDown(func(string) { panic("no") })
			require.NoError(t, c.Member("n1").Serf.Shutdown())
			<-c.provider("n1").Done()
			m.require("n1", "sbr.callback.panics{callback=down} = 1", "sbr.downs = 1",
				"sbr.partitions{cause=failure} = 1")
		}},
		{"a member that is stopped in the middle", 3, nil, func(t *testing.T, c *cluster, m *meters) {
			require.NoError(t, c.Net.Partition([]string{"n1", "n2"}, []string{"n3"}))
			time.Sleep(10 * time.Second)
			require.NoError(t, c.Member("n3").Stop())
			all := m.collect("n3")
			require.InDelta(t, 1, all["sbr.partition.duration{outcome=stopped}"], 0)
			require.NotContains(t, all, "sbr.members", "nobody follows it any more")
		}},
	} {
		t.Run(tc.name, func(t *testing.T) { metered(t, tc.n, tc.config, tc.do) })
	}
}

// metered runs a test in virtual time in a cluster of n members that are armed.
func metered(t *testing.T, n int, config func(name string, c *downing.Config),
	f func(t *testing.T, c *cluster, m *meters)) {
	t.Helper()
	m := newMeters(t)
	both := func(name string, c *downing.Config) {
		m.config(name, c)
		if config != nil {
			config(name, c)
		}
	}
	formed(t, n, both, func(t *testing.T, c *cluster) {
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
		t.Log(startAt(c, "n3", tagsOf(uid)))
		time.Sleep(5 * time.Second)
		require.Positive(t, m.value("n1", "sbr.rejoins.refused")+m.value("n2", "sbr.rejoins.refused"))
	})
}

// Messages that change nothing are counted by what is wrong with them.
func TestMetrics_IgnoredMessages(t *testing.T) {
	metered(t, 2, nil, func(t *testing.T, c *cluster, m *meters) {
		p := c.puppet()
		p.send([]byte("junk"))
		p.say(wire.Message{Kind: wire.KindVerdict, From: p.id, Token: 1, By: p.id, Whole: true, Up: []sbr.ID{p.id},
			Down: []sbr.ID{c.id("n2")}})
		p.say(wire.Message{Kind: wire.KindOrder, From: "stranger#u", Decided: "down-all",
			Down: []sbr.ID{c.id("n1")}})
		m.require("n1", "sbr.messages.ignored{message=none,reason=invalid} = 1",
			"sbr.messages.ignored{message=verdict,reason=unverified} = 1",
			"sbr.messages.ignored{message=order,reason=forged} = 1", "sbr.downs = 0")
	})
}

// An order that does not fit what the resolver sees.
func TestMetrics_IgnoredByTheResolver(t *testing.T) {
	metered(t, 0, noLease, func(t *testing.T, c *cluster, m *meters) {
		p := c.leadingPuppet()
		c.Form(2)
		p.join(c)
		p.say(wire.Message{Kind: wire.KindOrder, From: p.id, Decided: "down-all",
			Down: []sbr.ID{c.id("n1"), c.id("n2"), p.id}})
		m.require("n1", "sbr.messages.ignored{message=order,reason=resolver} = 1", "sbr.downs = 0")
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

// A member that the newest verdict downed is shown until it is back, though Serf lists it no longer; and a
// member that is down does not call itself reachable.
func TestStatus_ShowsWhoWasDowned(t *testing.T) {
	virtual(t, clustertest.MajorityFirst, func(t *testing.T, c *cluster) {
		members := func(name string) int { return len(c.provider(name).Status().Members) }
		c.Form(3)
		id := c.id("n3")
		require.NoError(t, c.Net.Partition([]string{"n1", "n2"}, []string{"n3"}))
		gone := []downing.MemberStatus{{Name: "n3", Incarnation: string(id), Status: sbr.Down.String()}}
		for _, name := range []string{"n1", "n2"} {
			c.Eventually(2*time.Minute, "n3 is not removed", func() bool { return members(name) == 2 })
			require.Equal(t, gone, c.provider(name).Status().Downed, name)
		}
		<-c.provider("n3").Done()
		s := c.provider("n3").Status()
		require.Equal(t, sbr.StateDown, s.State)
		require.Empty(t, s.Downed, "it is listed")
		for _, m := range s.Members {
			require.False(t, m.Reachable, m.Name)
			require.Equal(t, m.Name == "n3", m.Status == sbr.Down.String(), m.Name)
		}

		c.Net.Heal()
		c.Boot("n3", "n1")
		c.Eventually(time.Minute, "n3 is not back", func() bool { return members("n1") == 3 })
		require.Empty(t, c.provider("n1").Status().Downed)
		require.NotZero(t, c.provider("n1").Status().Verdict.Token, "the verdict still names it")
	})
}
