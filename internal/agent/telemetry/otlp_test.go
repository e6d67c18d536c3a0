package telemetry_test

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/memnet"
	"github.com/serf-sbr/serf-sbr/downing/memnet/serfnet"
	"github.com/serf-sbr/serf-sbr/internal/agent/telemetry"
	"github.com/serf-sbr/serf-sbr/internal/logtest"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// collector takes in what is sent by OTLP over HTTP.
type collector struct {
	*httptest.Server
	mu       sync.Mutex
	paths    []string
	spans    []*tracepb.Span
	resource map[string]string
	metrics  []string
}

func newCollector(t *testing.T) *collector {
	c := &collector{resource: make(map[string]string)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = c.take(r.URL.Path, body)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) take(path string, body []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paths = append(c.paths, path)
	switch path {
	case "/v1/traces":
		var m collectortrace.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &m); err != nil {
			return err
		}
		for _, r := range m.GetResourceSpans() {
			c.describe(r.GetResource().GetAttributes())
			for _, s := range r.GetScopeSpans() {
				c.spans = append(c.spans, s.GetSpans()...)
			}
		}
	case "/v1/metrics":
		var m collectormetrics.ExportMetricsServiceRequest
		if err := proto.Unmarshal(body, &m); err != nil {
			return err
		}
		for _, r := range m.GetResourceMetrics() {
			c.describe(r.GetResource().GetAttributes())
			for _, s := range r.GetScopeMetrics() {
				for _, x := range s.GetMetrics() {
					c.metrics = append(c.metrics, x.GetName())
				}
			}
		}
	default:
		return errors.New("no such path")
	}
	return nil
}

func (c *collector) describe(attrs []*commonpb.KeyValue) {
	for _, kv := range attrs {
		c.resource[kv.GetKey()] = kv.GetValue().GetStringValue()
	}
}

func textOf(attrs []*commonpb.KeyValue, key string) string {
	for _, kv := range attrs {
		if kv.GetKey() == key {
			return kv.GetValue().GetStringValue()
		}
	}
	return ""
}

func start(t *testing.T, log *slog.Logger) *telemetry.Telemetry {
	t.Helper()
	tel, err := telemetry.New(t.Context(), "payments", log)
	require.NoError(t, err)
	return tel
}

func end(t *testing.T, tel *telemetry.Telemetry) {
	t.Helper()
	require.NoError(t, tel.Shutdown(context.Background()))
}

// fails is one way to end a member.
func fails(node *serf.Serf) { _ = node.Shutdown() }

// goesDown runs a real member over a store, does to it what ends it, and returns once all of that is over.
func goesDown(t *testing.T, tel *telemetry.Telemetry, store *leasetest.Memory, do func(*serf.Serf)) {
	t.Helper()
	cfg := downing.DefaultConfig()
	cfg.System, cfg.Store, cfg.Exit, cfg.Logger = "payments", store.View("n1"), func(int) {}, quiet
	cfg.Meter, cfg.Tracer = tel.Meter, tel.Tracer
	p, err := downing.New(cfg)
	require.NoError(t, err)
	node, err := serfnet.Start(memnet.New(memnet.Config{}),
		"n1", func(conf *serf.Config) { require.NoError(t, p.Prepare(t.Context(), conf)) })
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), node))
	do(node)
	<-p.Done()
	require.NoError(t, p.Stop(t.Context()))
}

// The trace of a member that goes down is at the collector before its process may exit, without any Shutdown.
func TestOTLP_LastTraceArrivesBeforeTheExit(t *testing.T) {
	unset(t)
	c := newCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.pod.name=payments-0,k8s.node.name=a,service.version=v9")
	tel := start(t, quiet)
	goesDown(t, tel, leasetest.NewMemory(), fails)

	c.mu.Lock()
	spans, resource := c.spans, c.resource
	c.mu.Unlock()
	require.Len(t, spans, 1)
	require.Equal(t, "sbr.partition", spans[0].GetName())
	require.Equal(t, tracepb.Status_STATUS_CODE_ERROR, spans[0].GetStatus().GetCode())
	require.Contains(t, spans[0].GetStatus().GetMessage(), "the Serf node was shut down under it")
	require.Equal(t, "n1", textOf(spans[0].GetAttributes(), "sbr.member"))
	require.Equal(t, "down", textOf(spans[0].GetAttributes(), "sbr.outcome"))
	for key, want := range map[string]string{
		"service.name": "sbr", "service.version": "v9", "sbr.system": "payments", "k8s.pod.name": "payments-0", "k8s.node.name": "a",
	} {
		require.Equal(t, want, resource[key], key)
	}
	require.NotEmpty(t, resource["service.instance.id"])
	end(t, tel)
	require.Contains(t, c.paths, "/v1/metrics", "one endpoint is enough for both")
}

// The trace is the trace of the verdict, from any sender.
func TestOTLP_TraceOfTheVerdict(t *testing.T) {
	unset(t)
	c := newCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	tel, store := start(t, quiet), leasetest.NewMemory()
	goesDown(t, tel, store, func(*serf.Serf) {
		store.Restore(lease.Record{Token: 1, Verdict: &sbr.Verdict{Token: 1, Survivors: []sbr.ID{"n2#u"},
			DecidedBy: "n2#u", Reason: "a test"}})
	})
	end(t, tel)
	c.mu.Lock()
	defer c.mu.Unlock()
	require.NotEmpty(t, c.spans)
	root := c.spans[len(c.spans)-1]
	require.Equal(t, "verdict", textOf(root.GetAttributes(), "sbr.cause"))
	require.Equal(t, textOf(root.GetAttributes(), "sbr.episode"), hex.EncodeToString(root.GetTraceId()))
}

// Metrics go out where somebody asks for that, and stay at /metrics.
func TestOTLP_Metrics(t *testing.T) {
	unset(t)
	c := newCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", c.URL+"/v1/metrics")
	tel := start(t, quiet)
	goesDown(t, tel, leasetest.NewMemory(), fails)
	end(t, tel)
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Contains(t, c.metrics, "sbr.downs")
	require.Contains(t, c.metrics, "sbr.partition.duration")
	require.Equal(t, "payments", c.resource["sbr.system"])
	require.Empty(t, c.spans)
}

// Which variables have traces sent.
func TestNew_Variables(t *testing.T) {
	c := newCollector(t)
	for _, tc := range []struct {
		name  string
		env   map[string]string
		sends bool
		err   string
	}{
		{"nothing is set", nil, false, ""},
		{"an endpoint for everything", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL}, true, ""},
		{"an endpoint for traces", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": c.URL + "/v1/traces"}, true, ""},
		{"an exporter", map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": c.URL + "/v1/traces"}, true, ""},
		{"none", map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": c.URL}, false, ""},
		{"disabled", map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": c.URL}, false, ""},
		{"metrics by prometheus", map[string]string{"OTEL_METRICS_EXPORTER": "prometheus"}, false, ""},
		{"an endpoint for metrics", map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": c.URL + "/v1/metrics"}, false, ""},
		{"an unknown exporter", map[string]string{"OTEL_TRACES_EXPORTER": "jaeger"}, false, "OTEL_TRACES_EXPORTER=jaeger"},
		{"an unknown exporter of metrics", map[string]string{"OTEL_METRICS_EXPORTER": "statsd"}, false, "OTEL_METRICS_EXPORTER=statsd"},
		{"an unknown protocol", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_EXPORTER_OTLP_PROTOCOL": "carrier-pigeon"}, false, "OTLP protocol"},
		{"attributes that are none", map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "where"}, false, "OTEL_RESOURCE_ATTRIBUTES"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			unset(t)
			for k, v := range tc.env {
				t.Setenv(k, v)
			}
			tel, err := telemetry.New(t.Context(), "", quiet)
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			c.mu.Lock()
			c.spans = nil
			c.mu.Unlock()
			_, span := tel.Tracer.Tracer("test").Start(t.Context(), "sbr.test")
			require.Equal(t, tc.sends, span.IsRecording())
			span.End()
			end(t, tel)
			c.mu.Lock()
			defer c.mu.Unlock()
			if tc.sends {
				require.Len(t, c.spans, 1)
			} else {
				require.Empty(t, c.spans)
			}
		})
	}
}

// Without the SDK the process itself can still be watched.
func TestHandler_Disabled(t *testing.T) {
	unset(t)
	t.Setenv("OTEL_SDK_DISABLED", "TRUE")
	tel := start(t, quiet)
	c, err := tel.Meter.Meter("test").Int64Counter("sbr.test")
	require.NoError(t, err)
	c.Add(t.Context(), 1)
	text := scrape(t, tel, "")
	require.Contains(t, text, `sbr_build_info{`)
	require.Contains(t, text, `version="`+downing.Version()+`"`)
	require.Contains(t, text, "go_goroutines")
	require.NotContains(t, text, "sbr_test")
	end(t, tel)
	require.Contains(t, scrape(t, tel, "application/openmetrics-text"), "# EOF")
}

// A collector that accepts and never answers holds Shutdown up for as long as its bound, and what goes wrong
// is a line in the log.
func TestShutdown_Bounded(t *testing.T) {
	unset(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+l.Addr().String())
	tel := start(t, quiet)
	_, span := tel.Tracer.Tracer("test").Start(t.Context(), "sbr.test")
	span.End()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	require.ErrorIs(t, tel.Shutdown(ctx), context.DeadlineExceeded)
	require.Less(t, time.Since(began), 3*time.Second)
}

// Errors of the SDK are one line a minute, and begin as all lines do.
func TestQuiet_OneLine(t *testing.T) {
	unset(t)
	var log logtest.Log
	tel := start(t, slog.New(slog.NewTextHandler(&log, nil)))
	for range 1000 {
		otel.Handle(errors.New("connection refused"))
	}
	end(t, tel)
	require.Len(t, log.All(), 1)
	require.Contains(t, log.All()[0], `level=WARN msg="sbr: telemetry was not sent" error=`)
}

// Nothing is left running after Shutdown.
func TestShutdown_LeavesNothing(t *testing.T) {
	unset(t)
	c := newCollector(t)
	before := goleak.IgnoreCurrent()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	t.Setenv("OTEL_METRICS_EXPORTER", "otlp")
	tel := start(t, quiet)
	_, span := tel.Tracer.Tracer("test").Start(t.Context(), "sbr.test")
	span.End()
	end(t, tel)
	c.CloseClientConnections()
	http.DefaultClient.CloseIdleConnections()
	goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("net/http.(*conn).serve"))
}
