//go:build unix

package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A panic in a goroutine of a library is no bad configuration: the exit status must not be 2, after which
// service managers do not start the agent again.
func TestMain_APanicEndsBySignal(t *testing.T) {
	const env = "SBR_TEST_PANICS"
	if os.Getenv(env) != "" {
		abortOnPanic()
		go panic("a packet came too early")
		select {}
	}
	c := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	c.Env, c.Dir = append(os.Environ(), env+"=1"), t.TempDir() // where a core file may land
	out, err := c.CombinedOutput()
	require.Contains(t, string(out), "panic: a packet came too early")
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, syscall.SIGABRT, exit.Sys().(syscall.WaitStatus).Signal(), "%v", err)
}

// Who ends a command that asks has not said yes.
func TestConfirm_EndsBySignal(t *testing.T) {
	t.Parallel()
	old := filepath.Join(t.TempDir(), "x.lease")
	here := []string{"lease", "--lease", "file:" + old}
	sbr := func(args ...string) *exec.Cmd { return exec.Command("sbr", append(here, args...)...) }
	require.NoError(t, sbr("acquire", "--owner", "ann").Run())
	before, err := os.ReadFile(old)
	require.NoError(t, err)
	to := filepath.Join(t.TempDir(), "sbr.yaml")
	require.NoError(t, os.WriteFile(to, []byte("system: s\nsplit-brain-resolver: {lease-majority: "+
		"{lease-implementation: file}}\nlease: {file: {path: "+to+".lease}}\n"), 0o600))
	for name, c := range map[string]struct {
		args []string
		by   os.Signal
	}{
		"force-release by SIGINT":  {[]string{"force-release", "--holder", "ann"}, os.Interrupt},
		"force-release by SIGTERM": {[]string{"force-release", "--holder", "ann"}, syscall.SIGTERM},
		"move by SIGINT":           {[]string{"move", "--to", to}, os.Interrupt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := sbr(c.args...)
			in, err := cmd.StdinPipe() // stays open, and empty
			require.NoError(t, err)
			defer in.Close()
			out, err := cmd.StderrPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			defer time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() }).Stop()
			said := bufio.NewReader(out)
			for text := ""; !strings.HasSuffix(text, "Type yes: "); {
				next, err := said.ReadByte()
				require.NoError(t, err, text)
				text += string(next)
			}
			require.NoError(t, cmd.Process.Signal(c.by))
			rest, err := io.ReadAll(said)
			require.NoError(t, err)
			require.Error(t, cmd.Wait())
			require.Equal(t, exitBadInput, cmd.ProcessState.ExitCode(), "%s", rest)
			require.Contains(t, string(rest), "\nsbr: interrupted: nothing was done\n")
			now, err := os.ReadFile(old)
			require.NoError(t, err)
			require.Equal(t, before, now)
		})
	}
}
