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

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
)

func init() {
	children["contends"] = contends
	children["holds"] = holds
}

// short are times that a test can wait for.
var short = lease.Settings{HeartbeatTimeout: 3 * time.Second, HeartbeatInterval: 300 * time.Millisecond, OperationTimeout: 4 * time.Second}

const grantsEach = 5

// resource is what the lease protects: a log that refuses smaller tokens than it has seen, and a room for
// one.
type resource struct{ path string }

var errFenced = errors.New("a smaller token than the last one")

// add appends a line under a token. The whole of it is one step for all processes.
func (r resource) add(token uint64, line string) error {
	guard := flock.New(r.path + ".guard")
	if err := guard.Lock(); err != nil {
		return err
	}
	defer guard.Unlock()
	text, err := os.ReadFile(r.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for l := range strings.Lines(string(text)) {
		var seen uint64
		if _, err := fmt.Sscanf(l, "%d", &seen); err != nil {
			return err
		}
		if seen > token {
			return errFenced
		}
	}
	f, err := os.OpenFile(r.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%d %s\n", token, line)
	return errors.Join(err, f.Close())
}

// enter takes the room. The kernel empties it when a process dies in it.
func (r resource) enter() (leave func() error, err error) {
	room := flock.New(r.path + ".room")
	free, err := room.TryLock()
	if err == nil && !free {
		err = errors.New("TWO HOLDERS AT ONE TIME")
	}
	return room.Unlock, err
}

// contends gets the lease some times and works under it. A mortal one dies at work.
func contends() error {
	owner, mortal := os.Getenv("CHILD_OWNER"), os.Getenv("CHILD_MORTAL") != ""
	s, err := openStore(os.Getenv("CHILD_PATH"), nil)
	if err != nil {
		return err
	}
	l, err := lease.New(s, owner, short, lease.Options{})
	if err != nil {
		return err
	}
	work := resource{os.Getenv("CHILD_LOG")}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for n := 1; n <= grantsEach; n++ {
		if _, err := l.AcquireWait(ctx, lease.Proposal{}); err != nil {
			return err
		}
		token := l.Token()
		leave, err := work.enter()
		if err != nil {
			return err
		}
		if err := work.add(token, "enter "+owner); err != nil {
			return err
		}
		if mortal && n == 2 {
			die()
		}
		if err := work.add(token, "leave "+owner); err != nil {
			return err
		}
		if err := leave(); err != nil {
			return err
		}
		if err := l.Release(ctx); err != nil {
			return err
		}
	}
	l.Close()
	return s.Close()
}

// Eight processes want one lease, through the whole algorithm; two of them are killed while they hold it.
// There is one holder at a time, tokens grow, nobody is fenced off, and everybody gets a turn.
func TestProcesses_OneHolderAtATime(t *testing.T) {
	s := newStore(t, newPath(t))
	log := s.dir + "/log"
	var all []*child
	for i := range 8 {
		env := []string{"CHILD_PATH=" + s.path, "CHILD_LOG=" + log, fmt.Sprintf("CHILD_OWNER=child-%d", i)}
		if i < 2 {
			env = append(env, "CHILD_MORTAL=yes")
		}
		all = append(all, start(t, "contends", env...))
	}
	for i, c := range all {
		c.wait(i < 2)
	}

	f, err := os.Open(log)
	require.NoError(t, err)
	defer f.Close()
	entries, deaths := map[string]int{}, 0
	inside, last := "", uint64(0)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var token uint64
		var what, who string
		_, err := fmt.Sscanf(lines.Text(), "%d %s %s", &token, &what, &who)
		require.NoError(t, err)
		switch what {
		case "enter":
			require.Greater(t, token, last, "each grant has a token of its own")
			if inside != "" {
				deaths++
				require.Contains(t, []string{"child-0", "child-1"}, inside, "only the dead do not leave")
				require.Equal(t, 2, entries[inside])
			}
			entries[who]++
			inside, last = who, token
		case "leave":
			require.Equal(t, inside, who, "nobody else was inside")
			require.Equal(t, last, token)
			inside = ""
		}
	}
	if inside != "" { // a mortal one was the last of all
		deaths++
	}
	require.Equal(t, 2, deaths)
	for i := range 8 {
		want := grantsEach
		if i < 2 {
			want = 2
		}
		require.Equal(t, want, entries[fmt.Sprintf("child-%d", i)])
	}
}

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

// A process that is stopped in the middle of a write keeps the lock: nobody writes, all read, and the error
// says who to look for. Once it is killed the others go on.
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
