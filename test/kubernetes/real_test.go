package kubernetes_test

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/logtest"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// The tests of this file are about what only a real API server has: rights, a dying process, a stalled etcd.

func TestReal_PreflightNamesEachMissingRight(t *testing.T) {
	w := newRealWorld(t, kubetest.Shared(t))
	s := w.store(t)
	all := []string{"get", "watch", "update", "patch", "create"}
	for _, c := range []struct{ missing, want string }{
		{"get", "cannot get"},
		{"watch", "cannot watch"},
		{"update", "cannot update"},
		{"create", "cannot create"},
		{"patch", "cannot patch"},
	} {
		w.grant(t, slices.DeleteFunc(slices.Clone(all), func(v string) bool { return v == c.missing }))
		var err error
		// The authoriser learns of it through a watch.
		require.Eventually(t, func() bool {
			err = s.Preflight(t.Context())
			return err != nil && strings.Count(err.Error(), "\n") == 0 && strings.Contains(err.Error(), c.want)
		}, waitFor, 20*time.Millisecond, "%s: %v", c.want, &err)
		require.ErrorContains(t, err, "a Role in namespace "+w.namespace+" must allow")
	}
	w.grant(t, nil)
	require.Eventually(t, func() bool {
		err := s.Preflight(t.Context())
		return err != nil && strings.Count(err.Error(), "\n") == 3
	}, waitFor, 20*time.Millisecond)
	_, err := s.Read(t.Context())
	require.ErrorContains(t, err, "must allow")
	_, err = s.Write(t.Context(), record("a", 1), "")
	require.ErrorIs(t, err, lease.ErrRefused)
	require.ErrorIs(t, s.Watch(t.Context(), func(lease.Snapshot) {}), lease.ErrRefused)

	// A lease created beforehand needs no more than these.
	w.apply(t, object{"spec": object{}})
	w.grant(t, []string{"get", "watch", "patch"})
	require.Eventually(t, func() bool { return s.Preflight(t.Context()) == nil }, waitFor, 20*time.Millisecond)
	present, err := s.Read(t.Context())
	require.NoError(t, err)
	mustWrite(t, s, record("a", 1), present.Version)
}

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

func TestReal_WatchLatency(t *testing.T) {
	w := newRealWorld(t, kubetest.Shared(t))
	writer := w.store(t)
	seen := make(chan time.Time, 1)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	reader := w.store(t)
	go func() {
		done <- lease.Follow(ctx, reader, lease.Pace{}, nil, func(lease.Snapshot) { seen <- time.Now() })
	}()
	defer func() { cancel(); <-done }()
	<-seen // absent
	var after []time.Duration
	prev := lease.Version("")
	for i := range 100 {
		began := time.Now()
		prev = mustWrite(t, writer, record("a", uint64(i)), prev).Version
		after = append(after, (<-seen).Sub(began))
	}
	slices.Sort(after)
	t.Logf("write sent -> watcher told: p50 %s, p90 %s, max %s", after[50], after[90], after[99])
	require.Less(t, after[50], time.Second)
}

func TestReal_LostResponses(t *testing.T) {
	w := newRealWorld(t, kubetest.Shared(t))
	proxy, err := kubetest.NewProxy(w.kubeconfig)
	require.NoError(t, err)
	defer func() { require.NoError(t, proxy.Close()) }()
	s := openKubeconfig(t, proxy.Kubeconfig(), w.namespace)
	path := w.leases() + "/" + testName
	lose := func(verb string, fault kubetest.Fault) {
		proxy.ResetCounts()
		proxy.SetFault(func(r *http.Request) kubetest.Fault {
			if kubetest.Verb(r) == verb {
				return fault
			}
			return kubetest.Fault{}
		})
	}
	// The write takes place, the answer is lost. Repeated by somebody it would conflict with itself.
	lose("PUT", kubetest.Fault{Kind: kubetest.FaultDropResponse})
	_, err = s.Write(t.Context(), record("a", 1), "")
	requireUnknown(t, err)
	require.Equal(t, 1, proxy.Count("PUT", path))
	first, err := s.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, record("a", 1), first.Record)

	lose("PATCH", kubetest.Fault{Kind: kubetest.FaultDropResponse})
	_, err = s.Write(t.Context(), record("a", 2), first.Version)
	requireUnknown(t, err)
	require.Equal(t, 1, proxy.Count("PATCH", path))
	proxy.SetFault(nil)
	second, err := s.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, record("a", 2), second.Record)

	// The write never takes place: to the client this is the same.
	lose("PATCH", kubetest.Fault{Kind: kubetest.FaultDropRequest})
	_, err = s.Write(t.Context(), record("a", 3), second.Version)
	requireUnknown(t, err)
	require.Equal(t, 1, proxy.Count("PATCH", path))

	lose("PATCH", kubetest.Fault{Kind: kubetest.FaultStatus, Status: 429, RetryAfter: "1"})
	began := time.Now()
	_, err = s.Write(t.Context(), record("a", 3), second.Version)
	requireUnknown(t, err)
	require.Equal(t, 1, proxy.Count("PATCH", path))
	require.Less(t, time.Since(began), time.Second)

	proxy.SetFault(nil)
	proxy.ResetCounts()
	mustWrite(t, s, record("a", 3), second.Version)
	require.Equal(t, 1, proxy.Count("", ""), "a write with a known version is one request")
}

func TestReal_KilledPausedAndStalled(t *testing.T) {
	cluster := kubetest.New(t)
	w := newRealWorld(t, cluster)
	log := new(logtest.Log)
	cfg := testConfig()
	cfg.Kubeconfig, cfg.Namespace = w.kubeconfig, w.namespace
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	cfg.RequestTimeout = kubernetes.DefaultConfig().RequestTimeout
	s, err := kubernetes.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	present := mustWrite(t, s, record("a", 1), "")
	seen := watchingTo(t, s, cfg.Logger)
	require.Equal(t, present, next(t, seen))

	t.Run("killed and restarted", func(t *testing.T) {
		cluster.KillAPIServer()
		began := time.Now()
		_, err := s.Write(t.Context(), record("a", 2), present.Version)
		requireUnknown(t, err)
		t.Logf("write to a dead server: %s after %s", err, time.Since(began).Round(time.Millisecond))
		require.NoError(t, cluster.StartAPIServer(t.Context()))
		up := time.Now()
		present = mustWrite(t, s, record("a", 2), present.Version)
		require.Equal(t, present, nextLate(t, seen))
		t.Logf("watch back %s after the API server", time.Since(up).Round(time.Millisecond))
	})
	t.Run("restarted while other things moved on", func(t *testing.T) {
		cluster.KillAPIServer()
		require.NoError(t, cluster.StartAPIServer(t.Context()))
		nothing(t, seen, 3*time.Second) // long enough for the watch to be open again
		present = mustWrite(t, s, record("a", 3), present.Version)
		require.Equal(t, present, nextLate(t, seen))
	})
	t.Run("paused", func(t *testing.T) {
		before := strings.Count(log.String(), "interrupted")
		require.NoError(t, cluster.PauseAPIServer())
		defer func() { _ = cluster.ContinueAPIServer() }() // the next part needs it, whatever fails here
		began := time.Now()
		_, err := s.Read(t.Context())
		require.Error(t, err, "the time of the request, or the dead connection, whichever is noticed first")
		require.Less(t, time.Since(began), 5*time.Second)
		require.Eventually(t, func() bool { return strings.Count(log.String(), "interrupted") > before }, 15*time.Second, 10*time.Millisecond)
		t.Logf("dead connection noticed after %s", time.Since(began).Round(time.Millisecond))
		require.NoError(t, cluster.ContinueAPIServer())
		began = time.Now()
		require.Eventually(t, func() bool { _, err := s.Read(t.Context()); return err == nil }, waitFor, 10*time.Millisecond)
		present = mustWrite(t, s, record("a", 4), present.Version)
		require.Equal(t, present, nextLate(t, seen))
		t.Logf("all well %s after it went on", time.Since(began).Round(time.Millisecond))
	})
	t.Run("etcd stalled", func(t *testing.T) {
		require.NoError(t, cluster.PauseEtcd())
		began := time.Now()
		_, err := s.Read(t.Context())
		require.Error(t, err, "not an answer from the cache")
		t.Logf("read: %s after %s", err, time.Since(began).Round(time.Millisecond))
		began = time.Now()
		_, err = s.Write(t.Context(), record("a", 5), present.Version)
		requireUnknown(t, err)
		t.Logf("write: %s after %s", err, time.Since(began).Round(time.Millisecond))
		require.Less(t, time.Since(began), 5*time.Second)
		require.NoError(t, cluster.ContinueEtcd())
		require.NoError(t, cluster.WaitReady(t.Context()))
		// Committed or not: only a write on the same version settles it.
		if _, err = s.Write(t.Context(), record("b", 5), present.Version); err != nil {
			require.ErrorIs(t, err, lease.ErrConflict)
		}
		settled, readErr := s.Read(t.Context())
		require.NoError(t, readErr)
		if err != nil {
			require.Equal(t, "a-5", settled.Record.Nonce)
		}
		require.Equal(t, settled, nextLate(t, seen))
	})
}

// nextLate allows for the pauses of a watch that has lost its server.
func nextLate(t *testing.T, seen <-chan lease.Snapshot) lease.Snapshot {
	t.Helper()
	select {
	case snapshot := <-seen:
		return snapshot
	case <-time.After(30 * time.Second):
		require.FailNow(t, "the watch brought nothing")
		return lease.Snapshot{}
	}
}
