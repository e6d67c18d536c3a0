package kubernetes_test

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/serf-sbr/serf-sbr/internal/kubefake"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

const (
	testNamespace = "team-a"
	testName      = "payments-sbr"
	waitFor       = 10 * time.Second
	quietFor      = 150 * time.Millisecond
)

func TestMain(m *testing.M) {
	if os.Getenv(accountVariable) != "" {
		readInCluster() // this process is the child of a test
		return
	}
	goleak.VerifyTestMain(kubetest.M(m))
}

func testConfig() kubernetes.Config {
	cfg := kubernetes.DefaultConfig()
	cfg.Namespace, cfg.Name = testNamespace, testName
	cfg.RequestTimeout = 20 * time.Second // for a machine under load; the tests about time set their own
	return cfg
}

func newStore(t *testing.T, f *kubefake.API) *kubernetes.Store {
	s, err := kubernetes.NewForConfig(f.RESTConfig(), testConfig())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func openKubeconfig(t *testing.T, path, namespace string) *kubernetes.Store {
	return realWorld{namespace: namespace}.storeBy(t, path)
}

func openStore(t testing.TB, cfg kubernetes.Config) *kubernetes.Store {
	s, err := kubernetes.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// warm opens the store's connection: thirty handshakes at once take their time.
func warm(t *testing.T, s *kubernetes.Store) *kubernetes.Store {
	t.Helper()
	var err error
	require.Eventually(t, func() bool {
		_, err = s.Read(t.Context())
		return err == nil
	}, 30*time.Second, 50*time.Millisecond, "%v", &err)
	return s
}

// What the tests of this package and those of the store over the other server have in common.
var (
	record         = kubefake.Record
	mustWrite      = kubefake.MustWrite
	requireUnknown = kubefake.RequireUnknown
	next           = kubefake.Next
	nothing        = kubefake.Nothing
)

func watching(t *testing.T, s *kubernetes.Store) <-chan lease.Snapshot {
	return kubefake.Watching(t, s, nil)
}

type object = kubefake.Object

func contextFor(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}

func restConfigOf(t testing.TB, kubeconfig string) *rest.Config {
	c, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	return c
}

func randomText(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(rand.Text())
	}
	return b.String()[:n]
}
