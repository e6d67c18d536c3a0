// Package telemetry sets the SDK of OpenTelemetry up for the agent: metrics for a Prometheus server that
// comes to fetch them, and if wanted traces and metrics to a collector.
//
//	t, err := telemetry.New(ctx, "payments", log)
//	cfg.Meter, cfg.Tracer = t.Meter, t.Tracer
//	// serve t.Handler at /metrics
//	err = t.Shutdown(ctx)
//
// # Guarantees
//
// Nothing is sent, and nothing but Handler is served, unless one of the standard variables says so: traces go
// out if OTEL_TRACES_EXPORTER, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT is set;
// metrics likewise, by OTEL_METRICS_EXPORTER, OTEL_EXPORTER_OTLP_METRICS_ENDPOINT or
// OTEL_EXPORTER_OTLP_ENDPOINT. OTEL_SDK_DISABLED=true switches both off, and leaves Handler what the Go
// runtime and the process tell.
//
// What goes wrong while sending is logged, a line a minute at most; nothing is written to standard error past
// the logger. Recording never waits for the network: what does not fit into the queue is dropped.
//
// # Non-guarantees
//
// What is in the queue when the process is killed is lost; Shutdown sends it.
//
// # Assumptions
//
// One Telemetry in a process: the error handler of OpenTelemetry is global.
package telemetry
