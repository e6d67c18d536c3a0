package kubernetes_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
)

func TestConfig_Validate(t *testing.T) {
	require.NoError(t, testConfig().Validate())
	wrong := kubernetes.Config{Name: "Payments_SBR", Namespace: "Team A"}
	err := wrong.Validate()
	require.ErrorContains(t, err, `"Payments_SBR" cannot be the name of a lease`)
	require.ErrorContains(t, err, `(for example "payments-sbr")`)
	require.ErrorContains(t, err, `"Team A" cannot be a namespace`)
	require.ErrorContains(t, err, "request timeout")
	require.Len(t, strings.Split(err.Error(), "\n"), 3)

	_, err = kubernetes.New(kubernetes.DefaultConfig())
	require.ErrorContains(t, err, "name of the lease is empty")
	_, err = kubernetes.NewForConfig(nil, kubernetes.DefaultConfig())
	require.ErrorContains(t, err, "name of the lease is empty")
}

const kubeconfig = `apiVersion: v1
kind: Config
current-context: one
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts:
- {name: one, context: {cluster: c, user: u, namespace: from-one}}
- {name: two, context: {cluster: c, user: u, namespace: from-two}}
- {name: none, context: {cluster: c, user: u}}
`

func TestNew_Namespace(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path, []byte(kubeconfig), 0o600))
	for _, c := range []struct{ context, namespace, want string }{
		{"", "", "from-one/payments-sbr"},
		{"two", "", "from-two/payments-sbr"},
		{"none", "", "default/payments-sbr"},
		{"", "set", "set/payments-sbr"},
	} {
		cfg := testConfig()
		cfg.Kubeconfig, cfg.Context, cfg.Namespace = path, c.context, c.namespace
		s, err := kubernetes.New(cfg)
		require.NoError(t, err)
		require.Equal(t, c.want, s.String())

		cfg.Kubeconfig = ""
		t.Setenv("KUBECONFIG", path)
		s, err = kubernetes.New(cfg)
		require.NoError(t, err)
		require.Equal(t, c.want, s.String())
	}
}

func TestNew_NoCluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "absent"))
	_, err := kubernetes.New(testConfig())
	require.ErrorContains(t, err, "not in a pod, and no kubeconfig found")

	cfg := testConfig()
	cfg.Kubeconfig = filepath.Join(t.TempDir(), "absent")
	_, err = kubernetes.New(cfg)
	require.ErrorContains(t, err, "absent")

	cfg.Kubeconfig = ""
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	_, err = kubernetes.New(cfg)
	require.ErrorContains(t, err, "service account of the pod")
}
