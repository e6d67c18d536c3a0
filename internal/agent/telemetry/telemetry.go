package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

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
	fetched.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	ours.MustRegister(buildInfo())
	t := &Telemetry{Meter: noopmetric.NewMeterProvider(), Tracer: nooptrace.NewTracerProvider(), Handler: promhttp.HandlerFor(fetched,
		promhttp.HandlerOpts{
			ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: scrapes, Timeout: scrapeWithin,
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
		tracer := sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithBatcher(exporter), sdktrace.WithIDGenerator(downing.TraceIDs{}))
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
		ConstLabels: prometheus.Labels{"version": downing.Version(), "revision": revision, "goversion": runtime.Version()},
	})
	g.Set(1)
	return g
}

// scrapeWithin bounds the answer to one request, scrapes is how many are answered at the same time.
const (
	scrapeWithin = 10 * time.Second
	scrapes      = 8
)
