package telemetry

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"slices"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/serf-sbr/serf-sbr/downing"
)

// The variables that this package reads itself; the SDK and its exporters read the others.
const (
	envDisabled        = "OTEL_SDK_DISABLED"
	envTraces          = "OTEL_TRACES_EXPORTER"
	envMetrics         = "OTEL_METRICS_EXPORTER"
	envEndpoint        = "OTEL_EXPORTER_OTLP_ENDPOINT"
	envTracesEndpoint  = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	envMetricsEndpoint = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
)

// anySet reports whether one of the variables has a value.
func anySet(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return os.Getenv(name) != "" })
}

// spanExporter is where traces go; nil if nowhere.
func spanExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	if !anySet(envTraces, envTracesEndpoint, envEndpoint) || os.Getenv(envTraces) == "none" {
		return nil, nil
	}
	e, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		return nil, fmt.Errorf("telemetry: traces (%s=%s): %w", envTraces, os.Getenv(envTraces), err)
	}
	return e, nil
}

// metricReader sends metrics; nil if nobody asked for that.
func metricReader(ctx context.Context) (sdkmetric.Reader, error) {
	name := os.Getenv(envMetrics)
	if !anySet(envMetrics, envMetricsEndpoint, envEndpoint) || name == "none" || name == "prometheus" { // Handler does it
		return nil, nil
	}
	r, err := autoexport.NewMetricReader(ctx)
	if err != nil {
		return nil, fmt.Errorf("telemetry: metrics (%s=%s): %w", envMetrics, name, err)
	}
	return r, nil
}

// describe says what process this is. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES have the last word.
func describe(ctx context.Context, system string) (*resource.Resource, error) {
	attrs := []attribute.KeyValue{
		semconv.ServiceName("sbr"), semconv.ServiceVersion(downing.Version()), semconv.ServiceInstanceID(rand.Text()),
		attribute.String("sbr.system", system),
	}
	if host, err := os.Hostname(); err == nil {
		attrs = append(attrs, semconv.HostName(host))
	}
	r, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(attrs...), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("telemetry: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return r, nil
}
