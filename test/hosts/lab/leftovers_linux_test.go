package lab_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/test/hosts/lab"
	"github.com/serf-sbr/serf-sbr/test/process"
)

const helperEnv = "SBR_LAB_TEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		if err := helper(); err != nil {
			fmt.Println(err)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// helper makes a lab, cuts it, starts a process that starts another, and waits to be ended.
func helper() error {
	l, err := lab.New(context.Background(), lab.Options{Hosts: []string{"a", "b"}})
	if err != nil {
		return err
	}
	if err := l.Cut("a", "b"); err != nil {
		return err
	}
	s, err := l.Host("a").Supervise(process.Command{Name: "sh", Program: "/bin/sh",
		Args: []string{"-c", "sleep 300 & wait"}}, 0)
	if err != nil {
		return err
	}
	fmt.Println(l.Name(), s.Process().Pid(), l.Watchman())
	if os.Getenv(helperEnv) == "panic" {
		time.Sleep(200 * time.Millisecond) // the shell's child
		go panic("as it happens")
	}
	time.Sleep(time.Minute) // to be killed, not for ever: the killer may be killed first
	return nil
}

// namespaces are those of all labs of this process.
func namespaces(t *testing.T) []string {
	all, err := filepath.Glob(fmt.Sprintf("/run/netns/sbrlab-%d-*", os.Getpid()))
	require.NoError(t, err)
	return all
}

func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// sleepers are the children of a process.
func sleepers(t *testing.T, pid int) []int {
	var children []int
	require.Eventually(t, func() bool {
		raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		var child int
		n, _ := fmt.Sscan(string(raw), &child)
		children = []int{child}
		return n == 1
	}, 10*time.Second, time.Millisecond)
	return children
}

type run struct {
	cmd                      *exec.Cmd
	name                     string
	shell, watchman, sleeper int
}

func startRun(t *testing.T, how string) *run {
	needsRoot(t)
	r := &run{cmd: exec.Command(os.Args[0])}
	r.cmd.Env = append(os.Environ(), helperEnv+"="+how, "TMPDIR="+t.TempDir())
	out, err := r.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, r.cmd.Start())
	t.Cleanup(func() { _ = r.cmd.Process.Kill(); _ = r.cmd.Wait() })
	line, _ := bufio.NewReader(out).ReadString('\n')
	n, err := fmt.Sscan(line, &r.name, &r.shell, &r.watchman)
	require.Equal(t, 3, n, "%s: %v", line, err)
	if how != "panic" {
		r.sleeper = sleepers(t, r.shell)[0]
		require.NotEmpty(t, r.namespaces(t))
		require.True(t, running(r.sleeper))
	}
	return r
}

func (r *run) namespaces(t *testing.T) []string {
	all, err := filepath.Glob("/run/netns/" + r.name + "-*")
	require.NoError(t, err)
	return all
}

func (r *run) requireNothingLeft(t *testing.T) {
	require.Eventually(t, func() bool {
		return len(r.namespaces(t)) == 0 && !running(r.shell) && (r.sleeper == 0 || !running(r.sleeper)) &&
			!running(r.watchman)
	}, 20*time.Second, 10*time.Millisecond, "%v", r)
	links, err := exec.Command("ip", "-brief", "link").CombinedOutput()
	require.NoError(t, err)
	require.NotContains(t, string(links), "veth")
}

// However a process ends, its lab ends with it: hosts, links, rules, processes and what these have started.
func TestEndOfTheProcess_LeavesNothing(t *testing.T) {
	for _, tc := range []struct {
		name string
		how  string
		end  func(r *run) error
	}{
		{"killed", "wait", func(r *run) error { return r.cmd.Process.Kill() }},
		{"interrupted", "wait", func(r *run) error { return r.cmd.Process.Signal(os.Interrupt) }},
		{"panics", "panic", func(*run) error { return nil }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := startRun(t, tc.how)
			require.NoError(t, tc.end(r))
			_ = r.cmd.Wait()
			r.requireNothingLeft(t)
		})
	}
}

func TestClose_LeavesNothing(t *testing.T) {
	needsRoot(t)
	before := namespaces(t)
	l, err := lab.New(t.Context(), lab.Options{Hosts: []string{"a"}})
	require.NoError(t, err)
	p, err := l.Host("a").Start(process.Command{Name: "sh", Program: "/bin/sh",
		Args: []string{"-c", "setsid sleep 300 & wait"}})
	require.NoError(t, err)
	child := sleepers(t, p.Pid())[0]
	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	require.False(t, p.Alive())
	require.False(t, running(child), "also what has left its group")
	require.NoDirExists(t, l.Dir())
	require.Equal(t, before, namespaces(t))
}

func TestKeep_LeavesTheLogs(t *testing.T) {
	l := newLab(t, "a")
	_, err := l.Host("a").Start(process.Command{Name: "echo", Program: "/bin/echo", Args: []string{"word"}})
	require.NoError(t, err)
	l.Keep()
	require.NoError(t, l.Close())
	defer os.RemoveAll(l.Dir())
	require.FileExists(t, filepath.Join(l.Dir(), "a-echo.log"))
}
