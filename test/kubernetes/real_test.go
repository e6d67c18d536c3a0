package kubernetes_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/kubefake"
	"github.com/serf-sbr/serf-sbr/internal/logtest"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// The tests of this file are about what only a real API server has: rights, a dying process, a stalled etcd.

func TestReal_NamespaceAndCredentials(t *testing.T) {
	cluster := kubetest.Shared(t)
	s := openKubeconfig(t, cluster.AdminKubeconfig(), "no-such-namespace")
	_, err := s.Write(t.Context(), record("a", 1), "")
	require.ErrorIs(t, err, lease.ErrRefused)
	require.ErrorContains(t, err, "the namespace does not exist")
	err = s.Preflight(t.Context())
	require.ErrorContains(t, err, "the namespace does not exist")
	require.NotContains(t, err.Error(), "\n")

	anonymous := restConfigOf(t, cluster.AdminKubeconfig())
	anonymous.BearerToken = ""
	s, err = kubernetes.NewForConfig(anonymous, testConfig())
	require.NoError(t, err)
	defer s.Close()
	require.ErrorContains(t, s.Preflight(t.Context()), "had no credentials")

	wrong := restConfigOf(t, cluster.AdminKubeconfig())
	wrong.BearerToken = "nobody"
	s, err = kubernetes.NewForConfig(wrong, testConfig())
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Write(t.Context(), record("a", 1), "")
	requireUnknown(t, err)
	require.ErrorContains(t, err, "credentials were not accepted")
}

func TestReal_TerminatingNamespace(t *testing.T) {
	w := newRealWorld(t, kubetest.Shared(t))
	s := w.store(t)
	w.do(t, http.MethodDelete, "/api/v1/namespaces/"+w.namespace, nil, 200)
	var err error
	require.Eventually(t, func() bool {
		_, err = s.Write(t.Context(), record("a", 1), "")
		return err != nil
	}, waitFor, 10*time.Millisecond)
	require.ErrorIs(t, err, lease.ErrRefused)
	require.ErrorContains(t, err, "the namespace is being deleted")
}

// What the fault matrix does not do: a server that is killed while nothing changes, and a server that stands
// still.
func TestReal_KilledAndPaused(t *testing.T) {
	cluster := kubetest.New(t)
	w := newRealWorld(t, cluster)
	log := new(logtest.Log)
	cfg := w.config(w.kubeconfig)
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	cfg.RequestTimeout = kubernetes.DefaultConfig().RequestTimeout
	s := openStore(t, cfg)
	present := mustWrite(t, s, record("a", 1), "")
	seen := kubefake.Watching(t, s, cfg.Logger)
	require.Equal(t, present, next(t, seen))

	t.Run("restarted while other things moved on", func(t *testing.T) {
		cluster.KillAPIServer()
		require.NoError(t, cluster.StartAPIServer(t.Context()))
		nothing(t, seen, 3*time.Second) // long enough for the watch to be open again
		present = mustWrite(t, s, record("a", 3), present.Version)
		require.Equal(t, present, next(t, seen))
	})
	t.Run("paused", func(t *testing.T) {
		before := strings.Count(log.String(), "interrupted")
		require.NoError(t, cluster.PauseAPIServer())
		defer func() { _ = cluster.ContinueAPIServer() }() // the next part needs it, whatever fails here
		began := time.Now()
		_, err := s.Read(t.Context())
		require.Error(t, err, "the time of the request, or the dead connection, whichever is noticed first")
		require.Less(t, time.Since(began), 5*time.Second)
		require.Eventually(t, func() bool { return strings.Count(log.String(), "interrupted") > before },
			15*time.Second, 10*time.Millisecond)
		t.Logf("dead connection noticed after %s", time.Since(began).Round(time.Millisecond))
		require.NoError(t, cluster.ContinueAPIServer())
		began = time.Now()
		require.Eventually(t, func() bool { _, err := s.Read(t.Context()); return err == nil }, waitFor,
			10*time.Millisecond)
		present = mustWrite(t, s, record("a", 4), present.Version)
		require.Equal(t, present, next(t, seen))
		t.Logf("all well %s after it went on", time.Since(began).Round(time.Millisecond))
	})
}
