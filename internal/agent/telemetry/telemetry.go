package telemetry

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"
	"golang.org/x/time/rate"

	"github.com/serf-sbr/serf-sbr/downing"
)

// Telemetry is the telemetry of one process. All methods are safe for concurrent use.
type Telemetry struct {
	// Meter takes metrics. It measures nothing if the SDK is disabled.
	Meter metric.MeterProvider
	// Tracer takes traces. It records nothing unless they are sent somewhere.
	Tracer trace.TracerProvider
	// Handler answers /metrics in the formats that Prometheus reads. It works after Shutdown as well, for
	// what the process tells.
	Handler http.Handler

	stops []func(context.Context) error
}

// New reads the variables and starts what they ask for. Errors name the variable that is wrong. Every sbr_*
// series has the name of the cluster as its label system; errors are logged.
func New(ctx context.Context, system string, log *slog.Logger) (*Telemetry, error) {
	quiet(log)
	fetched := prometheus.NewRegistry() // not the global one, into which any library may put what it likes
	ours := prometheus.WrapRegistererWith(prometheus.Labels{"system": system}, fetched)
	fetched.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	ours.MustRegister(buildInfo())
	t := &Telemetry{Meter: noopmetric.NewMeterProvider(), Tracer: nooptrace.NewTracerProvider(),
		Handler: promhttp.HandlerFor(fetched,
			promhttp.HandlerOpts{
				ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError,
				MaxRequestsInFlight: scrapes, Timeout: scrapeWithin,
				EnableOpenMetrics: true,
			})}
	if strings.EqualFold(os.Getenv(envDisabled), "true") {
		return t, nil
	}
	res, err := describe(ctx, system)
	if err != nil {
		return nil, err
	}
	// The names are those of old Prometheus servers as well; the library's name and version would be on every
	// series, and are in sbr_build_info.
	reader, err := otelprom.New(otelprom.WithRegisterer(ours), otelprom.WithoutScopeInfo(),
		otelprom.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes))
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	readers := []sdkmetric.Option{sdkmetric.WithResource(res), sdkmetric.WithReader(reader)}
	pushed, err := metricReader(ctx)
	if err != nil {
		return nil, err
	}
	if pushed != nil {
		readers = append(readers, sdkmetric.WithReader(pushed))
	}
	exporter, err := spanExporter(ctx)
	if err != nil {
		if pushed != nil {
			err = errors.Join(err, pushed.Shutdown(ctx))
		}
		return nil, err
	}
	meter := sdkmetric.NewMeterProvider(readers...)
	t.Meter, t.stops = meter, append(t.stops, meter.Shutdown)
	if exporter != nil {
		tracer := sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithBatcher(exporter),
			sdktrace.WithIDGenerator(downing.TraceIDs{}))
		t.Tracer, t.stops = tracer, append(t.stops, tracer.Shutdown)
	}
	return t, nil
}

// Shutdown sends what has not been sent and ends everything that New started. It returns when ctx ends at the
// latest. Call it once.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	var work sync.WaitGroup
	errs := make([]error, len(t.stops))
	for i, stop := range t.stops {
		work.Go(func() { errs[i] = stop(ctx) })
	}
	work.Wait()
	return errors.Join(errs...)
}

func buildInfo() prometheus.Collector {
	revision := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "sbr_build_info", Help: "Always 1; the labels say what runs here.",
		ConstLabels: prometheus.Labels{"version": downing.Version(), "revision": revision,
			"goversion": runtime.Version()},
	})
	g.Set(1)
	return g
}

// scrapeWithin bounds the answer to one request, scrapes is how many are answered at the same time.
const (
	scrapeWithin = 10 * time.Second
	scrapes      = 8
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
	// Handler does it
	if !anySet(envMetrics, envMetricsEndpoint, envEndpoint) || name == "none" || name == "prometheus" {
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
		semconv.ServiceName("sbr"), semconv.ServiceVersion(downing.Version()),
		semconv.ServiceInstanceID(rand.Text()),
		attribute.String("sbr.system", system),
	}
	if host, err := os.Hostname(); err == nil {
		attrs = append(attrs, semconv.HostName(host))
	}
	r, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(attrs...),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("telemetry: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return r, nil
}

// lineEvery is how often a line is logged.
const lineEvery = time.Minute

// quiet makes OpenTelemetry log through log, and little: an unreachable collector must not fill the log of a
// cluster in trouble. Messages of the SDK below errors are for its developers.
func quiet(log *slog.Logger) {
	say := seldom(log)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		say(slog.LevelWarn, "sbr: telemetry was not sent", err.Error())
	}))
	otel.SetLogger(funcr.New(func(_, text string) {
		say(slog.LevelError, "sbr: telemetry: the SDK complains", text)
	},
		funcr.Options{Verbosity: -1}))
}

// seldom returns what lets one line through in a while. It is safe for concurrent use.
func seldom(log *slog.Logger) func(level slog.Level, message, problem string) {
	sometimes := rate.Sometimes{Interval: lineEvery}
	return func(level slog.Level, message, problem string) {
		sometimes.Do(func() { log.Log(context.Background(), level, message, "error", problem) })
	}
}
