package docs_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write the outputs in the pages anew")

const scripts = "../cmd/sbr/testdata/script"

// Every command of a block of shell is run by a test script, or is a target of the Makefile.
func TestCommandsAreRun(t *testing.T) {
	run := make(map[string]bool)
	files, err := filepath.Glob(filepath.Join(scripts, "*.txtar")) // the others need an API server
	require.NoError(t, err)
	for _, f := range files {
		archive, err := txtar.ParseFile(f)
		require.NoError(t, err)
		for line := range strings.Lines(string(archive.Comment)) {
			run[strings.TrimPrefix(strings.TrimSpace(line), "! ")] = true
		}
	}
	makefile, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	for _, b := range blocks(t, "sh") {
		for line := range strings.Lines(b.text) {
			command, _, _ := strings.Cut(line, " #")
			command = strings.TrimSpace(command)
			target, isMake := strings.CutPrefix(command, "make ")
			switch {
			case command == "":
			case isMake:
				require.Regexp(t, `(?m)^`+regexp.QuoteMeta(target)+`:`, string(makefile), b.page.path)
			default:
				require.True(t, run["exec "+command], "%s: no script runs %q", b.page.path, command)
			}
		}
	}
}

// The pipelines that a page shows are YAML, and what they let this program do is run by a test script.
func TestPipelines(t *testing.T) {
	run, err := os.ReadFile(filepath.Join(scripts, "docs_simulator.txtar"))
	require.NoError(t, err)
	command := regexp.MustCompile(`(?m)^\s*- (?:run: )?(sbr [^>\n]*[^>\s])`)
	n := 0
	for _, b := range blocks(t, "yaml") {
		require.NoError(t, yaml.Unmarshal([]byte(b.text), new(any)), b.page.path)
		for _, m := range command.FindAllStringSubmatch(b.text, -1) {
			require.Contains(t, string(run), "\nexec "+m[1]+"\n", b.page.path)
			n++
		}
	}
	require.Positive(t, n)
}

// What the pages show as a file or an output is that of a script, whose tests compare it with the real one.
func TestOutputsAreThoseOfTheScripts(t *testing.T) {
	n := 0
	for _, p := range pages(t) {
		text := fence.ReplaceAllStringFunc(p.text, func(b string) string {
			m := fence.FindStringSubmatch(b)
			script, name, ok := strings.Cut(m[1], " ")
			if !ok || !strings.HasSuffix(script, ".txtar") {
				return b
			}
			n++
			return "<!-- " + m[1] + " -->\n```" + m[2] + "\n" + fileIn(t, script, name) + "```"
		})
		if *update && text != p.text {
			require.NoError(t, os.WriteFile(p.path, []byte(text), 0o644))
		} else {
			require.Equal(t, text, p.text, "%s: go test ./docs -run TestOutputs -update", p.path)
		}
	}
	require.Positive(t, n)
}

func fileIn(t *testing.T, script, name string) string {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join(scripts, script))
	require.NoError(t, err)
	for _, f := range archive.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	require.FailNow(t, "no such file", "%s: %s", script, name)
	return ""
}
