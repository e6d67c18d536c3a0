package postgres_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The blocks of bash in docs/stores.md, one after another in an empty folder: from an empty database to a
// cluster that a partition leaves one side of.
func TestPage(t *testing.T) {
	s, bin, folder := newServer(t), t.TempDir(), t.TempDir()
	for module, program := range map[string]string{"../..": "./cmd/sbr", "../serfagent": "github.com/hashicorp/serf/cmd/serf"} {
		out, err := exec.CommandContext(t.Context(), "go", "build", "-C", module, "-o", bin+"/", program).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	page, err := os.ReadFile("../../docs/stores.md")
	require.NoError(t, err)
	var script strings.Builder
	for _, block := range regexp.MustCompile("(?ms)^```bash\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		script.WriteString(block[1])
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "bash", "-euxo", "pipefail", "-c", script.String())
	if os.Geteuid() == 0 { // else the processes of a failed run may outlive it
		c = exec.CommandContext(ctx, "unshare", append([]string{"--fork", "--kill-child", "--pid", "--mount-proc"}, c.Args...)...)
	}
	c.Dir, c.WaitDelay = folder, time.Second
	_, port, err := net.SplitHostPort(s.Address())
	require.NoError(t, err)
	c.Env = append(os.Environ(), "PATH="+strings.Join([]string{bin, s.Programs, os.Getenv("PATH")}, string(os.PathListSeparator)),
		"PGHOST=127.0.0.1", "PGPORT="+port, "PGUSER=owner", "PGDATABASE=postgres", "SBR_POSTGRES_URL="+s.URL("sbr", "postgres"))
	out, err := c.CombinedOutput()
	if err != nil {
		logs, _ := filepath.Glob(filepath.Join(folder, "*.log"))
		for _, l := range logs {
			text, _ := os.ReadFile(l)
			t.Logf("%s:\n%s", filepath.Base(l), text)
		}
	}
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "2 of 3 counted members are reachable, a majority")
}
