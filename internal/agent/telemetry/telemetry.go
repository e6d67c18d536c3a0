package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
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

// Options say who is measured. The zero Options is ready for use.
type Options struct {
	// Version is the version of the program.
	Version string
	// System is the name of the cluster; every sbr_* series has it as the label system. Empty: no such label.
	System string
	// Logger is told what goes wrong. Nil: slog.Default().
	Logger *slog.Logger
}

// Telemetry is the telemetry of one process. All methods are safe for concurrent use.
type Telemetry struct {
	meter   metric.MeterProvider
	tracer  trace.TracerProvider
	handler http.Handler

	stops []func(context.Context) error
	once  sync.Once
	err   error
}

// New reads the variables and starts what they ask for. Errors name the variable that is wrong.
func New(ctx context.Context, o Options) (*Telemetry, error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	quiet(o.Logger)
	t := &Telemetry{meter: noopmetric.NewMeterProvider(), tracer: nooptrace.NewTracerProvider()}
	r := newRegistry(&o)
	t.handler = r.handler(o.Logger)
	if disabled() {
		return t, nil
	}
	res, err := describe(ctx, &o)
	if err != nil {
		return nil, err
	}
	fetched, err := r.reader(o.System)
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	readers := []sdkmetric.Option{sdkmetric.WithResource(res), sdkmetric.WithReader(fetched)}
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
	t.meter, t.stops = meter, append(t.stops, meter.Shutdown)
	if exporter != nil {
		tracer := sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithBatcher(exporter), sdktrace.WithIDGenerator(downing.TraceIDs{}))
		t.tracer, t.stops = tracer, append(t.stops, tracer.Shutdown)
	}
	return t, nil
}

// Meter takes metrics. It measures nothing if the SDK is disabled.
func (t *Telemetry) Meter() metric.MeterProvider { return t.meter }

// Tracer takes traces. It records nothing unless they are sent somewhere.
func (t *Telemetry) Tracer() trace.TracerProvider { return t.tracer }

// Handler answers /metrics in the formats that Prometheus reads. It works after Shutdown as well, for what the process tells.
func (t *Telemetry) Handler() http.Handler { return t.handler }

// shutdownWithin bounds Shutdown where ctx does not.
const shutdownWithin = 5 * time.Second

// Shutdown sends what has not been sent and ends everything that New started. It returns when ctx ends at the latest, and after five
// seconds. The second call waits for the first and returns the same.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	t.once.Do(func() {
		ctx, cancel := context.WithTimeout(ctx, shutdownWithin)
		defer cancel()
		results := make(chan error, len(t.stops)) // nobody may be left to hear of the last ones
		for _, stop := range t.stops {
			go func() { results <- stop(ctx) }()
		}
		var errs []error
		for range t.stops {
			select {
			case err := <-results:
				errs = append(errs, err)
			case <-ctx.Done():
				t.err = errors.Join(append(errs, fmt.Errorf("telemetry: not everything was sent: %w", ctx.Err()))...)
				return
			}
		}
		t.err = errors.Join(errs...)
	})
	return t.err
}

// registry holds what Prometheus may fetch. It is not the global one, into which any library may put what it likes.
type registry struct{ *prometheus.Registry }

func newRegistry(o *Options) registry {
	r := registry{prometheus.NewRegistry()}
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	r.of(o.System).MustRegister(buildInfo(o.Version))
	return r
}

// of adds the label system to whatever is registered with it.
func (r registry) of(system string) prometheus.Registerer {
	if system == "" {
		return r.Registry
	}
	return prometheus.WrapRegistererWith(prometheus.Labels{"system": system}, r.Registry)
}

// reader is where the meter's values are fetched from. The names are those of old Prometheus servers as well; the library's name
// and version would be on every series, and are in sbr_build_info.
func (r registry) reader(system string) (sdkmetric.Reader, error) {
	return otelprom.New(otelprom.WithRegisterer(r.of(system)), otelprom.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes), otelprom.WithoutScopeInfo())
}

func buildInfo(version string) prometheus.Collector {
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
		ConstLabels: prometheus.Labels{"version": version, "revision": revision, "goversion": runtime.Version()},
	})
	g.Set(1)
	return g
}

// scrapeWithin bounds the answer to one request.
const scrapeWithin = 10 * time.Second

// scrapes is how many requests are answered at the same time.
const scrapes = 8

func (r registry) handler(log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{
		ErrorLog: printer{log}, ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: scrapes, Timeout: scrapeWithin, EnableOpenMetrics: true,
	})
}

// printer logs what promhttp prints.
type printer struct{ log *slog.Logger }

func (p printer) Println(v ...any) {
	p.log.Warn("sbr: the metrics could not be served in full", "error", fmt.Sprint(v...))
}
