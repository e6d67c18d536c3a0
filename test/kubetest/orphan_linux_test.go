package kubetest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/process"
)

const orphanEnv = "KUBETEST_ORPHAN_HELPER"

// TestOrphanHelper is the process that TestKilledTest_LeavesNoProcess kills.
func TestOrphanHelper(t *testing.T) {
	if os.Getenv(orphanEnv) == "" {
		t.Skip("only as a helper")
	}
	c := Shared(t)
	fmt.Println("pids", c.etcd.Pid(), c.apiServer.Pid())
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
		require.Eventually(t, func() bool { return !process.Running(pid) }, 10*time.Second, pollEvery)
	}
}
