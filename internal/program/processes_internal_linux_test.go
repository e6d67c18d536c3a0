package program

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func statLine(name string) string {
	return "4711 (" + name + ") S 12 13 14 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2 3"
}

func TestParseStat(t *testing.T) {
	for _, name := range []string{"sh", "a b", ") Z 1 1", "(", "\xff\n"} {
		p, err := parseStat([]byte(statLine(name)))
		require.NoError(t, err)
		require.Equal(t, process{pid: 4711, parent: 12, group: 13, started: 98765, state: 'S'}, p)
	}
	p, err := parseStat([]byte(strings.Replace(statLine("sh"), " S ", " Z ", 1)))
	require.NoError(t, err)
	require.True(t, p.zombie())
	for _, bad := range []string{"", "1 (sh", "1 sh) S 1 1", "1 (sh) S 1 1 1", "x" + statLine("sh"),
		strings.Replace(statLine("sh"), "98765", "-1", 1)} {
		_, err := parseStat([]byte(bad))
		require.ErrorIs(t, err, errStat, "%q", bad)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte(statLine("sh")))
	f.Add([]byte("1 () Z"))
	f.Fuzz(func(t *testing.T, line []byte) {
		if p, err := parseStat(line); err != nil {
			require.Zero(t, p)
		}
	})
}

// A number that was given to another process is not signalled: here the same one, said to be of another time.
func TestSend_OnlyToTheProcessThatWasFound(t *testing.T) {
	cmd := exec.Command("/bin/sleep", "300")
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	p, err := lookUp(fmt.Sprint(cmd.Process.Pid))
	require.NoError(t, err)
	require.Equal(t, os.Getpid(), p.parent)
	other := p
	other.started++
	require.ErrorIs(t, other.send(unix.SIGKILL), unix.ESRCH)
	require.NoError(t, cmd.Process.Signal(unix.Signal(0)))
	require.NoError(t, p.send(unix.SIGKILL))
	require.Error(t, cmd.Wait())
	require.ErrorIs(t, p.send(unix.SIGKILL), unix.ESRCH)
}

// Everybody below is found, at any depth; nobody beside.
func TestDescendants(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "sh -c 'sleep 300 & wait' & wait")
	cmd.SysProcAttr = attributes()
	require.NoError(t, cmd.Start())
	defer func() { _ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL); _ = cmd.Wait() }()
	require.Eventually(t, func() bool { return len(descendants(cmd.Process.Pid)) == 2 }, 10*time.Second,
		time.Millisecond)
	require.Len(t, alive(0), 3)
	require.Empty(t, alive(cmd.Process.Pid), "they are in the group of the first")
}

// A machine that was suspended after the time was told: its monotonic clock has stood still, and its wall
// clock has not. Package time has no way to say that.
func TestLimit_OfASuspendedMachine(t *testing.T) {
	for name, c := range map[string]struct {
		suspended, left time.Duration
	}{"not suspended": {0, time.Minute}, "for a while": {45 * time.Second, 15 * time.Second},
		"beyond the limit": {90 * time.Second, -30 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			at := time.Now().Add(time.Minute)
			*(*uint64)(unsafe.Pointer(&at)) -= uint64(c.suspended/time.Second) << 30
			left, ok := limitOf(at).left()
			require.True(t, ok)
			require.LessOrEqual(t, left, c.left)
			require.Greater(t, left, c.left-10*time.Second)
		})
	}
}
