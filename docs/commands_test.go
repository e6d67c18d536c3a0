package docs_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

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

// walkthroughTime bounds one page.
const walkthroughTime = 3 * time.Minute

// Blocks of bash are run, one after another, in one shell and an empty folder, with sbr and a stock serf in
// the path. None may fail. The addresses of a page are fixed: as root each run has a network of its own, or
// another one on this machine answers in its place.
func TestWalkthroughs(t *testing.T) {
	if testing.Short() {
		t.Skip("runs real agents for a minute: run without -short")
	}
	scripts := make(map[string]string)
	for _, b := range blocks(t, "bash") {
		if b.page.path == "stores.md" { // needs a PostgreSQL: test/postgres runs it
			continue
		}
		scripts[b.page.path] += fmt.Sprintf("\n# block %d\n%s",
			strings.Count(scripts[b.page.path], "# block")+1, b.text)
	}
	require.NotEmpty(t, scripts)
	bin := t.TempDir()
	for module, program := range map[string]string{"..": "./cmd/sbr",
		"../test/serfagent": "github.com/hashicorp/serf/cmd/serf"} {
		build := exec.CommandContext(t.Context(), "go", "build", "-C", module, "-o", bin+"/", program)
		out, err := build.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	for page, script := range scripts {
		t.Run(page, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), walkthroughTime)
			defer cancel()
			c := exec.CommandContext(ctx, "bash", "-euxo", "pipefail", "-c", script)
			if os.Geteuid() == 0 { // the processes of a failed run may outlive it otherwise
				c = exec.CommandContext(ctx, "unshare", "--fork", "--kill-child", "--pid", "--mount-proc",
					"bash", "-euxo", "pipefail", "-c", script)
			}
			if _, err := exec.LookPath("ip"); err == nil && os.Geteuid() == 0 {
				c.Args = slices.Insert(c.Args, 1, "--net")
				c.Args[len(c.Args)-1] = "ip link set lo up\n" + script
			}
			c.Dir = t.TempDir()
			c.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "KUBECONFIG=", "KUBERNETES_SERVICE_HOST=")
			c.WaitDelay = time.Second
			out, err := c.CombinedOutput()
			if err != nil {
				logs, _ := filepath.Glob(filepath.Join(c.Dir, "*.log"))
				for _, l := range logs {
					text, _ := os.ReadFile(l)
					t.Logf("%s:\n%s", filepath.Base(l), text)
				}
			}
			require.NoError(t, err, string(out))
		})
	}
}
