package singleton_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
)

func TestTrace_OfARunThatIsHandedOver(t *testing.T) {
	spans := make(map[string]*tracetest.InMemoryExporter)
	traced := func(name string, c *downing.Config) {
		clustertest.Quick(name, c)
		spans[name] = tracetest.NewInMemoryExporter()
		c.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans[name]))
	}
	clustertest.Virtual(t, clustertest.Options{Config: traced}, func(t *testing.T, cl *clustertest.Cluster) {
		c := newCrew(t, cl, nil)
		c.startAll(2)
		c.runsOn("n1", 30*time.Second)
		require.NoError(t, c.managers["n1"].Stop(t.Context()))
		c.runsOn("n2", 10*time.Second)
		c.stop()
		synctest.Wait()
		for name, want := range map[string]map[string]string{
			"n1": {"sbr.cause": "hand-over", "sbr.from": ""},
			"n2": {"sbr.cause": "resigned", "sbr.from": "n1"},
		} {
			all := spans[name].GetSpans()
			require.Len(t, all, 2) // who is a child ends first
			stop, run := all[0], all[1]
			require.Equal(t, "sbr.run.stop", stop.Name)
			require.Equal(t, run.SpanContext.SpanID(), stop.Parent.SpanID())
			require.Equal(t, "sbr.run", run.Name)
			require.False(t, run.StartTime.After(stop.StartTime))
			require.Equal(t, run.EndTime, stop.EndTime)
			got := make(map[string]string)
			for _, a := range run.Attributes {
				got[string(a.Key)] = a.Value.String()
			}
			want["sbr.system"], want["sbr.member"] = "payments", name
			want["sbr.incarnation"] = got["sbr.incarnation"]
			want["sbr.kind"], want["sbr.name"], want["sbr.run"] = "singleton", "backup", "singleton backup"
			want["sbr.run.token"] = got["sbr.run.token"]
			require.Equal(t, want, got)
		}
	})
}
