package hook

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The process of the pid file gets the signal while on-down still runs.
func TestSignal_BesideOnDown(t *testing.T) {
	dir := t.TempDir()
	file, got := filepath.Join(dir, "app.pid"), filepath.Join(dir, "got")
	app := exec.Command(script(t, `trap 'echo USR1 >"$1"; exit 0' USR1; echo $$ >"$2"; while :; do sleep 0.01; done`)[0], got, file)
	require.NoError(t, app.Start())
	defer app.Wait()
	defer app.Process.Kill()
	appears(t, file)
	r, j := start(t, hooks{PIDFile: file, Signal: "SIGUSR1",
		OnDown: append(script(t, `until [ -s "$1" ]; do sleep 0.01; done`), got)})
	r.Down(t.Context(), facts)
	require.Equal(t, "USR1\n", appears(t, got))
	line := j.one(t, "sbr: signal sent")
	require.EqualValues(t, app.Process.Pid, line["pid"])
	require.Equal(t, "SIGUSR1", line["signal"])
	require.EqualValues(t, 0, j.one(t, "sbr: hook ended")["exit-status"])
}

// Nothing but one pid of another process is signalled; the log says why not, and on-down runs all the same.
func TestSignal_Refuses(t *testing.T) {
	stale := exec.Command("true")
	require.NoError(t, stale.Run())
	for name, tc := range map[string]struct{ text, says string }{
		"empty":        {"", "must hold one positive number"},
		"words":        {"serf", "must hold one positive number, the pid; it begins with \"serf\""},
		"zero":         {"0", "holds 0, which is not"},
		"init":         {"1\n", "holds 1, which is not"},
		"a group":      {"-4242", "must hold one positive number"},
		"everybody":    {"-1", "must hold one positive number"},
		"signed":       {"+4242", "must hold one positive number"},
		"two":          {"4242 4243", "must hold one positive number"},
		"hexadecimal":  {"0x1092", "must hold one positive number"},
		"underscore":   {"4_242", "must hold one positive number"},
		"too large":    {"4294967297", "must hold one positive number"},
		"this process": {strconv.Itoa(os.Getpid()), "the pid of this process"},
		"stale":        {strconv.Itoa(stale.Process.Pid), "no such process: the file is stale"},
		"among blanks": {fmt.Sprintf("  %d\r\n\n", stale.Process.Pid), "no such process: the file is stale"},
		"no file":      {"", "no such file or directory"},
		"a folder":     {"", "is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pid")
			switch name {
			case "no file":
			case "a folder":
				file = t.TempDir()
			default:
				require.NoError(t, os.WriteFile(file, []byte(tc.text), 0o600))
			}
			// A signal that does no harm to whom it should not reach.
			r, j := start(t, hooks{PIDFile: file, Signal: "SIGCONT", OnDown: script(t, `exit 0`)})
			r.Down(t.Context(), facts)
			require.Contains(t, j.one(t, "sbr: no signal was sent")["problem"], tc.says)
			j.one(t, "sbr: hook ended")
		})
	}
}

// FuzzParsePID: what is accepted is a positive number that some process other than init and this one may
// have.
func FuzzParsePID(f *testing.F) {
	for _, seed := range []string{"", "1", "4242\n", "-1", " 7 ", "99999999999999999999"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		pid, err := parsePID(data)
		if err == nil {
			require.Greater(t, pid, 1)
			require.NotEqual(t, os.Getpid(), pid)
			require.Equal(t, strconv.Itoa(pid), strings.TrimLeft(strings.TrimSpace(string(data)), "0"))
		}
	})
}

// contextThatEnds ends when f returns.
func contextThatEnds(t *testing.T, f func()) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		f()
		cancel()
	}()
	return ctx, cancel
}

// stuck is a log whose reader stands still until it is released.
func stuck(release <-chan struct{}) *slog.Logger {
	return slog.New(slog.NewTextHandler(writer(func(p []byte) (int, error) {
		<-release
		return len(p), nil
	}), nil))
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
