//go:build unix

package file

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// child is the test binary in another role, as a process of its own. It answers line by line.
type child struct {
	t      *testing.T
	cmd    *exec.Cmd
	lines  *bufio.Scanner
	stderr strings.Builder
	ended  bool
}

// start starts a child with the environment, KEY=VALUE each.
func start(t *testing.T, role string, env ...string) *child {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	// Nothing here takes minutes: a child that hangs fails its test.
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	c := &child{t: t, cmd: exec.CommandContext(ctx, exe)}
	c.cmd.Env = append(append(os.Environ(), childVariable+"="+role), env...)
	c.cmd.Stderr = &c.stderr
	out, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	c.lines = bufio.NewScanner(out)
	require.NoError(t, c.cmd.Start())
	t.Cleanup(c.kill)
	return c
}

// line returns the next line the child prints; false when it prints no more.
func (c *child) line() (string, bool) {
	if !c.lines.Scan() {
		return "", false
	}
	return c.lines.Text(), true
}

// rest returns all other lines.
func (c *child) rest() []string {
	var all []string
	for line, ok := c.line(); ok; line, ok = c.line() {
		all = append(all, line)
	}
	return all
}

// kill ends the child by SIGKILL and waits for it.
func (c *child) kill() {
	if !c.ended {
		c.ended = true
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	}
}

// wait waits until the child has ended by itself; killed says that it must have ended by SIGKILL.
func (c *child) wait(killed bool) {
	c.t.Helper()
	for range c.rest() {
	}
	c.ended = true
	err := c.cmd.Wait()
	if killed {
		require.Error(c.t, err)
		require.Equal(c.t, syscall.SIGKILL, c.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(), "%v: %s", err, c.stderr.String())
		return
	}
	require.NoError(c.t, err, "%s", c.stderr.String())
}

// die ends this process as a SIGKILL from outside would.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // until it arrives
}
