package downing_test

import (
	"context"
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
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
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
	m := newMeters(t)
	config := func(name string, c *downing.Config) { m.config(name, c); clustertest.MajorityFirst(name, c) }
	virtual(t, config, func(t *testing.T, c *cluster) {
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
			m.require(name, "sbr.members = 5", "sbr.unreachable = 0", "sbr.state{state=up} = 1", "sbr.state{state=suspended} = 0", "sbr.armed = 1",
				"sbr.reports = 0", "sbr.untagged = 0", "sbr.disagreeing = 0", "sbr.suspended.age = 0", "sbr.suspended.time = 0", "sbr.partition.active = 0",
				"sbr.downs = 0", "sbr.verdict.token = 0", "sbr.lease.held = 0", "sbr.lease.watch.running = 1", "sbr.lease.reads{outcome=ok} > 0",
				"sbr.lease.reads{outcome=error} = 0", "sbr.probes{outcome=answered} > 50", "sbr.probes{outcome=unanswered} = 0", "sbr.probe.duration > 50",
				"sbr.decisions{decision=acquire-lease-and-down-unreachable} = 0", "sbr.partitions{cause=unreachable} = 0", "sbr.agent.unreachable = 0", "sbr.agent.unreachable.time = 0",
				"sbr.suspensions{cause=resolver} = 0", "sbr.rejoins.refused = 0", "sbr.told{outcome=unanswered} = 0", "sbr.removals{outcome=failed} = 0",
				"sbr.callback.panics{callback=down} = 0", "sbr.loop.queue = 0", "sbr.pauses = 0", "sbr.pause.time = 0")
		}
		m.require("n1", "sbr.responsible = 1")
		m.require("n2", "sbr.responsible = 0")

		require.NoError(t, c.Net.Partition([]string{"n1", "n2", "n3"}, []string{"n4", "n5"}))
		time.Sleep(15 * time.Second)
		m.require("n1", "sbr.unreachable = 2", "sbr.reports > 1", "sbr.state{state=suspended} = 1", "sbr.state{state=up} = 0", "sbr.suspended.age > 8",
			"sbr.suspended.time > 8", "sbr.suspensions{cause=resolver} = 1", "sbr.partitions{cause=unreachable} = 1", "sbr.partition.active = 1",
			"sbr.probes{outcome=unanswered} > 2", "sbr.messages.sent{message=report} > 0", "sbr.messages.received{message=report} > 0", "sbr.callback.duration{callback=suspend} = 1")
		m.require("n4", "sbr.unreachable = 3", "sbr.responsible = 1")

		c.Eventually(time.Minute, "nobody won", func() bool { return c.Member("n4").Down() && c.Member("n5").Down() })
		m.require("n1", "sbr.lease.held = 1")
		time.Sleep(2 * time.Minute)
		m.require("n1", "sbr.members = 3", "sbr.unreachable = 0", "sbr.state{state=up} = 1", "sbr.suspended.age = 0", "sbr.suspended.time > 15",
			"sbr.decisions{decision=acquire-lease-and-down-unreachable} = 1", "sbr.lease.acquire.duration{outcome=granted} = 1", "sbr.verdict.token = 1",
			"sbr.messages.sent{message=verdict} > 0", "sbr.messages.received{message=done} > 1", "sbr.told{outcome=answered} = 2", "sbr.removals{outcome=removed} = 2",
			"sbr.partition.active = 0", "sbr.partition.duration{outcome=resolved} = 1", "sbr.partition.decision.duration = 1", "sbr.partition.removal.duration = 1",
			"sbr.callback.duration{callback=resume} = 1", "sbr.lease.held = 0", "sbr.lease.answer.age > 10")
		m.require("n2", "sbr.messages.sent{message=done} > 0", "sbr.messages.received{message=verdict} > 0", "sbr.partition.duration{outcome=resolved} = 1")
		m.require("n4", "sbr.downs = 1", "sbr.state{state=down} = 1", "sbr.state{state=suspended} = 0", "sbr.partition.duration{outcome=down} = 1",
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
			s, err := startAt(c, "plain")
			require.NoError(t, err)
			time.Sleep(5 * time.Second)
			m.require("n1", "sbr.untagged = 1", "sbr.members = 3")
			require.NoError(t, s.Shutdown())
		}},
		{"a member with another configuration disagrees", 2, func(name string, c *downing.Config) {
			if name == "n2" {
				c.Resolver.StableAfter = 30 * time.Second
			}
		}, func(_ *testing.T, _ *cluster, m *meters) {
			m.require("n1", "sbr.disagreeing = 1")
			m.require("n2", "sbr.disagreeing = 1")
		}},
		{"a heal", 5, nil, func(t *testing.T, c *cluster, m *meters) {
			require.NoError(t, c.Net.Partition([]string{"n1", "n2", "n3"}, []string{"n4", "n5"}))
			time.Sleep(15 * time.Second)
			c.Net.Heal()
			time.Sleep(2 * time.Minute)
			m.require("n1", "sbr.partitions{cause=unreachable} = 1", "sbr.partition.duration{outcome=healed} = 1", "sbr.downs = 0", "sbr.partition.active = 0",
				"sbr.decisions{decision=acquire-lease-and-down-unreachable} = 0")
		}},
		{"nobody reaches the store", 3, nil, func(t *testing.T, c *cluster, m *meters) {
			for _, m := range c.Members() {
				name := m.Name
				c.Store.View(name).SetUnavailable(true)
			}
			require.NoError(t, c.Net.Partition([]string{"n1", "n2"}, []string{"n3"}))
			c.Eventually(2*time.Minute, "somebody is up", func() bool { return len(c.Up()) == 0 })
			time.Sleep(20 * time.Second)
			m.require("n1", "sbr.decisions{decision=down-reachable} = 1", "sbr.messages.sent{message=ask} > 0",
				"sbr.messages.sent{message=order} > 0", "sbr.partition.duration{outcome=down} = 1", "sbr.lease.answer.age > 20")
			m.require("n2", "sbr.messages.received{message=ask} > 0")
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
			require.NoError(t, c.Net.Partition([]string{"n1", "n2", "n3"}, []string{"n4", "n5"}))
			time.Sleep(3 * time.Minute)
			m.require("n1", "sbr.decisions{decision=down-unreachable} = 1", "sbr.partition.duration{outcome=resolved} = 1", "sbr.partition.decision.duration = 1", "sbr.verdict.token = 0")
			m.require("n2", "sbr.partition.duration{outcome=resolved} = 1", "sbr.messages.received{message=order} > 0")
			m.require("n4", "sbr.decisions{decision=down-reachable} = 1", "sbr.downs = 1")
		}},
		{"a callback that panics", 1, nil, func(t *testing.T, c *cluster, m *meters) {
			c.provider("n1").OnDown(func(string) { panic("no") })
			require.NoError(t, c.Member("n1").Serf.Shutdown())
			<-c.provider("n1").Done()
			m.require("n1", "sbr.callback.panics{callback=down} = 1", "sbr.downs = 1", "sbr.partitions{cause=failure} = 1")
		}},
		{"a resolver that panics", 3, func(name string, c *downing.Config) {
			c.Observe = func(o downing.Occurrence) {
				if name == "n1" && o.Kind == downing.OccurredUnreachable {
					panic("no")
				}
			}
		}, func(t *testing.T, c *cluster, m *meters) {
			require.NoError(t, c.Net.Partition([]string{"n1", "n2"}, []string{"n3"}))
			c.Eventually(time.Minute, "it goes on", func() bool { return c.Member("n1").Down() })
			m.require("n1", "sbr.state{state=down} = 1", "sbr.state{state=up} = 0", "sbr.downs = 1")
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
		t.Run(tc.name, func(t *testing.T) {
			m := newMeters(t)
			config := func(name string, c *downing.Config) {
				m.config(name, c)
				if tc.config != nil {
					tc.config(name, c)
				}
			}
			virtual(t, config, func(t *testing.T, c *cluster) {
				c.Form(tc.n)
				tc.do(t, c, m)
			})
		})
	}
}
