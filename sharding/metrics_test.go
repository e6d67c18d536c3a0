package sharding_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
)

// collect returns a member's series of runs and shards whose label name is "orders", by name, cause and
// state; those that are 0 are left out. Of a histogram it is the number of measurements.
func collect(t *testing.T, r *sdkmetric.ManualReader) map[string]int {
	var all metricdata.ResourceMetrics
	require.NoError(t, r.Collect(t.Context(), &all))
	values := make(map[string]int)
	add := func(name string, points []metricdata.DataPoint[int64]) {
		for _, p := range points {
			of, _ := p.Attributes.Value("name")
			cause, _ := p.Attributes.Value("cause")
			state, _ := p.Attributes.Value("state")
			if of.AsString() == "orders" && p.Value != 0 {
				values[strings.TrimSpace(name+" "+cause.AsString()+state.AsString())] = int(p.Value)
			}
		}
	}
	for _, s := range all.ScopeMetrics {
		for _, x := range s.Metrics {
			switch d := x.Data.(type) {
			case metricdata.Gauge[int64]:
				add(x.Name, d.DataPoints)
			case metricdata.Sum[int64]:
				add(x.Name, d.DataPoints)
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					if of, ok := p.Attributes.Value("name"); ok && of.AsString() == "orders" {
						values[x.Name] = int(p.Count)
					}
				}
			}
		}
	}
	return values
}

func TestMetrics_OfRunsAndShards(t *testing.T) {
	readers := make(map[string]*sdkmetric.ManualReader)
	measured := func(name string, c *downing.Config) {
		clustertest.Quick(name, c)
		readers[name] = sdkmetric.NewManualReader()
		c.Meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(readers[name]))
	}
	clustertest.Virtual(t, clustertest.Options{Config: measured}, func(t *testing.T, cl *clustertest.Cluster) {
		c := newCrew(t, cl, 4)
		c.startAll(2)
		defer c.stop()
		c.settles(time.Minute)
		time.Sleep(time.Minute)
		on := c.register.on()
		coordinates := collect(t, readers["n1"])
		require.Equal(t, 4, coordinates["sbr.shards running"])
		require.Equal(t, on["n1"], coordinates["sbr.run.active"])
		require.NotContains(t, collect(t, readers["n2"]), "sbr.shards running")

		require.NoError(t, c.managers["n2"].Stop(t.Context()))
		c.settles(time.Minute)
		left := collect(t, readers["n2"])
		require.NotContains(t, left, "sbr.run.active")
		require.Equal(t, left["sbr.run.starts"], left["sbr.run.ends hand-over"])
		require.Equal(t, left["sbr.run.starts"], left["sbr.run.stop.duration"])
		require.Equal(t, 4, collect(t, readers["n1"])["sbr.run.active"])

		require.NoError(t, c.managers["n1"].Stop(t.Context()))
		gone := collect(t, readers["n1"])
		require.Equal(t, 4, gone["sbr.run.ends resigned"]+gone["sbr.run.ends ordered"])
		require.NotContains(t, gone, "sbr.shards running")
	})
}
