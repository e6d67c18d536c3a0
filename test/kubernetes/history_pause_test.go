//go:build linux

package kubernetes_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// A holder that is stopped with SIGSTOP for longer than its lease lasts, and continued: a real process, a real clock, a real API
// server. Check says no before the process does anything else, and in the log of both there is no "yes" after the other's grant.

var pauseSettings = lease.Settings{
	HeartbeatTimeout: 3 * time.Second, HeartbeatInterval: 500 * time.Millisecond, OperationTimeout: time.Second,
}

// pausedHolder, if set, makes this test binary a holder instead: kubeconfig, namespace, log file.
const pausedHolder = "SERF_SBR_TEST_PAUSED_HOLDER"

func init() {
	if args := os.Getenv(pausedHolder); args != "" {
		if err := holdAndLog(strings.Split(args, "\n")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// holdAndLog acquires and then asks Check again and again, until it is killed or its standard input ends.
// A line is: when it began to ask, what Check said, the token.
func holdAndLog(args []string) error {
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		os.Exit(0)
	}()
	log, err := os.OpenFile(args[2], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	l, err := pauseLease(args[0], args[1], "holder")
	if err != nil {
		return err
	}
	if out := linear.AnswerOf(l.Acquire(context.Background(), lease.Proposal{})); out.Kind != sbr.Granted {
		return fmt.Errorf("%v", out)
	}
	for {
		began := bootTime()
		said := l.Check()
		if _, err := fmt.Fprintf(log, "%d %t %d\n", began, said, l.Token()); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

func pauseLease(kubeconfig, namespace, owner string) (*lease.Lease, error) {
	cfg := kubernetes.DefaultConfig()
	cfg.Kubeconfig, cfg.Namespace, cfg.Name = kubeconfig, namespace, testName
	cfg.RequestTimeout = pauseSettings.OperationTimeout
	store, err := kubernetes.New(cfg)
	if err != nil {
		return nil, err
	}
	return lease.New(store, owner, pauseSettings, lease.Options{})
}

// bootTime is the monotonic clock, which is one for all processes of a machine.
func bootTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err)
	}
	return time.Duration(now.Nano())
}

func TestReal_AStoppedHolderKnowsAtOnce(t *testing.T) {
	cluster := kubetest.Shared(t)
	namespace := cluster.Namespace(t)
	kubeconfig, err := cluster.LeastPrivilegeKubeconfig(t.Context(), namespace, testName)
	require.NoError(t, err)
	holder := startHolder(t, kubeconfig, namespace)
	other, err := pauseLease(kubeconfig, namespace, "other")
	require.NoError(t, err)
	defer other.Close()

	// It holds, and its heartbeats keep the lease.
	for began := time.Now(); time.Since(began) < pauseSettings.HeartbeatTimeout*3/2; time.Sleep(100 * time.Millisecond) {
		require.NotEqual(t, sbr.Granted, linear.AnswerOf(other.Acquire(t.Context(), lease.Proposal{})).Kind)
	}
	held := bootTime()
	require.Eventually(t, func() bool { return holder.said(t, held, 1) }, waitFor, 10*time.Millisecond)

	stopped := holder.stop(t)
	var granted time.Duration
	require.Eventually(t, func() bool {
		out := linear.AnswerOf(other.Acquire(t.Context(), lease.Proposal{}))
		granted = bootTime()
		return out.Kind == sbr.Granted
	}, 10*pauseSettings.HeartbeatTimeout, 50*time.Millisecond)
	require.Greater(t, granted-stopped, pauseSettings.Window(), "taken over while the holder still trusted its last heartbeat")
	time.Sleep(stopped + pauseSettings.HeartbeatTimeout + 500*time.Millisecond - bootTime()) // for longer than the lease lasts
	continued := holder.resume(t)
	require.Eventually(t, func() bool { return holder.said(t, continued, 200) }, waitFor, 10*time.Millisecond)
	require.True(t, other.Check())

	lines := holder.lines(t)
	after := slices.IndexFunc(lines, func(l pauseLine) bool { return l.began >= continued })
	require.Equal(t, pauseLine{began: lines[after].began}, lines[after], "the first thing it is told is no")
	for i, l := range lines {
		if l.began > granted {
			require.False(t, l.said, "line %d: yes, %v after the other's grant", i, l.began-granted)
			require.Zero(t, l.token)
		}
	}
	require.True(t, slices.ContainsFunc(lines, func(l pauseLine) bool { return l.said && l.token == 1 && l.began < stopped }), "it had held")
	require.EqualValues(t, 2, other.Token())
	t.Logf("stopped for %v, replaced after %v, %d lines", continued-stopped, granted-stopped, len(lines))
}

// holderProcess is this test binary as a holder.
type holderProcess struct {
	cmd *exec.Cmd
	log string
}

func startHolder(t *testing.T, kubeconfig, namespace string) *holderProcess {
	t.Helper()
	// The kernel kills the child when the thread that has started it ends, so this thread must live as long as the test.
	runtime.LockOSThread()
	p := &holderProcess{log: filepath.Join(t.TempDir(), "holder.log")}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), pausedHolder+"="+strings.Join([]string{kubeconfig, namespace, p.log}, "\n"))
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var stderr bytes.Buffer
	p.cmd.Stderr = &stderr
	stdin, err := p.cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // stopped or not
		_ = p.cmd.Wait()
		_ = stdin.Close()
		require.Empty(t, stderr.String())
	})
	require.Eventually(t, func() bool { return p.said(t, 0, 1) }, waitFor, 10*time.Millisecond, "it did not get the lease")
	return p
}

// stop returns when the process stands still, and since when it certainly does.
func (p *holderProcess) stop(t *testing.T) time.Duration {
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGSTOP))
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
		require.NoError(t, err)
		_, rest, _ := strings.Cut(string(stat), ") ")
		return strings.HasPrefix(rest, "T")
	}, waitFor, time.Millisecond)
	return bootTime()
}

// resume returns a time at which the process certainly still stood still.
func (p *holderProcess) resume(t *testing.T) time.Duration {
	now := bootTime()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGCONT))
	return now
}

type pauseLine struct {
	began time.Duration
	said  bool
	token uint64
}

func (p *holderProcess) lines(t *testing.T) (lines []pauseLine) {
	t.Helper()
	text, err := os.ReadFile(p.log)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	for text := range strings.Lines(string(whole)) {
		var l pauseLine
		_, err := fmt.Sscanf(text, "%d %t %d", &l.began, &l.said, &l.token)
		require.NoError(t, err, text)
		lines = append(lines, l)
	}
	return lines
}

// said tells whether the process has asked that often since.
func (p *holderProcess) said(t *testing.T, since time.Duration, times int) bool {
	lines := p.lines(t)
	i := slices.IndexFunc(lines, func(l pauseLine) bool { return l.began >= since })
	return i >= 0 && len(lines)-i >= times
}
