package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/config"
)

// handwritten are the pages but the change log, which tells of the past, and those that are made from the
// program.
func handwritten(t *testing.T) (all []page) {
	t.Helper()
	for _, p := range pages(t) {
		if !slices.Contains([]string{"../CHANGELOG.md", "cli.md", "configuration.md", "metrics.md", "scenario.md"},
			p.path) {
			all = append(all, p)
		}
	}
	return all
}

var code = regexp.MustCompile("`([^`\n]+)`")

// spans are the words of the prose that are set as code.
func (p page) spans() (all []string) {
	for _, m := range code.FindAllStringSubmatch(p.prose(), -1) {
		all = append(all, m[1])
	}
	return all
}

var promise = regexp.MustCompile(`(?i)\b((is|are|does|do|will) not (here |there |implemented |exist )?yet|not yet a|not supported yet|does not exist yet|agent to come\b|the only (one|store) so far|no singletons or shards|exists today|will be added|in a later version)`)

// A page tells what is. What it says of the future is forgotten there when the future has come.
func TestStale_NothingIsPromised(t *testing.T) {
	for _, p := range handwritten(t) {
		require.Empty(t, promise.FindAllString(p.prose(), -1), p.path)
	}
}

var (
	commandLine = regexp.MustCompile(`(?m)(?:^|[ (|$])sbr ((?:[a-z]+(?:-[a-z]+)*)(?: [a-z]+(?:-[a-z]+)*)?)([^\n]*)`)
	longFlag    = regexp.MustCompile(`(?:^| )--([a-z][a-z-]+)`)
)

// Commands and flags that the pages name exist: cli.md has all of them.
func TestStale_CommandsExist(t *testing.T) {
	commands := make(map[string]string) // a command to its section
	for section := range strings.SplitSeq(page{path: "cli.md"}.read(t), "\n## sbr ") {
		name, text, _ := strings.Cut(section, "\n")
		commands[name] = text
	}
	n := 0
	check := func(path, text string) {
		for _, m := range commandLine.FindAllStringSubmatch(text, -1) {
			words := strings.Fields(m[1])
			if words[0] == "supervise" { // what sbr run starts by itself: in no help
				continue
			}
			section, known := commands[m[1]]
			if !known {
				section, known = commands[words[0]]
			}
			require.True(t, known, "%s: no command sbr %s", path, m[1])
			own, _, _ := strings.Cut(m[2], " -- ")
			for _, f := range longFlag.FindAllStringSubmatch(own, -1) {
				require.Contains(t, section, "--"+f[1], "%s: sbr %s has no flag --%s", path, m[1], f[1])
			}
			n++
		}
	}
	for _, p := range handwritten(t) {
		for _, span := range p.spans() {
			if strings.HasPrefix(span, "sbr ") && !strings.HasPrefix(span, "sbr: ") {
				check(p.path, span)
			}
		}
		for _, b := range p.blocks() {
			if slices.Contains([]string{"sh", "bash", "text"}, b.language) && b.from == "" {
				check(p.path, b.text)
			}
		}
	}
	require.Greater(t, n, 50)
}

func (p page) read(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(p.path)
	require.NoError(t, err)
	return string(data)
}

var dotted = regexp.MustCompile(`^[a-z-]+(\.[a-z-]+)+$`)

// Keys of the configuration that the pages name exist: in full, or from a block on.
func TestStale_KeysExist(t *testing.T) {
	known, blocks := make(map[string]bool), make(map[string]bool)
	for _, k := range config.Keys() {
		for at := k.Path; at != ""; _, at, _ = strings.Cut(at, ".") {
			known[at] = true
			if block, _, inside := strings.Cut(at, "."); inside {
				blocks[block] = true
			}
		}
	}
	n := 0
	for _, p := range handwritten(t) {
		for _, span := range p.spans() {
			block, _, _ := strings.Cut(span, ".")
			if dotted.MatchString(span) && blocks[block] &&
				!slices.Contains([]string{".yaml", ".service", ".go"}, filepath.Ext(span)) {
				require.True(t, known[span], "%s: no key %s", p.path, span)
				n++
			}
		}
	}
	require.Greater(t, n, 20)
}

var sbrName = regexp.MustCompile(`\bsbr_[a-z_]+[a-z]\b`)

// Metrics and tags that the pages name exist.
func TestStale_MetricsAndTagsExist(t *testing.T) {
	known := page{path: "metrics.md"}.read(t) + sources(t, "../downing") + sources(t, "../lease/mongodb")
	for _, p := range handwritten(t) {
		for _, name := range sbrName.FindAllString(p.text, -1) {
			family := regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(name, "")
			require.True(t, strings.Contains(known, family), "%s: neither a metric, a tag nor a collection: %s",
				p.path, name)
		}
	}
}

var (
	joined = regexp.MustCompile(`"\s*\+\s*"`)
	verbs  = regexp.MustCompile(`%(\[\d\])?[+#]?[a-z]`)
	varied = regexp.MustCompile(`…|/etc/\S+|\.\.\.|: |\b[nN]\d?\b|\bX\b|\d+(s|m)?|\x60`)
)

// sources are the Go files below a folder, tests left out, with the strings that are put together made one.
func sources(t *testing.T, folder string) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".." && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		data, err := os.ReadFile(path)
		b.Write(data)
		return err
	}))
	return verbs.ReplaceAllString(joined.ReplaceAllString(b.String(), ""), "…")
}

// What the runbook and the page of the log quote of log lines and errors, in the first column of a table, is said by the program: each
// piece between what varies.
func TestStale_LinesAreSaid(t *testing.T) {
	said, n := sources(t, ".."), 0
	var unsaid []string
	row := regexp.MustCompile("(?m)^\\| `([^`\n]*[a-z] [^`\n]*)`")
	for _, path := range []string{"operations.md", "kubernetes.md", "telemetry.md"} {
		for _, m := range row.FindAllStringSubmatch(page{path: path}.read(t), -1) {
			if strings.HasPrefix(m[1], "serf ") {
				continue // a command of others
			}
			for piece := range strings.SplitSeq(varied.ReplaceAllString(m[1], "…"), "…") {
				if piece = strings.Trim(piece, " ,:;()/\"'"); len(piece) < 12 {
					continue
				}
				if n++; !strings.Contains(said, piece) {
					unsaid = append(unsaid, path+": "+piece)
				}
			}
		}
	}
	require.Empty(t, unsaid, "the program does not say this")
	require.Greater(t, n, 20)
}

var folder = regexp.MustCompile(`^(sbr|strategies|lease|downing|singleton|sharding|simulator|internal|cmd|test|deploy|tools|docs)/[a-z0-9/._-]*$`)

// Packages, folders and files that the pages name exist.
func TestStale_PathsExist(t *testing.T) {
	n := 0
	for _, p := range handwritten(t) {
		for _, span := range p.spans() {
			if span = strings.TrimSuffix(span, "/"); folder.MatchString(span + "/") {
				found, err := filepath.Glob(filepath.Join("..", span))
				require.NoError(t, err)
				require.NotEmpty(t, found, "%s: no such package or file: %s", p.path, span)
				n++
			}
		}
	}
	require.Greater(t, n, 50)
}

//go:generate go test . -run ^TestConfigurationPageIsCurrent$ -update

// configuration.md is made of the keys that the program knows: nothing in it can be older.
func TestConfigurationPageIsCurrent(t *testing.T) {
	const path = "configuration.md"
	page := configurationPage()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(page), 0o644))
	}
	is, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, page == string(is), "%s is not what the program says: run make generate", path)
}

func configurationPage() string {
	var b strings.Builder
	b.WriteString("<!-- made by make generate from internal/config/keys.yaml -->\n\n# Configuration keys\n\n" +
		"Every key of `sbr.yaml`. How to write one, and what to choose: [configure](configure.md). " +
		"`sbr config init` prints a file with the same texts, `sbr schema config` the JSON Schema for an editor.\n")
	row := func(k config.Key) {
		def := ""
		if k.Default != "" {
			def = "`" + k.Default + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.Path, def,
			strings.NewReplacer("<", "&lt;", "|", "\\|").Replace(k.Text))
	}
	const head = "\n| key | default | meaning |\n|---|---|---|\n"
	b.WriteString(head)
	for _, k := range config.Keys() {
		if k.Block && !strings.Contains(k.Path, ".") {
			fmt.Fprintf(&b, "\n## %s\n\n%s\n%s", k.Path, k.Text, head)
		} else {
			row(k)
		}
	}
	return b.String()
}
