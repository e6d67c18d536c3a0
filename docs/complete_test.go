package docs_test

import (
	"maps"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
)

func text(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return page{text: string(data)}.prose()
}

// Every field of the status has a line. (The metrics are compared with the exporter, by the tests of
// internal/agent/telemetry.)
func TestStatusIsExplained(t *testing.T) {
	explained := text(t, "embedding.md")
	for field := range reflect.TypeFor[downing.Status]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Type.Kind() == reflect.Slice {
			name += "[]"
		}
		require.Contains(t, explained, "`"+name+"`")
	}
}

// The table of dependencies lists what is imported, and nothing else.
func TestDependenciesAreExplained(t *testing.T) {
	mod := text(t, "../go.mod")
	var modules []string
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+) v`).FindAllStringSubmatch(mod, -1) {
		modules = append(modules, m[1])
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f",
		`{{join .Imports "\n"}}{{"\n"}}{{join .TestImports "\n"}}{{"\n"}}{{join .XTestImports "\n"}}`, "../...").Output()
	require.NoError(t, err)
	imported := make(map[string]bool)
	for path := range strings.FieldsSeq(string(out)) {
		best := ""
		for _, m := range modules {
			if (path == m || strings.HasPrefix(path, m+"/")) && len(m) > len(best) {
				best = m
			}
		}
		imported[best] = true
	}
	delete(imported, "")
	table, _, _ := strings.Cut(text(t, "dependencies.md"), "## tools/")
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|").FindAllStringSubmatch(table, -1) {
		for name := range strings.SplitSeq(row[1], ", ") {
			name = strings.Trim(name, "`")
			require.True(t, imported[name], "%s is explained, but nothing imports it", name)
			delete(imported, name)
		}
	}
	require.Empty(t, slices.Sorted(maps.Keys(imported)), "imported, but not explained")
}

// A label of a metric and the attribute of a span that say the same have one name.
func TestLabelsAreNamedLikeAttributes(t *testing.T) {
	metricsOnly := map[string]bool{
		"callback": true, "for": true, "state": true,
		"goversion": true, "revision": true, "version": true,
	}
	_, spans, _ := strings.Cut(text(t, "telemetry.md"), "## Traces")
	rows := regexp.MustCompile("(?m)^\\| `sbr_\\w+` \\| \\w+ \\| ([^|]+) \\|")
	for _, row := range rows.FindAllStringSubmatch(text(t, "metrics.md"), -1) {
		for _, label := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[1], -1) {
			named := metricsOnly[label[1]] || strings.Contains(spans, "`sbr."+label[1]+"`")
			require.True(t, named, "no span has sbr.%s", label[1])
		}
	}
}
