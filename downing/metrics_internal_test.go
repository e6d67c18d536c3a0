package downing

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// A flood that the loop does not keep up with is dropped, and counted.
func TestMetrics_Overload(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	cfg := DefaultConfig()
	cfg.System, cfg.Store, cfg.Logger = "payments", leasetest.NewMemory().View("n1"),
		slog.New(slog.DiscardHandler)
	cfg.Meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	e, err := newEngine(cfg, newLifecycle(&cfg))
	require.NoError(t, err)
	e.self, e.running = sbr.Member{ID: "n1#a", Name: "n1"}, true
	payload := wire.Encode(wire.Message{Kind: wire.KindReport, From: "n2#b", Up: []sbr.ID{"n3#c"}})[0]
	for range maxPending + 7 {
		e.onQuery(wire.MessageQuery, "n2", payload, nil)
	}
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &all))
	var dropped, queued int64
	for _, m := range all.ScopeMetrics[0].Metrics {
		switch m.Name {
		case "sbr.messages.ignored":
			for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
				dropped += p.Value
			}
		case "sbr.loop.queue":
			queued = m.Data.(metricdata.Gauge[int64]).DataPoints[0].Value
		}
	}
	require.EqualValues(t, 7, dropped)
	require.EqualValues(t, maxPending, queued)
}

// Whatever is measured has one of the labels that it was made with: a value that nobody foresaw makes no new
// series.
func TestMetrics_UnforeseenValues(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	m, err := newMetrics(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
		func() readings { return readings{} })
	require.NoError(t, err)
	m.add(countSent, "gossip of the neighbours")
	m.add(countIgnored, "no-kind", "no-reason")
	m.took(timeCallback, time.Second, "nobody")
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &all))
	for _, x := range all.ScopeMetrics[0].Metrics {
		require.NotContains(t, fmt.Sprint(x.Data), "neighbours")
		require.NotEqual(t, "sbr.callback.duration", x.Name)
	}
}

// The trace of a verdict is the same for all members that know it, and another one for every other verdict.
func TestTraceIDs(t *testing.T) {
	v := sbr.Verdict{Token: 1, DecidedBy: "n1#a"}
	id := traceOf(&v)
	require.True(t, id.IsValid())
	require.Equal(t, id, traceOf(&sbr.Verdict{Token: 1, DecidedBy: "n1#a", Partial: true, Reason: "cut short"}))
	require.NotEqual(t, id, traceOf(&sbr.Verdict{Token: 2, DecidedBy: "n1#a"}))
	require.NotEqual(t, id, traceOf(&sbr.Verdict{Token: 1, DecidedBy: "n1#b"}))

	got, span := TraceIDs{}.NewIDs(withTraceID(t.Context(), id))
	require.Equal(t, id, got)
	require.True(t, span.IsValid())
	one, _ := TraceIDs{}.NewIDs(t.Context())
	two, _ := TraceIDs{}.NewIDs(t.Context())
	require.True(t, one.IsValid())
	require.NotEqual(t, one, two)
}
