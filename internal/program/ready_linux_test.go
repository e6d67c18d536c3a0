package program_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/serf-sbr/serf-sbr/internal/process"
	"github.com/serf-sbr/serf-sbr/internal/program"
)

// children are the processes that this one has started.
func children(t *testing.T) []int {
	t.Helper()
	pids, err := process.Children()
	require.NoError(t, err)
	return pids
}

// prepared is a supervisor that waits, ignoreProgramSignals to what is meant for its program, and its number.
func prepared(t *testing.T, o program.Options) (*program.Ready, int) {
	t.Helper()
	r, err := program.Prepare(o.Supervisor)
	require.NoError(t, err)
	pids := children(t)
	require.Len(t, pids, 1)
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/3", pids[0]))
		_, flags, _ := strings.Cut(string(text), "flags:")
		set, _ := strconv.ParseUint(strings.TrimSpace(strings.SplitN(flags, "\n", 2)[0]), 8, 64)
		return set&unix.O_CLOEXEC != 0 // which it sets after that
	}, 20*time.Second, time.Millisecond)
	return r, pids[0]
}

func TestReady_StartsWithTheKeeperThatWaits(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(supervisor int)
		same      bool
	}{
		"nothing happens":         {func(int) {}, true},
		"it gets a signal":        {func(supervisor int) { require.NoError(t, syscall.Kill(supervisor, syscall.SIGTERM)) }, true},
		"it is killed":            {func(supervisor int) { require.NoError(t, syscall.Kill(supervisor, syscall.SIGKILL)) }, false},
		"it is killed, and ended": {func(supervisor int) { kill(t, supervisor) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := options(t, "trap 'exit 5' TERM; while :; do sleep 0.01; done")
			r, supervisor := prepared(t, o)
			c.meanwhile(supervisor)
			p, err := r.Start(o)
			require.NoError(t, err)
			t.Cleanup(func() { p.Kill("the test has ended"); <-p.Ended() })
			require.Equal(t, c.same, parentOf(t, p.Pid()) == supervisor)
			require.Len(t, children(t), 1, "one supervisor, and what it looks after is its child")
		})
	}
}

// kill kills a process and waits until it has ended.
func kill(t *testing.T, pid int) {
	t.Helper()
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	require.Eventually(t, func() bool { return !process.Running(pid) }, 10*time.Second, time.Millisecond)
}

func TestReady_NothingIsLeft(t *testing.T) {
	o, file := options(t, "echo $$ >$PIDS")
	r, supervisor := prepared(t, o)
	r.Close()
	require.False(t, process.Running(supervisor))

	r, supervisor = prepared(t, o)
	bad := o
	bad.StopTimeout = 0
	_, err := r.Start(bad)
	require.ErrorContains(t, err, "stop timeout")
	require.False(t, process.Running(supervisor))

	r, supervisor = prepared(t, o)
	o.Until = time.Now()
	_, err = r.Start(o)
	require.ErrorIs(t, err, program.ErrTooLate)
	require.False(t, process.Running(supervisor))
	require.NoFileExists(t, file)
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
