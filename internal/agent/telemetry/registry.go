package telemetry

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

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
