//go:build unix

package file

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
)

func init() {
	children["holds"] = holds
}

// short are times that a test can wait for.
var short = lease.Settings{HeartbeatTimeout: 3 * time.Second, HeartbeatInterval: 300 * time.Millisecond,
	OperationTimeout: 4 * time.Second}

// holds gets the lease, says so, and answers each line that it reads with what it believes then.
func holds() error {
	s, err := openStore(os.Getenv("CHILD_PATH"), nil)
	if err != nil {
		return err
	}
	l, err := lease.New(s, "child", short, lease.Options{})
	if err != nil {
		return err
	}
	grant, err := l.Acquire(context.Background(), lease.Proposal{})
	if err != nil {
		return err
	}
	fmt.Println(l.Check(), l.Token())
	if !bufio.NewScanner(os.Stdin).Scan() {
		return os.ErrClosed
	}
	fmt.Println(l.Check(), l.Token())
	<-grant.Done()
	fmt.Println(errors.Is(grant.Err(), lease.ErrLost))
	return nil
}

// A holder that is stopped for longer than the lease lasts knows that it was lost before it does anything
// else.
func TestProcesses_AStoppedHolder(t *testing.T) {
	s := newStore(t, newPath(t))
	c := start(t, "holds", "CHILD_PATH="+s.path)
	c.says("true 1")
	idle, err := s.lock(t.Context()) // not in the middle of a write: there it would keep the lock
	require.NoError(t, err)
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGSTOP))
	c.hasStopped()
	idle.release()

	l, err := lease.New(s, "successor", short, lease.Options{})
	require.NoError(t, err)
	defer l.Close()
	began := time.Now()
	_, err = l.AcquireWait(t.Context(), lease.Proposal{})
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(began), short.HeartbeatTimeout-100*time.Millisecond, "not too early")
	_, err = fmt.Fprintln(c.in) // it is read first of all
	require.NoError(t, err)
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGCONT))
	c.says("false 0")
	c.says("true")
	c.wait(false)
	require.True(t, l.Check(), "its successor goes on")
	require.Equal(t, "successor", mustRead(t, s).Record.Holder)
}

// A process that is stopped in the middle of a write keeps the lock: no other process writes, all read, and
// the error says which process to look for. Once it is killed the others go on.
func TestProcesses_StoppedInTheMiddleOfAWrite(t *testing.T) {
	s := newStore(t, newPath(t))
	mustWrite(t, s, record("a", 1), "")
	c := start(t, "stops", "CHILD_PATH="+s.path)
	c.hasStopped()
	present := mustRead(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := s.Write(ctx, record("b", 2), present.Version)
	refusedOneLine(t, s, err, "another process has the lock")
	c.kill()
	mustWrite(t, s, record("b", 2), present.Version)
}

func init() {
	children["stops"] = func() error {
		s, err := openStore(os.Getenv("CHILD_PATH"), nil)
		if err != nil {
			return err
		}
		got, err := s.Read(context.Background())
		if err != nil {
			return err
		}
		s.system.Sync = func(*os.File) error { return syscall.Kill(os.Getpid(), syscall.SIGSTOP) }
		_, err = s.Write(context.Background(), record("child", 2), got.Version)
		return err
	}
}

// child is the test binary in another role, as a process of its own. It answers line by line.
type child struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.Writer
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
	c.in, err = c.cmd.StdinPipe()
	require.NoError(t, err)
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

// says insists on the next line.
func (c *child) says(want string) {
	c.t.Helper()
	line, _ := c.line()
	require.Equal(c.t, want, line, "%s", c.stderr.String())
}

// hasStopped waits until a SIGSTOP has reached the child.
func (c *child) hasStopped() {
	c.t.Helper()
	var status syscall.WaitStatus
	_, err := syscall.Wait4(c.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
	require.NoError(c.t, err)
	require.True(c.t, status.Stopped())
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
		require.Equal(c.t, syscall.SIGKILL, c.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(), "%v: %s", err,
			c.stderr.String())
		return
	}
	require.NoError(c.t, err, "%s", c.stderr.String())
}

// die ends this process as a SIGKILL from outside would.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // until it arrives
}
