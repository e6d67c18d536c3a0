package kubernetes_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/demo"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// The demonstration can keep its lease in a real kube-apiserver, with credentials for nothing but that lease.
func TestDemo_RealAPIServer(t *testing.T) {
	cluster := kubetest.Shared(t)
	opt := demo.DefaultOptions()
	opt.Namespace = cluster.Namespace(t)
	var err error
	opt.Kubeconfig, err = cluster.LeastPrivilegeKubeconfig(t.Context(), opt.Namespace, "demo-sbr")
	require.NoError(t, err)
	opt.StableAfter = 2 * time.Second
	res, err := demo.Run(t.Context(), opt, nil)
	require.NoError(t, err)
	require.True(t, res.Passed)
	require.NotEmpty(t, res.Survivors)
	require.Equal(t, uint64(1), res.Verdict.Token)
}
