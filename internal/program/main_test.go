//go:build linux

package program_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/serf-sbr/serf-sbr/internal/proc"
	"github.com/serf-sbr/serf-sbr/internal/program"
)

// This executable is its own supervisor, and a parent that tests may stop and kill.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "supervise":
		if err := program.Supervise(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case os.Getenv(parentEnv) != "":
		parent()
	case os.Getenv("PROGRAM_TEST_LISTENER") != "":
		listener(os.Getenv("PROGRAM_TEST_LISTENER"), os.Getenv("PIDS"))
	default:
		goleak.VerifyTestMain(m)
	}
}

const parentEnv = "PROGRAM_TEST_PARENT"

// parent starts what its environment describes, and prints its number.
func parent() {
	var o program.Options
	if err := json.Unmarshal([]byte(os.Getenv(parentEnv)), &o); err != nil {
		panic(err)
	}
	if left, err := time.ParseDuration(os.Getenv("PROGRAM_TEST_LEFT")); err == nil {
		o.Until = time.Now().Add(left)
	}
	o.Log = slog.New(slog.DiscardHandler)
	p, err := program.Start(o)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Pid())
	<-p.Ended()
	if os.Getenv("PROGRAM_TEST_TERMINAL") != "" {
		group, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
		fmt.Printf("status %d, the terminal is mine: %v\n", p.Status().ExitCode(),
			err == nil && group == unix.Getpgrp())
	}
}

// listener writes down its name for each signal that it receives, until it is asked to end.
func listener(name, file string) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT)
	say := func(file, line string) {
		out, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		defer func() { _ = out.Close() }()
		_, _ = fmt.Fprintln(out, line)
	}
	say(file, strconv.Itoa(os.Getpid()))
	for {
		select {
		case <-signals:
			say(file+".heard", name)
		case <-time.After(5 * time.Millisecond):
			if _, err := os.Stat(file + ".end"); err == nil {
				return
			}
		}
	}
}

// options are those of a shell script that appends the numbers of its processes to the file $PIDS.
func options(t *testing.T, script string) (o program.Options, pids string) {
	pids = filepath.Join(t.TempDir(), "pids")
	o = program.DefaultOptions()
	o.Supervisor, o.Path, o.Args = []string{os.Args[0], "supervise"}, "/bin/sh", []string{"sh", "-c", script}
	o.Env = append(os.Environ(), "PIDS="+pids)
	o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	return o, pids
}

// begin starts a program that is killed at the end of the test.
func begin(t *testing.T, o program.Options) *program.Program {
	t.Helper()
	p, err := program.Start(o)
	require.NoError(t, err)
	t.Cleanup(func() { p.Kill("the test has ended"); <-p.Ended() })
	return p
}

// started waits until n processes have reported, and returns their numbers.
func started(t *testing.T, file string, n int) (pids []int) {
	t.Helper()
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(file)
		pids = pids[:0]
		for word := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(word)
			require.NoError(t, err)
			pids = append(pids, pid)
		}
		return len(pids) == n && strings.HasSuffix(string(text), "\n")
	}, 20*time.Second, 2*time.Millisecond)
	return pids
}

// ended waits for the end of the whole tree, and proves it for each of the pids. It returns how long that
// took.
func ended(t *testing.T, p *program.Program, pids []int) time.Duration {
	t.Helper()
	began := time.Now()
	select {
	case <-p.Ended():
	case <-time.After(30 * time.Second):
		t.Fatal("it does not end")
	}
	took := time.Since(began)
	for _, pid := range pids {
		require.False(t, proc.Running(pid), "process %d still runs", pid)
	}
	return took
}

// freeze pauses a process, and returns when it is paused.
func freeze(t *testing.T, pid int) {
	t.Helper()
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	require.Eventually(t, func() bool { return stateOf(pid) == "T" }, 10*time.Second, time.Millisecond)
}

func stateOf(pid int) string { state, _ := proc.Stat(pid); return state }

func parentOf(pid int) int { _, parent := proc.Stat(pid); return parent }

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}
