package process_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/internal/proc"
	"github.com/serf-sbr/serf-sbr/test/process"
)

const helperEnv = "PROCESS_TEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		helper()
		return
	}
	goleak.VerifyTestMain(m)
}

// helper is the process that TestKilledParent_TakesItsChildAlong kills.
func helper() {
	p, err := process.Start(process.NewThread(),
		process.Command{Name: "sleep", Program: "/bin/sleep", Args: []string{"60"}, Log: os.DevNull})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("pid", p.Pid())
	// Long enough to be killed, not for ever: the killer may be killed first.
	time.Sleep(time.Minute)
}

func start(t *testing.T, program string, args ...string) *process.Process {
	thread := process.NewThread()
	t.Cleanup(thread.Close)
	p, err := process.Start(thread, process.Command{
		Name: "child", Program: program, Args: args, Log: filepath.Join(t.TempDir(), "log"),
	})
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	return p
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestProcess_ExitAndOutput(t *testing.T) {
	p := start(t, "/bin/sh", "-c", "echo one; echo two >&2; exit 70")
	exit, err := p.Wait(within(t))
	require.NoError(t, err)
	require.Equal(t, 70, exit.Code)
	require.Equal(t, "exit status 70", exit.Text)
	require.WithinRange(t, exit.At, p.Started(), time.Now())
	require.Equal(t, "one\ntwo\n", p.Log())
	require.Equal(t, "two", p.LastLogLine())
	require.False(t, p.Alive())
	require.ErrorIs(t, p.Interrupt(), process.ErrEnded)
	p.Kill()
}

func TestProcess_LogIsItsOwnPart(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	thread := process.NewThread()
	defer thread.Close()
	for range 2 {
		p, err := process.Start(thread, process.Command{Name: "sh", Program: "/bin/sh",
			Args: []string{"-c", "echo word"}, Log: log})
		require.NoError(t, err)
		_, err = p.Wait(within(t))
		require.NoError(t, err)
		require.Equal(t, "word\n", p.Log())
	}
}

func TestProcess_PauseAndResume(t *testing.T) {
	p := start(t, "/bin/sleep", "60")
	require.NoError(t, p.Pause(within(t)))
	require.True(t, p.Paused())
	require.NoError(t, p.Resume())
	require.Eventually(t, func() bool { return !p.Paused() }, 10*time.Second, time.Millisecond)
	require.NoError(t, p.Pause(within(t)))
	p.Kill()
	require.False(t, p.Paused())
	require.ErrorIs(t, p.Pause(within(t)), process.ErrEnded)
}

func TestProcess_WaitGivesUp(t *testing.T) {
	p := start(t, "/bin/sleep", "60")
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := p.Wait(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// What a child has started ends with it, whether it is killed or ends by itself.
func TestProcess_TakesItsGroupAlong(t *testing.T) {
	for _, tc := range []struct{ name, script string }{
		{"killed", "sleep 60 & echo $!; wait"},
		{"ends", "sleep 60 & echo $!"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := start(t, "/bin/sh", "-c", tc.script)
			var pid int
			require.Eventually(t, func() bool { _, err := fmt.Sscan(p.Log(), &pid); return err == nil },
				10*time.Second, time.Millisecond)
			if tc.name == "killed" {
				require.True(t, proc.Running(pid))
				p.Kill()
			}
			require.Eventually(t, func() bool { return !proc.Running(pid) }, 10*time.Second, time.Millisecond)
		})
	}
}

func TestStart_SaysWhatIsMissing(t *testing.T) {
	thread := process.NewThread()
	defer thread.Close()
	_, err := process.Start(thread, process.Command{Name: "it", Program: "/no/such/program", Log: os.DevNull})
	require.ErrorContains(t, err, "process: it: ")
	_, err = process.Start(thread, process.Command{Name: "it", Program: "/bin/true", Log: "/no/such/log"})
	require.ErrorContains(t, err, "log file")
}

func TestThread_EnterFails(t *testing.T) {
	failed := errors.New("failed")
	_, err := process.NewThreadIn(func() error { return failed })
	require.ErrorIs(t, err, failed)
}

// What enter did to the thread reaches nobody else: no other goroutine ever runs there.
func TestThread_IsOneAndNobodyElses(t *testing.T) {
	entered := 0
	thread, err := process.NewThreadIn(func() error { entered = syscall.Gettid(); return nil })
	require.NoError(t, err)
	defer thread.Close()
	const crowd = 32
	others := make(chan int, crowd)
	release := make(chan struct{})
	var done sync.WaitGroup
	for range crowd { // all at the same time, each on a thread of its own: a free one would be taken
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			others <- syscall.Gettid()
			<-release
		})
	}
	for range crowd {
		require.NotEqual(t, entered, <-others)
	}
	thread.Do(func() { require.Equal(t, entered, syscall.Gettid()) })
	close(release)
	done.Wait()
}

func TestKilledParent_TakesItsChildAlong(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), helperEnv+"=1")
	out, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	var pid int
	line, _ := bufio.NewReader(out).ReadString('\n')
	_, err = fmt.Sscanf(line, "pid %d", &pid)
	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait()
	require.NoError(t, err, line)
	require.Eventually(t, func() bool { return !proc.Running(pid) }, 10*time.Second, time.Millisecond)
}

// A test in a network namespace locks its thread and lets it die: that must not take a child along.
func TestThread_ChildOutlivesTheCallersThread(t *testing.T) {
	thread := process.NewThread()
	defer thread.Close()
	p, tid := startFromDyingThread(t, thread)
	defer p.Kill()
	task := fmt.Sprintf("/proc/self/task/%d", tid)
	require.Eventually(t, func() bool { _, err := os.Stat(task); return err != nil }, 10*time.Second,
		time.Millisecond)
	time.Sleep(50 * time.Millisecond)
	require.True(t, p.Alive())
}

// startFromDyingThread starts a child for a goroutine that ends with its thread locked.
func startFromDyingThread(t *testing.T, s *process.Thread) (*process.Process, int) {
	var p *process.Process
	var err error
	tid := os.Getpid()
	// The first thread of a process never dies; a goroutine that ends on it leaves it unusable, so the next
	// try gets another.
	for tid == os.Getpid() {
		p.Kill()
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread()
			tid = syscall.Gettid()
			p, err = process.Start(s, process.Command{Name: "sleep", Program: "/bin/sleep", Args: []string{"60"},
				Log: os.DevNull})
		}()
		<-done
		require.NoError(t, err)
	}
	return p, tid
}
