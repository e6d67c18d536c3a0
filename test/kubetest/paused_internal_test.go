package kubetest

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/process"
)

func TestEtcdIsPaused(t *testing.T) {
	program, err := exec.LookPath("sleep")
	require.NoError(t, err)
	s := process.NewThread()
	defer s.Close()
	p, err := startServer(s, "etcd", filepath.Join(t.TempDir(), "log"), program, "60")
	require.NoError(t, err)
	defer p.kill()
	c := &Cluster{etcd: p}
	require.False(t, c.EtcdIsPaused())
	require.NoError(t, c.PauseEtcd())
	require.True(t, c.EtcdIsPaused())
	require.NoError(t, c.ContinueEtcd())
	require.Eventually(t, func() bool { return !c.EtcdIsPaused() }, 5*time.Second, time.Millisecond)
	p.kill()
	require.False(t, c.EtcdIsPaused())
}
