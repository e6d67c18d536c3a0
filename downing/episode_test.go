package downing_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
)

// tracers collects the traces of each member of a cluster.
type tracers struct {
	t     testing.TB
	spans map[string]*tracetest.InMemoryExporter
}

// traced runs a test in virtual time in a cluster of n members that are armed.
func traced(t *testing.T, n int, config func(string, *downing.Config),
	f func(t *testing.T, c *cluster, x *tracers)) {
	t.Helper()
	x := newTracers(t)
	both := func(name string, c *downing.Config) {
		x.config(name, c)
		if config != nil {
			config(name, c)
		}
	}
	formed(t, n, both, func(t *testing.T, c *cluster) { f(t, c, x) })
}

func newTracers(t testing.TB) *tracers {
	return &tracers{t: t, spans: make(map[string]*tracetest.InMemoryExporter)}
}

func (x *tracers) config(name string, c *downing.Config) {
	x.spans[name] = tracetest.NewInMemoryExporter()
	c.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(x.spans[name]),
		sdktrace.WithIDGenerator(downing.TraceIDs{}))
}

// episodes are the roots of a member's traces, in the order in which they ended.
func (x *tracers) episodes(member string) (roots []tracetest.SpanStub) {
	for _, s := range x.spans[member].GetSpans() {
		if !s.Parent.IsValid() {
			require.Equal(x.t, "sbr.partition", s.Name)
			roots = append(roots, s)
		}
	}
	return roots
}

// episode is the only one of a member.
func (x *tracers) episode(member string) tracetest.SpanStub {
	x.t.Helper()
	all := x.episodes(member)
	require.Len(x.t, all, 1, member)
	return all[0]
}

// children are the spans of a name under a root.
func (x *tracers) children(member string, root *tracetest.SpanStub, name string) (
	spans []tracetest.SpanStub) {
	for _, s := range x.spans[member].GetSpans() {
		if s.Parent.SpanID() == root.SpanContext.SpanID() && s.Name == name {
			require.Equal(x.t, root.SpanContext.TraceID(), s.SpanContext.TraceID())
			spans = append(spans, s)
		}
	}
	return spans
}

func attr(attrs []attribute.KeyValue, key attribute.Key) any {
	for _, kv := range attrs {
		if kv.Key == key {
			return kv.Value.AsInterface()
		}
	}
	return nil
}

func events(s *tracetest.SpanStub, name string) (found []sdktrace.Event) {
	for _, e := range s.Events {
		if e.Name == name {
			found = append(found, e)
		}
	}
	return found
}

// One trace records a partition at all members: both sides, the requests for the lease, the winner, the
// deliveries, the downed members.
func TestEpisode_SplitIsOneTraceOfAllMembers(t *testing.T) {
	long(t)
	traced(t, 5, clustertest.MajorityFirst, func(t *testing.T, c *cluster, x *tracers) {
		require.NoError(t, c.Net.Partition(upper, lower))
		cut := time.Now()
		c.Eventually(time.Minute, "nobody won",
			func() bool { return c.Member("n4").Down() && c.Member("n5").Down() })
		time.Sleep(2 * time.Minute)
		verdict := c.Store.Snapshot().Record.Verdict

		n1 := x.episode("n1")
		for _, name := range []string{"n2", "n3", "n4", "n5"} {
			ep := x.episode(name)
			require.Equal(t, n1.SpanContext.TraceID(), ep.SpanContext.TraceID(), name)
			require.Equal(t, name, attr(ep.Attributes, "sbr.member"))
		}
		for key, want := range map[attribute.Key]any{
			"sbr.system": "payments", "sbr.member": "n1", "sbr.incarnation": string(c.id("n1")), "sbr.strategy": "lease-majority", "sbr.cause": "unreachable", "sbr.outcome": "resolved",
			"sbr.side.reachable": int64(3), "sbr.side.unreachable": int64(2), "sbr.flaps": int64(0), "sbr.verdict.token": int64(1),
			"sbr.verdict.decided_by": string(verdict.DecidedBy), "sbr.episode": n1.SpanContext.TraceID().String(),
		} {
			require.Equal(t, want, attr(n1.Attributes, key), key)
		}
		require.Equal(t, codes.Unset, n1.Status.Code)
		require.WithinDuration(t, cut, n1.StartTime, 10*time.Second)
		require.GreaterOrEqual(t, n1.EndTime.Sub(n1.StartTime), 20*time.Second)
		for _, name := range []string{"suspended", "unreachable", "decision", "verdict", "removed", "resumed",
			"resolved"} {
			require.NotEmpty(t, events(&n1, name), name)
		}
		require.Equal(t, "acquire-lease-and-down-unreachable",
			attr(events(&n1, "decision")[0].Attributes, "sbr.decision"))
		require.Equal(t, verdict.Reason, attr(events(&n1, "verdict")[0].Attributes, "sbr.text"))

		stable := x.children("n1", &n1, "sbr.stable")
		require.Len(t, stable, 1)
		require.InDelta(t, 20, stable[0].EndTime.Sub(stable[0].StartTime).Seconds(), .5, "stable-after")
		asked := x.children("n1", &n1, "sbr.lease.acquire")
		require.Len(t, asked, 1)
		require.Equal(t, "granted", attr(asked[0].Attributes, "sbr.outcome"))
		require.Equal(t, int64(1), attr(asked[0].Attributes, "sbr.lease.token"))
		require.Equal(t, trace.SpanKindClient, asked[0].SpanKind)
		told := x.children("n1", &n1, "sbr.tell")
		require.NotEmpty(t, told)
		require.Equal(t, int64(2), attr(told[0].Attributes, "sbr.targets"))
		require.Equal(t, int64(0), attr(told[0].Attributes, "sbr.unanswered"))
		require.Len(t, x.children("n1", &n1, "sbr.removal"), 1)

		n4 := x.episode("n4")
		require.Equal(t, "down", attr(n4.Attributes, "sbr.outcome"))
		require.Equal(t, int64(2), attr(n4.Attributes, "sbr.side.reachable"), "before it was down")
		require.Equal(t, int64(3), attr(n4.Attributes, "sbr.side.unreachable"))
		require.Equal(t, codes.Error, n4.Status.Code)
		require.Contains(t, n4.Status.Description, "does not list this member")
		require.Len(t, events(&n4, "verdict"), 1)
		require.Len(t, events(&n4, "down"), 1)
		require.Empty(t, x.children("n4", &n4, "sbr.lease.acquire"), "the watch was faster")
	})
}

// Flapping is one episode with a bounded number of steps, not thousands of traces.
func TestEpisode_FlappingIsOneTrace(t *testing.T) {
	long(t)
	steady := func(_ string, c *downing.Config) { c.Resolver.DownAllWhenUnstable = 0 }
	traced(t, 3, steady, func(t *testing.T, c *cluster, x *tracers) {
		for range 40 {
			require.NoError(t, c.Net.Partition([]string{"n1", "n2"}, []string{"n3"}))
			time.Sleep(10 * time.Second)
			c.Net.Heal()
			time.Sleep(20 * time.Second)
		}
		require.Empty(t, x.episodes("n1"), "it is not over")
		time.Sleep(3 * time.Minute)
		require.Len(t, c.Up(), 3)
		ep := x.episode("n1")
		require.Greater(t, ep.EndTime.Sub(ep.StartTime), 19*time.Minute)
		require.Greater(t, attr(ep.Attributes, "sbr.flaps"), int64(35))
		require.Greater(t, attr(ep.Attributes, "sbr.steps.skipped"), int64(50))
		require.LessOrEqual(t, len(x.spans["n1"].GetSpans())+len(ep.Events), 90)
		require.Zero(t, ep.DroppedEvents)
		first, last := ep.Events[0], ep.Events[len(ep.Events)-2]
		require.Equal(t, "unreachable", first.Name)
		require.WithinDuration(t, ep.EndTime, last.Time, time.Second, "the last steps are there: %s", last.Name)
	})
}

// A member that goes down because nobody reaches the store says so in its last trace, which is out of the
// process before Done.
func TestEpisode_DownIsWrittenBeforeTheExit(t *testing.T) {
	x := newTracers(t)
	config := func(name string, c *downing.Config) {
		x.config(name, c)
		c.Exit = func(int) { require.Len(t, x.episodes(name), 1, "at the exit") }
	}
	formed(t, 3, config, func(t *testing.T, c *cluster) {
		require.NoError(t, c.Net.Partition([]string{"n1", "n2"}, []string{"n3"}))
		c.Eventually(time.Minute, "nobody noticed the cut",
			func() bool { return c.provider("n1").Status().State == "suspended" })
		// The store fails at the last moment: a side that knows that it is silent reads before it asks for
		// the lease.
		time.Sleep(downing.DefaultConfig().Resolver.StableAfter - time.Second/2)
		for _, m := range c.Members() {
			name := m.Name
			c.Store.View(name).SetUnavailable(true)
		}
		c.Eventually(2*time.Minute, "somebody is up", func() bool { return len(c.Up()) == 0 })
		for _, m := range c.Members() {
			<-m.Provider.Done()
		}
		time.Sleep(time.Minute)
		n1 := x.episode("n1")
		require.Equal(t, codes.Error, n1.Status.Code)
		require.Contains(t, n1.Status.Description, "no member of this side got an answer from the lease store")
		asked := x.children("n1", &n1, "sbr.lease.acquire")
		require.NotEmpty(t, asked)
		for _, a := range asked {
			require.Equal(t, "unknown", attr(a.Attributes, "sbr.outcome"))
			require.Equal(t, codes.Error, a.Status.Code)
			require.NotEmpty(t, a.Status.Description)
		}
		require.True(t, slices.ContainsFunc(x.children("n1", &n1, "sbr.tell"),
			func(s tracetest.SpanStub) bool { return attr(s.Attributes, "sbr.message") == "order" }))
	})
}

// deaf is a provider whose collector does not answer, and that waits for it whatever its context says.
type deaf struct{ trace.TracerProvider }

func (deaf) ForceFlush(context.Context) error { time.Sleep(time.Minute); return nil }

// A collector that hangs does not keep a member from going down, nor for long from ending.
func TestEpisode_HangingCollector(t *testing.T) {
	alone(t, func(t *testing.T, s *single) {
		p, node := s.started(func(c *downing.Config) { c.Tracer = deaf{sdktrace.NewTracerProvider()} })
		time.Sleep(10 * time.Second)
		began := time.Now()
		require.NoError(t, node.Shutdown())
		<-p.Downed()
		require.Less(t, time.Since(began), time.Second)
		<-p.Done()
		require.Less(t, time.Since(began), 5*time.Second)
		stop(t, p)
	})
}

// brokenExporter is an exporter that panics.
type brokenExporter struct{}

func (brokenExporter) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { panic("no") }
func (brokenExporter) Shutdown(context.Context) error                             { return nil }

// Telemetry that breaks downs nobody.
func TestEpisode_BrokenExporter(t *testing.T) {
	virtual(t, func(name string, c *downing.Config) {
		clustertest.MajorityFirst(name, c)
		c.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(brokenExporter{}))
	}, func(t *testing.T, c *cluster) {
		c.Form(3)
		require.NoError(t, c.Net.Partition([]string{"n1", "n2"}, []string{"n3"}))
		time.Sleep(3 * time.Minute)
		require.Equal(t, []string{"n1", "n2"}, c.Up())
		require.Contains(t, c.provider("n3").Reason(), "does not list this member")
	})
}

// A failure that nothing announced is an episode as well; a member that is stopped ends its own.
func TestEpisode_FailureAndStop(t *testing.T) {
	traced(t, 3, nil, func(t *testing.T, c *cluster, x *tracers) {
		require.NoError(t, c.Member("n2").Serf.Shutdown())
		<-c.provider("n2").Done()
		n2 := x.episode("n2")
		require.Equal(t, "failure", attr(n2.Attributes, "sbr.cause"))
		require.Contains(t, n2.Status.Description, "shut down under it")

		time.Sleep(10 * time.Second)
		require.NoError(t, c.Member("n3").Stop())
		n3 := x.episode("n3")
		require.Equal(t, "stopped", attr(n3.Attributes, "sbr.outcome"))
	})
}
