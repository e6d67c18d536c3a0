package program_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/serf-sbr/serf-sbr/internal/program"
)

func TestStart_WhatCannotBeStarted(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(text, []byte("no program"), 0o600))
	garbage := filepath.Join(dir, "garbage")
	require.NoError(t, os.WriteFile(garbage, []byte("\x7fELF, but not really"), 0o600))
	require.NoError(t, os.Chmod(garbage, 0o700))
	for path, want := range map[string]string{
		filepath.Join(dir, "absent"): "no such file or directory", dir: "permission denied",
		text: "permission denied", garbage: "exec format error",
	} {
		o, _ := options(t, "")
		o.Path = path
		_, err := program.Start(o)
		require.ErrorContains(t, err, "start "+path+": "+want)
	}
	o, _ := options(t, "")
	o.Supervisor = []string{os.Args[0], "-test.list=^$"}
	_, err := program.Start(o)
	require.ErrorContains(t, err, "its supervisor does not answer")
}

func TestStart_TooLate(t *testing.T) {
	o, file := options(t, "echo $$ >> $PIDS")
	for _, notice := range []time.Duration{0, time.Minute} { // it would be told to end at once
		o.Until, o.Notice = time.Now().Add(notice), notice
		_, err := program.Start(o)
		require.ErrorIs(t, err, program.ErrTooLate)
	}
	_, err := os.Stat(file)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// A parent that ends without a program is no reason to complain.
func TestKeep_ItsParentEndsFirst(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	cmd := exec.Command(os.Args[0], "supervise")
	var said strings.Builder
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = &said, &said, []*os.File{theirs}
	require.NoError(t, cmd.Start())
	require.NoError(t, theirs.Close())
	require.NoError(t, ours.Close())
	require.NoError(t, cmd.Wait())
	require.Empty(t, said.String())
}

// A program is told to end so long before its time is over, and killed when it is.
func TestUntil_NoticeAndEnd(t *testing.T) {
	o, file := options(t, `
trap "cut -d' ' -f1 /proc/uptime > $PIDS.told" TERM
cut -d' ' -f1 /proc/uptime > $PIDS.began
echo $$ >> $PIDS
while :; do sleep 0.01; done`)
	o.Notice = 1500 * time.Millisecond
	const left = 3 * time.Second
	began := time.Now()
	o.Until = began.Add(left)
	p := begin(t, o)
	pids := started(t, file, 1)
	ended(t, p, pids)
	took := time.Since(began)
	var start, told float64
	_, err := fmt.Sscan(read(t, file+".began"), &start)
	require.NoError(t, err)
	_, err = fmt.Sscan(read(t, file+".told"), &told)
	require.NoError(t, err)
	t.Logf("of %v: told after %.2f s, ended after %v", left, told-start, took)
	require.InDelta(t, (left - o.Notice).Seconds(), told-start, 1)
	require.GreaterOrEqual(t, took, left)
	require.Less(t, took, left+2*time.Second)
	require.Equal(t, program.Status{Signal: int(syscall.SIGKILL),
		Because: "its time is nearly over, and was not extended"}, p.Status())
}

func TestExtend_MovesTheEnd(t *testing.T) {
	o, _ := options(t, "sleep 1.5; exit 4")
	o.Until = time.Now().Add(time.Second)
	p := begin(t, o)
	p.Extend(time.Now().Add(time.Minute))
	ended(t, p, []int{p.Pid()})
	require.Equal(t, program.Status{Code: 4}, p.Status())

	o.Until = time.Now().Add(time.Minute)
	p = begin(t, o)
	p.Extend(time.Now())
	require.Less(t, ended(t, p, []int{p.Pid()}), time.Second)
	require.Equal(t, "the permit expired and was not renewed", p.Status().Because)
}

// What a keyboard sends is for the whole group, everything else for the program alone.
func TestSignal_WhoGetsIt(t *testing.T) {
	for sig, want := range map[syscall.Signal]string{
		syscall.SIGUSR1: "parent\n", syscall.SIGHUP: "parent\n", syscall.SIGINT: "child\nparent\n",
		syscall.SIGQUIT: "child\nparent\n",
	} {
		t.Run(sig.String(), func(t *testing.T) {
			o, file := options(t, `PROGRAM_TEST_LISTENER=child $SELF & PROGRAM_TEST_LISTENER=parent exec $SELF`)
			o.Env = append(o.Env, "SELF="+os.Args[0])
			p := begin(t, o)
			started(t, file, 2)
			p.Signal(sig)
			heard := func() string {
				text, _ := os.ReadFile(file + ".heard")
				lines := strings.SplitAfter(string(text), "\n")
				slices.Sort(lines)
				return strings.Join(lines, "")
			}
			require.Eventually(t, func() bool { return heard() == want }, 10*time.Second, time.Millisecond)
			require.NoError(t, os.WriteFile(file+".end", nil, 0o600))
			ended(t, p, []int{p.Pid()})
			require.Equal(t, want, heard())
			require.Empty(t, p.Status().Because)
		})
	}
}

// A paused program is continued so that it receives the request to end.
func TestStop_OfAStoppedProgram(t *testing.T) {
	o, file := options(t, `trap "exit 3" TERM; echo $$ >> $PIDS; while :; do sleep 0.01; done`)
	p := begin(t, o)
	started(t, file, 1)
	freeze(t, p.Pid())
	p.Stop("the test says so", syscall.SIGTERM)
	require.Less(t, ended(t, p, []int{p.Pid()}), o.StopTimeout/2)
	require.Equal(t, 3, p.Status().ExitCode())
}

// Pauses of program and supervisor do not use up the time for ending.
func TestStop_AStandstillIsNotCounted(t *testing.T) {
	o, file := options(t,
		`trap "echo told >$PIDS.told; sleep 0.5; exit 6" TERM; echo $$ >> $PIDS; while :; do sleep 0.01; done`)
	o.StopTimeout = 2 * time.Second
	p := begin(t, o)
	started(t, file, 1)
	p.Stop("the test says so", syscall.SIGTERM)
	require.Eventually(t, func() bool { _, err := os.Stat(file + ".told"); return err == nil }, 10*time.Second,
		time.Millisecond)
	supervisor, began := parentOf(p.Pid()), time.Now()
	freeze(t, supervisor)
	freeze(t, p.Pid())
	require.Eventually(t, func() bool { return time.Since(began) > o.StopTimeout+100*time.Millisecond },
		time.Minute, 10*time.Millisecond)
	require.NoError(t, syscall.Kill(supervisor, syscall.SIGCONT))
	require.NoError(t, syscall.Kill(p.Pid(), syscall.SIGCONT))
	ended(t, p, []int{p.Pid()})
	require.Equal(t, 6, p.Status().ExitCode())
}

// The program finds itself as if nobody stood between: its signals, its files, its limits.
func TestStart_LooksAsWithoutAKeeper(t *testing.T) {
	const look = `grep -E "^Sig(Blk|Ign)" /proc/self/status; ulimit -n; ls /proc/$$/fd | wc -l`
	o, file := options(t, "("+look+") > $PIDS")
	p := begin(t, o)
	ended(t, p, []int{p.Pid()})
	attr := &syscall.ProcAttr{Env: append(os.Environ(), "PIDS="+file+".plain"), Files: []uintptr{0, 1, 2}}
	pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", "(" + look + ") > $PIDS"}, attr)
	require.NoError(t, err)
	_, err = syscall.Wait4(pid, nil, 0, nil)
	require.NoError(t, err)
	require.Equal(t, read(t, file+".plain"), read(t, file))
}

// The parent is killed, and its supervisor goes on until the program has ended: until then the lock is held.
// It is not the program's.
func TestLock_IsTheSupervisorsToo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := program.TryLock(path)
	require.NoError(t, err)
	require.NotNil(t, lock)
	o, file := options(t, `echo $$ >>$PIDS; [ ! -e /proc/$$/fd/4 ] && echo $$ >>$PIDS; exec sleep 300`)
	o.Lock = lock
	p := begin(t, o)
	pids := started(t, file, 2)
	require.NoError(t, lock.Close(), "as the kernel does it")
	other, err := program.TryLock(path)
	require.NoError(t, err)
	require.Nil(t, other, "the program runs")
	p.Kill("enough")
	ended(t, p, pids)
	other, err = program.TryLock(path)
	require.NoError(t, err)
	require.NotNil(t, other)
	require.NoError(t, other.Close())
}

// The words of a command line and of an environment are bytes.
func TestStart_WordsThatAreNoUTF8(t *testing.T) {
	o, file := options(t, `printf '%s %s' "$1" "$ODD" > "$PIDS"`)
	o.Args, o.Env = append(o.Args, "sh", "caf\xe9"), append(o.Env, "ODD=na\xefve")
	p := begin(t, o)
	ended(t, p, []int{p.Pid()})
	require.Equal(t, "caf\xe9 na\xefve", read(t, file))
}
