package docs_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
)

// page is one page of the documentation, its path as seen from this folder.
type page struct {
	path, text string
}

func pages(t *testing.T) (all []page) {
	t.Helper()
	paths, err := filepath.Glob("*.md")
	require.NoError(t, err)
	for _, path := range append(paths, "../README.md", "../CONTRIBUTING.md", "../SECURITY.md",
		"../CHANGELOG.md") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		all = append(all, page{path, string(text)})
	}
	return all
}

// block is a fenced block of code.
type block struct {
	page     page
	language string
	from     string // the comment before it, which names its source
	text     string
}

var fence = regexp.MustCompile("(?ms)^(?:<!-- ([^\n]*) -->\n)?```([a-z]*)\n(.*?)^```$")

func (p page) blocks() (all []block) {
	for _, m := range fence.FindAllStringSubmatch(p.text, -1) {
		all = append(all, block{page: p, from: m[1], language: m[2], text: m[3]})
	}
	return all
}

// prose is the page without its blocks of code.
func (p page) prose() string { return fence.ReplaceAllString(p.text, "") }

func blocks(t *testing.T, language string) (all []block) {
	t.Helper()
	for _, p := range pages(t) {
		for _, b := range p.blocks() {
			if b.language == language {
				all = append(all, b)
			}
		}
	}
	require.NotEmpty(t, all, language)
	return all
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Every relative link leads to a file that is there, and to a heading that it has.
func TestLinks(t *testing.T) {
	for _, p := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(p.prose(), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			target := p.path
			if path != "" {
				target = filepath.Join(filepath.Dir(p.path), path)
			}
			text, err := os.ReadFile(target)
			require.NoError(t, err, "%s: %s", p.path, m[1])
			if anchor != "" {
				require.Contains(t, anchors(string(text)), anchor, "%s: %s", p.path, m[1])
			}
		}
	}
}

func anchors(text string) (slugs []string) {
	for _, m := range heading.FindAllStringSubmatch(page{text: text}.prose(), -1) {
		slug := noSlug.ReplaceAllString(strings.ToLower(m[1]), "")
		slugs = append(slugs, strings.ReplaceAll(slug, " ", "-"))
	}
	return slugs
}

var (
	testName = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9_]*)`")
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
)

// Tests that a page names as a proof exist.
func TestNamedTestsExist(t *testing.T) {
	var known []string
	require.NoError(t, filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".." && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			known = append(known, m[1])
		}
		return err
	}))
	for _, p := range pages(t) {
		for _, m := range testName.FindAllStringSubmatch(p.text, -1) {
			require.True(t, slices.Contains(known, m[1]), "%s names the test %s", p.path, m[1])
		}
	}
}

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
		`{{join .Imports "\n"}}{{"\n"}}{{join .TestImports "\n"}}{{"\n"}}{{join .XTestImports "\n"}}`,
		"../...").Output()
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
