package program_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// newTerminal returns both ends of a pseudo-terminal.
func newTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo-terminals here:", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = slave.Close() })
	return master, slave
}

// A program has the terminal while it runs: it reads what is typed, Ctrl-C is its own, Ctrl-Z does not stop
// it. Then its parent has it again.
func TestTerminal(t *testing.T) {
	master, slave := newTerminal(t)
	o, _ := options(t, `
trap "echo interrupted; exit 4" INT
echo ready; read line; echo "read $line"
while :; do sleep 0.01; done`)
	text, err := json.Marshal(o)
	require.NoError(t, err)
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentEnv+"="+string(text), "PROGRAM_TEST_TERMINAL=1")
	parent.Stdin, parent.Stdout, parent.Stderr = slave, slave, slave
	parent.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, parent.Start())
	t.Cleanup(func() { _ = parent.Process.Kill(); _ = parent.Wait() })
	lines := make(chan string)
	go func() {
		defer close(lines)
		for out := bufio.NewScanner(master); out.Scan(); {
			lines <- out.Text()
		}
	}()
	expect := func(want string) {
		t.Helper()
		for patience := time.After(20 * time.Second); ; {
			select {
			case line, ok := <-lines:
				require.True(t, ok, "no %q", want)
				if strings.Contains(line, want) {
					return
				}
			case <-patience:
				t.Fatalf("%q does not appear", want)
			}
		}
	}
	expect("ready")
	_, err = master.WriteString("\x1a") // Ctrl-Z
	require.NoError(t, err)
	_, err = master.WriteString("hello\n")
	require.NoError(t, err)
	expect("read hello")
	_, err = master.WriteString("\x1a\x03")
	require.NoError(t, err)
	expect("interrupted")
	expect("status 4, the terminal is mine: true")
	require.NoError(t, slave.Close())
	require.NoError(t, parent.Wait())
	for range lines {
		continue // until the terminal has hung up
	}
}
