package kubernetes_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"strconv"
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
	"github.com/serf-sbr/serf-sbr/sbr"
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

// record has all fields, and times that survive the microseconds of the API.
func record(holder string, token uint64) lease.Record {
	began := time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)
	return lease.Record{
		Holder: holder, Token: token, Nonce: holder + "-" + strconv.FormatUint(token, 10), TTL: 1500 * time.Millisecond,
		Acquired: began, Renewed: began.Add(time.Second),
		Verdict: &sbr.Verdict{Token: token, Survivors: []sbr.ID{"a", "b"}, Down: []sbr.ID{"c"}, DecidedBy: sbr.ID(holder), Reason: "majority"},
	}
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

func mustWrite(t *testing.T, s lease.Store, r lease.Record, prev lease.Version) lease.Snapshot {
	t.Helper()
	version, err := s.Write(t.Context(), r, prev)
	require.NoError(t, err)
	return lease.Snapshot{Record: r, Version: version}
}

// hurried is a pace that retries quickly.
var hurried = lease.Pace{Retry: 5 * time.Millisecond, RetryMax: 20 * time.Millisecond, Poll: 20 * time.Millisecond, Beside: time.Hour}

// watching follows a store until the test ends and returns what that brings.
func watching(t *testing.T, s *kubernetes.Store) <-chan lease.Snapshot { return watchingTo(t, s, nil) }

func watchingTo(t *testing.T, s *kubernetes.Store, log *slog.Logger) <-chan lease.Snapshot {
	seen := make(chan lease.Snapshot, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- lease.Follow(ctx, s, hurried, log, func(snapshot lease.Snapshot) { seen <- snapshot }) }()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
	return seen
}

func next(t *testing.T, seen <-chan lease.Snapshot) lease.Snapshot {
	t.Helper()
	select {
	case snapshot := <-seen:
		return snapshot
	case <-time.After(waitFor):
		require.FailNow(t, "the watch brought nothing")
		return lease.Snapshot{}
	}
}

func nothing(t *testing.T, seen <-chan lease.Snapshot, during time.Duration) {
	t.Helper()
	select {
	case snapshot := <-seen:
		require.FailNow(t, "unexpected", "%+v", snapshot)
	case <-time.After(during):
	}
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

func requireUnknown(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	require.NotErrorIs(t, err, lease.ErrConflict)
	require.NotErrorIs(t, err, lease.ErrRefused)
	require.NotErrorIs(t, err, lease.ErrTooLarge)
}

func randomText(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(rand.Text())
	}
	return b.String()[:n]
}
