package docs_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
		scripts[b.page.path] += fmt.Sprintf("\n# block %d\n%s", strings.Count(scripts[b.page.path], "# block")+1, b.text)
	}
	require.NotEmpty(t, scripts)
	bin := t.TempDir()
	for module, program := range map[string]string{"..": "./cmd/sbr", "../test/serfagent": "github.com/hashicorp/serf/cmd/serf"} {
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
