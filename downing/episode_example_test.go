package downing_test

import (
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/serf-sbr/serf-sbr/downing"
)

// With TraceIDs all members that a verdict concerns share one trace.
func ExampleTraceIDs() {
	exporter := tracetest.NewNoopExporter() // otlptracehttp.New(ctx), for instance
	cfg := downing.DefaultConfig()
	cfg.Tracer = trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithIDGenerator(downing.TraceIDs{}))
}
