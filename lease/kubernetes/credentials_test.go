package kubernetes_test

import (
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/serf-sbr/serf-sbr/internal/kubefake"
	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Credentials are client-go's business. These tests show that what it offers arrives: each lets a kubeconfig,
// or a pod's surroundings, reach an API server.

// kubeconfigFor writes a kubeconfig with one cluster, user and context, all called "one", after change has
// had its way.
func kubeconfigFor(t *testing.T, f *kubefake.API, change func(*clientcmdapi.Config)) string {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["one"] = &clientcmdapi.Cluster{Server: f.URL,
		CertificateAuthorityData: certificatePEM(f.Certificate())}
	c.AuthInfos["one"] = &clientcmdapi.AuthInfo{Token: "token-one"}
	c.Contexts["one"] = &clientcmdapi.Context{Cluster: "one", AuthInfo: "one", Namespace: testNamespace}
	c.CurrentContext = "one"
	if change != nil {
		change(c)
	}
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, clientcmd.WriteToFile(*c, path))
	return path
}

func openContext(t *testing.T, kubeconfig, name string) (*kubernetes.Store, error) {
	t.Helper()
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	cfg := testConfig()
	cfg.Kubeconfig, cfg.Context, cfg.Namespace = kubeconfig, name, ""
	s, err := kubernetes.New(cfg)
	if err == nil {
		t.Cleanup(func() { require.NoError(t, s.Close()) })
	}
	return s, err
}

// In a pod, too, a kubeconfig that is named counts for more than the service account.
func TestCredentials_ANamedKubeconfigComesFirst(t *testing.T) {
	f := kubefake.New(t)
	h := listen(f)
	path := kubeconfigFor(t, f, nil)
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	cfg := testConfig()
	cfg.Kubeconfig = path
	s, err := kubernetes.New(cfg)
	require.NoError(t, err)
	defer s.Close()
	read(t, s)
	require.Equal(t, "Bearer token-one", h.authorization())
}

func TestCredentials_TheContextChoosesClusterAndUser(t *testing.T) {
	one, two := kubefake.New(t), kubefake.New(t)
	h1, h2 := listen(one), listen(two)
	path := kubeconfigFor(t, one, func(c *clientcmdapi.Config) {
		c.Clusters["two"] = &clientcmdapi.Cluster{Server: two.URL,
			CertificateAuthorityData: certificatePEM(two.Certificate())}
		c.AuthInfos["two"] = &clientcmdapi.AuthInfo{Token: "token-two"}
		c.Contexts["two"] = &clientcmdapi.Context{Cluster: "two", AuthInfo: "two", Namespace: testNamespace}
	})
	current, err := openContext(t, path, "")
	require.NoError(t, err)
	read(t, current)
	require.Equal(t, "Bearer token-one", h1.authorization())
	require.Empty(t, two.Made())
	chosen, err := openContext(t, path, "two")
	require.NoError(t, err)
	read(t, chosen)
	require.Equal(t, "Bearer token-two", h2.authorization())
	require.Len(t, one.Made(), 1)

	_, err = openContext(t, path, "three")
	require.ErrorContains(t, err, `"three"`)
	require.NotContains(t, err.Error(), "\n")
}

func TestCredentials_ExecPlugin(t *testing.T) {
	f := kubefake.New(t)
	h := listen(f)
	path := kubeconfigFor(t, f, func(c *clientcmdapi.Config) {
		c.AuthInfos["one"] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
			Command: "sh",
			Args:    []string{"-c", `echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "made up"}}'`},
		}}
	})
	s, err := openContext(t, path, "")
	require.NoError(t, err)
	read(t, s)
	require.Equal(t, "Bearer made up", h.authorization())
}

// A token that has run out is renewed by the kubelet any moment: nothing is decided by a 401.
func TestCredentials_A401IsRetriedUntilTheTokenIsThere(t *testing.T) {
	f := kubefake.New(t)
	var refused atomic.Int64
	f.Hook = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Bearer good" {
			return false
		}
		refused.Add(1)
		return unauthorized(w, r)
	}
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("stale"), 0o600))
	c := f.RESTConfig()
	c.BearerToken, c.BearerTokenFile = "", file
	settings := lease.DefaultSettings()
	settings.OperationTimeout = 30 * time.Second
	l, err := lease.New(open(t, c), "a", settings, lease.Options{})
	require.NoError(t, err)
	defer l.Close()
	done := make(chan linear.Answer, 1)
	go func() { done <- linear.AnswerOf(l.Acquire(t.Context(), lease.Proposal{})) }()
	require.Eventually(t, func() bool { return refused.Load() >= 3 }, waitFor, time.Millisecond)
	require.Empty(t, done)
	require.NoError(t, os.WriteFile(file, []byte("good"), 0o600))
	out := <-done
	require.Equal(t, sbr.Granted, out.Kind, "%v", out)
}
