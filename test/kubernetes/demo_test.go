package kubernetes_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/demo"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// The demonstration can keep its lease in a real kube-apiserver, with credentials for nothing but that lease.
// Its Events tell what happened.
func TestDemo_RealAPIServer(t *testing.T) {
	cluster := kubetest.Shared(t)
	opt := demo.DefaultOptions()
	opt.Namespace = cluster.Namespace(t)
	var err error
	opt.Kubeconfig, err = cluster.LeastPrivilegeKubeconfig(t.Context(), opt.Namespace, "demo-sbr")
	require.NoError(t, err)
	opt.StableAfter = 2 * time.Second
	w := realWorld{cluster: cluster, api: kubernetes.Native, namespace: opt.Namespace}
	path := w.leases() + "/demo-sbr"
	w.do(t, http.MethodPost, w.leases(), object{"metadata": object{"name": "demo-sbr"}}, 201) // as sbr manifests does
	res, err := demo.Run(t.Context(), opt, nil)
	require.NoError(t, err)
	require.True(t, res.Passed)
	require.NotEmpty(t, res.Survivors)
	require.Equal(t, uint64(1), res.Verdict.Token)

	told := make(map[string]int)
	for _, e := range described(t, cluster, w.do(t, http.MethodGet, path, nil, 200)) {
		told[e[0]]++
		t.Log(e)
	}
	down := len(res.Verdict.Down)
	require.Equal(t, map[string]int{"Suspended": len(res.Survivors) + down, "Verdict": 1, "Downed": down}, told)
}
