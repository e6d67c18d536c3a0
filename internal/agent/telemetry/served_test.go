package telemetry_test

//go:generate go test . -run ^TestServed_AfterASplit$ -update

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/memnet"
	"github.com/serf-sbr/serf-sbr/downing/memnet/serfnet"
	"github.com/serf-sbr/serf-sbr/internal/agent/telemetry"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sharding"
)

// unset takes the variables of OpenTelemetry out of the way of a test.
func unset(t testing.TB) {
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
}

var update = flag.Bool("update", false, "write docs/metrics.md anew")

var quiet = slog.New(slog.DiscardHandler)

func scrape(t testing.TB, tel *telemetry.Telemetry, accept string) string {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	tel.Handler.ServeHTTP(w, r)
	require.Equal(t, http.StatusOK, w.Code)
	body, err := io.ReadAll(w.Result().Body)
	require.NoError(t, err)
	return string(body)
}

func parse(t testing.TB, text string) map[string]*dto.MetricFamily {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(strings.NewReader(text))
	require.NoError(t, err)
	return families
}

// afterASplit is what the agents of three Serf nodes serve after n3 was cut off and downed, and the others
// were healed.
func afterASplit(t *testing.T) (pages []string) {
	unset(t)
	synctest.Test(t, func(t *testing.T) {
		network, store := memnet.New(memnet.Config{}), leasetest.NewMemory()
		var tels []*telemetry.Telemetry
		providers := make(map[string]*downing.Provider)
		nodes, err := serfnet.StartAll(network, func(name string, conf *serf.Config) {
			tel, err := telemetry.New(t.Context(), "payments", quiet)
			require.NoError(t, err)
			cfg := downing.DefaultConfig()
			cfg.System, cfg.Store, cfg.Exit, cfg.Logger = "payments", store.View(name), func(int) {}, quiet
			cfg.Meter, cfg.Tracer = tel.Meter, tel.Tracer
			p, err := downing.New(cfg)
			require.NoError(t, err)
			p.OnSuspend(func(string) {})
			p.OnResume(func(string) {})
			p.OnDown(func(string) {})
			require.NoError(t, p.Prepare(t.Context(), conf))
			providers[name], tels = p, append(tels, tel)
		}, "n1", "n2", "n3")
		require.NoError(t, err)
		for _, s := range nodes {
			require.NoError(t, providers[s.LocalMember().Name].Start(t.Context(), s))
		}
		var managers []*sharding.Manager
		for _, name := range []string{"n1", "n2", "n3"} {
			m, err := sharding.New(providers[name], sharding.Config{Type: "orders", Shards: sharding.Numbered(4),
				Logger: quiet,
				Run:    func(ctx context.Context, _ *sharding.Shard) error { <-ctx.Done(); return nil }})
			require.NoError(t, err)
			require.NoError(t, m.Start(t.Context()))
			managers = append(managers, m)
		}
		time.Sleep(20 * time.Second)
		require.NoError(t, network.Partition([]string{"n1", "n2"}, []string{"n3"}))
		time.Sleep(5 * time.Minute)
		for _, tel := range tels {
			pages = append(pages, scrape(t, tel, ""))
		}
		for _, m := range managers {
			require.NoError(t, m.Stop(t.Context()))
		}
		for _, s := range nodes {
			require.NoError(t, s.Shutdown())
		}
		for _, p := range providers {
			require.NoError(t, p.Stop(context.Background()))
		}
		for _, tel := range tels {
			require.NoError(t, tel.Shutdown(context.Background()))
		}
		time.Sleep(2 * time.Minute) // Serf's background work
	})
	return pages
}

func TestServed_AfterASplit(t *testing.T) {
	pages := afterASplit(t)
	t.Run("the table in the docs", func(t *testing.T) { isDocumented(t, pages) })
	t.Run("as Prometheus wants it", func(t *testing.T) { isClean(t, pages) })
}

// metric is what is served of one metric, whichever member serves it.
type metric struct {
	kind, help string
	labels     map[string][]string
}

// docs/metrics.md is made of what is served after a split: names, types, labels with their values, and what
// they mean.
func isDocumented(t *testing.T, pages []string) {
	served := make(map[string]metric)
	for _, text := range pages {
		for name, f := range parse(t, text) {
			if !strings.HasPrefix(name, "sbr_") {
				continue
			}
			r, known := served[name]
			if !known {
				r = metric{kind: strings.ToLower(f.GetType().String()), help: f.GetHelp(),
					labels: make(map[string][]string)}
			}
			for _, m := range f.GetMetric() {
				for _, l := range m.GetLabel() {
					if l.GetName() == "system" {
						require.Equal(t, "payments", l.GetValue())
						continue
					}
					if values := r.labels[l.GetName()]; !slices.Contains(values, l.GetValue()) {
						r.labels[l.GetName()] = append(values, l.GetValue())
					}
				}
			}
			served[name] = r
		}
	}
	var b strings.Builder
	b.WriteString("<!-- made by make generate from what an agent serves -->\n\n# Metrics\n\nEach series has the label `system` as well. " +
		"In OpenTelemetry a metric has the same name with dots, without the unit and `_total`. A histogram has each value of a label from its first measurement on. " +
		"Those of runs and shards are there where singletons or shards are. [What the values mean](telemetry.md#values-of-labels).\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(served)) {
		m := served[name]
		var labels []string
		for _, l := range slices.Sorted(maps.Keys(m.labels)) {
			slices.Sort(m.labels[l])
			text := "`" + l + "`"
			// those of this build, of this split, of these shards
			if name != "sbr_build_info" && m.kind != "histogram" && l != "name" {
				text += ": " + strings.Join(m.labels[l], ", ")
			}
			labels = append(labels, text)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, m.kind, strings.Join(labels, "; "), m.help)
	}
	const path = "../../../docs/metrics.md"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	is, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, b.String() == string(is), "%s is not what is served: run make generate", path)
}

// What is served is as Prometheus wants it.
func isClean(t *testing.T, pages []string) {
	for _, text := range pages {
		problems, err := promlint.New(strings.NewReader(text)).Lint()
		require.NoError(t, err)
		problems = slices.DeleteFunc(problems,
			func(p promlint.Problem) bool { return strings.HasPrefix(p.Metric, "go_") })
		require.Empty(t, problems)
		families := parse(t, text)
		for _, name := range []string{"go_goroutines", "process_resident_memory_bytes", "target_info",
			"sbr_build_info", "sbr_state"} {
			require.Contains(t, families, name)
		}
		require.NotContains(t, text, "otel_scope")
		series := 0
		for name, f := range families {
			if strings.HasPrefix(name, "sbr_") {
				series += len(f.GetMetric())
			}
			for _, m := range f.GetMetric() {
				for _, l := range m.GetLabel() {
					require.NotContains(t, []string{"n1", "n2", "n3"}, l.GetValue(), "no names of members")
				}
			}
		}
		require.LessOrEqual(t, series, 150)
	}
}
