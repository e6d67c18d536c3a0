package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/serf-sbr/serf-sbr/internal/proc"
)

// contender is one `sbr run` of several that share a lease and a log.
type contender struct {
	t    *testing.T
	cmd  *exec.Cmd
	pids string
	err  bytes.Buffer // read it after the end only
}

// writer is a program that ignores SIGTERM and writes its token into the log every 10 ms, together with a
// child in a session of its own.
const writer = `trap "" TERM
write='echo $$ >>$PIDS; while :; do echo $SBR_TOKEN >>$LOG; sleep 0.01; done'
setsid sh -c "$write" &
eval "$write"`

const (
	runTimeout     = 4 * time.Second // the heartbeat-timeout
	runStopTimeout = 500 * time.Millisecond
)

// startRun starts the writer as soon as it is its turn.
func startRun(t *testing.T, dir, name string, flags ...string) *contender {
	t.Helper()
	return startRunTo(t, nil, dir, name, flags...)
}

// startRunTo is startRun with another log; nil: contender.err.
func startRunTo(t *testing.T, log *os.File, dir, name string, flags ...string) *contender {
	t.Helper()
	p := &contender{t: t, pids: filepath.Join(dir, name)}
	args := append([]string{"run", "--lease", "file:" + filepath.Join(dir, "x.lease"), "--heartbeat-timeout",
		runTimeout.String(),
		"--heartbeat-interval", "200ms", "--lease-operation-timeout", "500ms", "--stop-timeout", runStopTimeout.String()}, flags...)
	p.cmd = exec.Command("sbr", append(args, "--", "sh", "-c", writer)...)
	p.cmd.Env = append(os.Environ(), "PIDS="+p.pids, "LOG="+filepath.Join(dir, "log"))
	if p.cmd.Stderr = &p.err; log != nil {
		p.cmd.Stderr = log
	}
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", name, p.err.String())
		}
	})
	return p
}

// processes are the program's and, at the end, its supervisor's.
func (p *contender) processes() (pids []int) {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		text, _ := os.ReadFile(p.pids)
		pids = pids[:0]
		for word := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(word)
			require.NoError(p.t, err)
			pids = append(pids, pid)
		}
		return len(pids) == 2 && strings.HasSuffix(string(text), "\n")
	}, 20*time.Second, time.Millisecond)
	// one of them is the supervisor's child, the other one's parent has ended or is the first
	for _, pid := range pids {
		if parent := parentOf(pid); parentOf(parent) == p.cmd.Process.Pid {
			return append(pids, parent)
		}
	}
	p.t.Fatal("no supervisor")
	return nil
}

func parentOf(pid int) int { _, parent := proc.Stat(pid); return parent }

func stateOf(pid int) string { state, _ := proc.Stat(pid); return state }

func allDead(pids []int) bool { return !slices.ContainsFunc(pids, proc.Running) }

func freeze(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	}
	for _, pid := range pids {
		require.Eventually(t, func() bool { return stateOf(pid) == "T" }, 10*time.Second, time.Millisecond)
	}
}

// tokens waits until a token is in the log, and returns all that are.
func tokens(t *testing.T, dir, until string) []string {
	t.Helper()
	var lines []string
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, "log"))
		lines = strings.Fields(string(text))
		return strings.Contains(" "+strings.Join(lines, " ")+" ", " "+until+" ")
	}, 30*time.Second, 5*time.Millisecond)
	return lines
}

// after counts the lines with an older token behind the first one with a newer one.
func after(lines []string, older, newer string) (n int) {
	seen := false
	for _, line := range lines {
		seen = seen || line == newer
		if seen && line == older {
			n++
		}
	}
	return n
}

// The program of a paused `sbr run` has ended before the other program starts: its supervisor knows how long
// the lease lasts.
func TestRun_Paused(t *testing.T) {
	dir := t.TempDir()
	a := startRun(t, dir, "a")
	pids := a.processes()
	freeze(t, a.cmd.Process.Pid)
	began := time.Now()
	b := startRun(t, dir, "b")
	require.Eventually(t, func() bool { return allDead(pids[:2]) }, runTimeout, time.Millisecond,
		"they have ended although their parent stands still")
	ended := time.Since(began)
	tokens(t, dir, "2")
	t.Logf("after the pause: ended %v, started elsewhere %v", ended, time.Since(began))
	require.Equal(t, "T", stateOf(a.cmd.Process.Pid))
	require.Zero(t, after(tokens(t, dir, "2"), "1", "2"))

	// It goes on, and waits for its next turn.
	require.NoError(t, a.cmd.Process.Signal(syscall.SIGCONT))
	require.NoError(t, os.Remove(a.pids))
	require.NoError(t, b.cmd.Process.Signal(syscall.SIGTERM))
	_ = b.cmd.Wait()
	require.Equal(t, 137, b.cmd.ProcessState.ExitCode())
	lines := tokens(t, dir, "3")
	require.Zero(t, after(lines, "1", "2")+after(lines, "2", "3")+after(lines, "1", "3"))
	require.NoError(t, a.cmd.Process.Signal(syscall.SIGTERM))
	_ = a.cmd.Wait()
	require.Contains(t, a.err.String(), `because="its time is nearly over, and was not extended"`)
}

// When everything stood still while another process took over, the program is killed at once when it goes on,
// without its time to end.
func TestRun_PausedAsAWhole(t *testing.T) {
	dir := t.TempDir()
	a := startRun(t, dir, "a")
	all := append(a.processes(), a.cmd.Process.Pid)
	freeze(t, all...)
	startRun(t, dir, "b")
	tokens(t, dir, "2")
	began := time.Now()
	for _, pid := range all {
		require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
	}
	require.Eventually(t, func() bool { return allDead(all[:2]) }, 10*time.Second, 100*time.Microsecond)
	took := time.Since(began)
	lines := tokens(t, dir, "2")
	t.Logf("killed %v after it went on; %d lines of an older token after a newer one: that is what a fence is for", took, after(lines, "1", "2"))
	require.Less(t, took, runStopTimeout)
}

// A `sbr run` that is killed takes along all that the program has started; its supervisor releases the lease
// then, so that the other `sbr run` starts at once. It has an hour to.
func TestRun_Killed(t *testing.T) {
	dir := t.TempDir()
	a := startRun(t, dir, "a", "--heartbeat-timeout", "1h")
	pids := a.processes()
	startRun(t, dir, "b", "--heartbeat-timeout", "1h")
	require.NoError(t, a.cmd.Process.Kill())
	began := time.Now()
	require.Eventually(t, func() bool { return allDead(pids) }, runTimeout, time.Millisecond)
	t.Logf("%d processes ended %v after sbr run was killed", len(pids), time.Since(began))
	require.Zero(t, after(tokens(t, dir, "2"), "1", "2"))
}

// A log that nobody reads any more delays neither the end of the program nor the release of its lease, which
// lasts for an hour.
func TestRun_TheLogIsStuck(t *testing.T) {
	dir := t.TempDir()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	a := startRunTo(t, write, dir, "a", "--heartbeat-timeout", "1h")
	pids := a.processes()
	filled := make(chan struct{})
	go func() {
		defer close(filled)
		_, _ = write.Write(make([]byte, 1<<20)) // it ends with the pipe
	}()
	t.Cleanup(func() { require.NoError(t, read.Close()); <-filled; require.NoError(t, write.Close()) })
	require.Eventually(t, func() bool {
		n, err := unix.IoctlGetInt(int(read.Fd()), unix.TIOCINQ)
		return err == nil && n >= 1<<15 // it goes on until there is no room
	}, 10*time.Second, time.Millisecond)
	startRun(t, dir, "b", "--heartbeat-timeout", "1h")
	require.NoError(t, a.cmd.Process.Signal(syscall.SIGTERM))
	began := time.Now()
	require.Eventually(t, func() bool { return allDead(pids) }, runTimeout, time.Millisecond)
	require.Zero(t, after(tokens(t, dir, "2"), "1", "2"))
	t.Logf("the next one runs %v after the signal", time.Since(began))
	_ = a.cmd.Wait()
	require.Equal(t, 137, a.cmd.ProcessState.ExitCode())
}
