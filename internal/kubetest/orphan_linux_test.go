package kubetest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const orphanEnv = "KUBETEST_ORPHAN_HELPER"

// TestOrphanHelper is the process that TestKilledTest_LeavesNoProcess kills.
func TestOrphanHelper(t *testing.T) {
	if os.Getenv(orphanEnv) == "" {
		t.Skip("only as a helper")
	}
	c := Shared(t)
	fmt.Println("pids", c.etcd.cmd.Process.Pid, c.apiServer.cmd.Process.Pid)
	// Long enough to be killed, not for ever: the killer may be killed first.
	time.Sleep(time.Minute)
}

func TestKilledTest_LeavesNoProcess(t *testing.T) {
	skipIfShort(t)
	helper := exec.Command(os.Args[0], "-test.run=^TestOrphanHelper$")
	helper.Env = append(os.Environ(), orphanEnv+"=1", "TMPDIR="+t.TempDir())
	helper.Stderr = os.Stderr
	out, err := helper.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, helper.Start())
	var etcd, server int
	lines := bufio.NewScanner(out)
	for etcd == 0 && lines.Scan() {
		_, _ = fmt.Sscanf(lines.Text(), "pids %d %d", &etcd, &server)
	}
	require.NoError(t, helper.Process.Kill())
	_ = helper.Wait()
	require.NotZero(t, server, "the helper did not start a cluster")
	for _, pid := range []int{etcd, server} {
		require.Eventually(t, func() bool { return !running(pid) }, 10*time.Second, pollEvery)
	}
}

// running is false for a zombie too: whoever inherits it may take its time.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// A test in a network namespace locks its thread and lets it die: that must not take a cluster along.
func TestSpawner_ChildOutlivesTheCallersThread(t *testing.T) {
	s := newSpawner()
	defer s.close()
	p, thread := startFromDyingThread(t, s)
	defer p.kill()
	task := fmt.Sprintf("/proc/self/task/%d", thread)
	require.Eventually(t, func() bool { _, err := os.Stat(task); return err != nil }, 10*time.Second, pollEvery)
	time.Sleep(5 * pollEvery)
	require.True(t, p.alive())
}

// startFromDyingThread starts a child for a goroutine that ends with its thread locked.
func startFromDyingThread(t *testing.T, s *spawner) (*process, int) {
	log := filepath.Join(t.TempDir(), "log")
	var p *process
	var err error
	thread := os.Getpid()
	// The first thread of a process never dies; whoever ends on it leaves it unusable, so the next try gets another.
	for thread == os.Getpid() {
		p.kill()
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread()
			thread = syscall.Gettid()
			p, err = startProcess(s, "sleep", log, "/bin/sleep", "60")
		}()
		<-done
		require.NoError(t, err)
	}
	return p, thread
}
