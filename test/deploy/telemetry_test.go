package deploy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/serf-sbr/serf-sbr/test/buildcache"
)

const (
	alertsFile    = "prometheus/alerts.yaml"
	dashboardFile = "grafana/dashboard.json"
	telemetryPage = "../docs/metrics.md"
	runbookPage   = "../docs/operations.md"
	runbookURL    = "https://github.com/serf-sbr/serf-sbr/blob/main/docs/operations.md#"
)

// alert is a rule, as far as the tests look at it.
type alert struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

func alerts(t *testing.T) (all []alert) {
	t.Helper()
	text, err := os.ReadFile(alertsFile)
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Name  string
			Rules []alert
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	require.NotEmpty(t, all)
	return all
}

// Promtool accepts the rules, and its own tests of them pass.
func TestAlerts_Promtool(t *testing.T) {
	for _, args := range [][]string{{"check", "rules", "--lint=all", "--lint-fatal", "alerts.yaml"},
		{"test", "rules", "alerts_test.yaml"}} {
		out, err := runProgram(t, buildcache.Promtool, "prometheus", args...)
		require.NoError(t, err, "%s", out)
	}
}

// Each alert says how bad it is, what it means and where the runbook has it; it is tested firing and silent.
func TestAlerts_AreExplainedAndTested(t *testing.T) {
	tests, err := os.ReadFile("prometheus/alerts_test.yaml")
	require.NoError(t, err)
	runbook, err := os.ReadFile(runbookPage)
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, a := range alerts(t) {
		require.False(t, seen[a.Alert], "%s: twice", a.Alert)
		seen[a.Alert] = true
		require.Regexp(t, `^Sbr[A-Z][A-Za-z]+$`, a.Alert)
		require.Contains(t, []string{"critical", "warning"}, a.Labels["severity"], a.Alert)
		require.NotEmpty(t, a.Annotations["summary"], a.Alert)
		require.NotEmpty(t, a.Annotations["description"], a.Alert)
		require.Equal(t, runbookURL+strings.ToLower(a.Alert), a.Annotations["runbook_url"], a.Alert)
		require.Regexp(t, `(?m)^#+ `+a.Alert+`$`, string(runbook), "the runbook has no heading %s", a.Alert)
		require.Contains(t, string(tests), `{alertname="`+a.Alert+`"}`, "%s is never seen firing", a.Alert)
	}
	require.Contains(t, string(tests), "exp_samples: []", "and all are seen silent")
}

// The tests of the rules have the series that there are: a counter begins with zero, a histogram with its
// first measurement.
func TestAlerts_SeriesBeginAsTheyDo(t *testing.T) {
	text, err := os.ReadFile("prometheus/alerts_test.yaml")
	require.NoError(t, err)
	series := regexp.MustCompile(`series: '(\w+)\{.*values: '(\S+)`).FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, series)
	for _, m := range series {
		switch name, begins := m[1], m[2]; {
		case regexp.MustCompile(`_(bucket|count|sum)$`).MatchString(name):
			require.Regexp(t, `^_x`, begins, name)
		case strings.HasSuffix(name, "_total"):
			require.Regexp(t, `^0([x+]|$)`, begins, name)
		}
	}
}

// dashboard is Grafana's format, as far as the tests look at it.
type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Panels        []panel
	Templating    struct {
		List []struct {
			Name, Type string
			Definition string
		}
	}
	Annotations struct{ List []struct{ Expr string } }
}

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               source
	GridPos                  struct{ H, W, X, Y int }
	FieldConfig              struct{ Defaults struct{ Unit string } }
	Targets                  []struct {
		RefID, Expr string
		Datasource  source
	}
}

type source struct{ Type, UID string }

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &d))
	require.NotEmpty(t, d.Panels)
	return d
}

// The dashboard can be imported into any Grafana: it names no data source, and its panels lie beside each
// other and explain themselves.
func TestDashboard_IsWhole(t *testing.T) {
	d := readDashboard(t)
	require.Equal(t, "sbr-cluster", d.UID, "links to the dashboard last")
	require.Equal(t, 39, d.SchemaVersion)
	require.Equal(t, "datasource", d.Templating.List[0].Type)
	anySource := source{"prometheus", "${datasource}"}
	text, err := os.ReadFile(dashboardFile)
	require.NoError(t, err)
	for _, uid := range regexp.MustCompile(`"uid": "([^"]*)"`).FindAllStringSubmatch(string(text), -1) {
		require.Contains(t, []string{d.UID, anySource.UID}, uid[1], "variables and annotations too")
	}
	ids, titles, taken := map[int]bool{}, map[string]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		require.False(t, ids[p.ID], "%s: id %d twice", p.Title, p.ID)
		require.False(t, titles[p.Title], "%s: twice", p.Title)
		ids[p.ID], titles[p.Title] = true, true
		require.NotEmpty(t, p.Title)
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				require.Empty(t, taken[[2]int{x, y}], "%s lies over another panel", p.Title)
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		require.NotEmpty(t, p.Description, p.Title)
		require.NotEmpty(t, p.FieldConfig.Defaults.Unit, p.Title)
		require.Equal(t, anySource, p.Datasource, p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
		for _, q := range p.Targets {
			require.Equal(t, anySource, q.Datasource, p.Title)
			require.Contains(t, q.Expr, `system="$system"`, "%s: of one system", p.Title)
		}
	}
}

// expressions are all PromQL of the dashboard, with its variables filled in.
func (d dashboard) expressions() (all []string) {
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			all = append(all, q.Expr)
		}
	}
	for _, a := range d.Annotations.List {
		all = append(all, a.Expr)
	}
	fill := strings.NewReplacer("$__rate_interval", "5m", "$system", "payments", "$member", ".*")
	for i := range all {
		all[i] = fill.Replace(all[i])
	}
	return all
}

// Promtool parses every expression of the dashboard, and none has a variable that is not declared.
func TestDashboard_ExpressionsAreValid(t *testing.T) {
	var rules []map[string]string
	for _, expr := range readDashboard(t).expressions() {
		require.NotContains(t, expr, "$")
		rules = append(rules, map[string]string{"record": "panel", "expr": expr})
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "dashboard.yaml"), text, 0o600))
	out, err := runProgram(t, buildcache.Promtool, dir, "check", "rules", "--lint=none", "dashboard.yaml")
	require.NoError(t, err, "%s", out)
}

var metricName = regexp.MustCompile(`\b(?:sbr|go|process)_[a-z0-9_]+`)

// Every metric of the alerts and of the dashboard stands in the table of the documentation: a histogram there
// as its family.
func TestTelemetry_UsesOnlyDocumentedMetrics(t *testing.T) {
	page, err := os.ReadFile(telemetryPage)
	require.NoError(t, err)
	documented := map[string]bool{}
	for _, name := range metricName.FindAllString(string(page), -1) {
		documented[name] = true
	}
	queries := readDashboard(t).expressions()
	for _, a := range alerts(t) {
		queries = append(queries, a.Expr)
	}
	for _, query := range queries {
		names := metricName.FindAllString(query, -1)
		require.NotEmpty(t, names, query)
		for _, name := range names {
			family := name
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				family = strings.TrimSuffix(family, suffix)
			}
			known := documented[name] || documented[family] || !strings.HasPrefix(name, "sbr_") // client_golang's own
			require.True(t, known, "%s is in no table of docs/metrics.md: %s", name, query)
		}
	}
}
