package kubernetes_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/kubefake"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
)

func TestStore_OneRequestEach(t *testing.T) {
	f := kubefake.New(t)
	s := newStore(t, f)
	f.Hook = func(_ http.ResponseWriter, r *http.Request) bool {
		assert.False(t, r.URL.Query().Has("resourceVersion"), "a read with one may be answered from a cache")
		return false
	}
	first := mustWrite(t, s, record("a", 1), "")
	mustWrite(t, s, record("b", 2), first.Version)
	_, err := s.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"update", "patch", "get"}, f.Made())
	require.Equal(t, "team-a/payments-sbr", s.String())
}

// The contract cannot show this on a real server: it has no field yet that the client does not know.
func TestStore_KeepsFieldsOfTomorrow(t *testing.T) {
	f := kubefake.New(t)
	s := newStore(t, f)
	f.Put(testName, object{"spec": object{"fieldOfTomorrow": "stays"}})
	snapshot, err := s.Read(t.Context())
	require.NoError(t, err)
	mustWrite(t, s, record("a", 1), snapshot.Version)
	require.Equal(t, "stays", f.Stored(testName)["spec"].(object)["fieldOfTomorrow"])
}

func TestStore_RefusesForeignVersions(t *testing.T) {
	f := kubefake.New(t)
	s := newStore(t, f)
	for _, prev := range []lease.Version{"7", "/7", "uid/", "/"} {
		_, err := s.Write(t.Context(), record("a", 1), prev)
		require.ErrorIs(t, err, lease.ErrRefused)
	}
	_, err := s.Write(t.Context(), lease.Record{Holder: "\xff"}, "")
	require.ErrorIs(t, err, lease.ErrRefused)
	require.Empty(t, f.Made())
}

func TestStore_UnreadableLease(t *testing.T) {
	f := kubefake.New(t)
	s := newStore(t, f)
	for value, want := range map[string]string{"junk": "neither JSON nor gzip",
		`{"v":9}`: "newer than this program"} {
		f.Put(testName, object{"metadata": object{"annotations": object{kubernetes.Annotation: value}},
			"spec": object{}})
		_, err := s.Read(t.Context())
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "lease team-a/payments-sbr")
		require.ErrorContains(t, err, "kubectl -n team-a annotate lease payments-sbr "+kubernetes.Annotation+"-")
		require.ErrorIs(t, err, lease.ErrRefused, "asking again at once is futile")
	}
}

// A webhook that changes what is stored must not look like success.
func TestStore_StoredSomethingElse(t *testing.T) {
	f := kubefake.New(t)
	s := newStore(t, f)
	first := mustWrite(t, s, record("a", 1), "")
	f.Hook = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch {
			kubefake.WriteJSON(w, 200, f.Stored(testName))
		}
		return r.Method == http.MethodPatch
	}
	_, err := s.Write(t.Context(), record("b", 2), first.Version)
	requireUnknown(t, err)
	require.ErrorContains(t, err, "stored something else")
}

func TestStore_LostResponseIsUnknown(t *testing.T) {
	f := kubefake.New(t)
	s := newStore(t, f)
	first := mustWrite(t, s, record("a", 1), "")
	f.With(func() { f.After = func(r *http.Request) bool { return r.Method == http.MethodPatch } })
	f.ResetCalls()
	_, err := s.Write(t.Context(), record("a", 2), first.Version)
	requireUnknown(t, err)
	require.Equal(t, 1, f.Count("patch"), "a repeated write would meet itself")
	read, err := s.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, "a-2", read.Record.Nonce, "committed all the same")
}

func TestStore_EachRequestEnds(t *testing.T) {
	f := kubefake.New(t)
	cfg := testConfig()
	cfg.RequestTimeout = 200 * time.Millisecond
	s := newStoreWith(t, f, cfg)
	var timeout atomic.Value
	f.With(func() {
		f.Hook = func(_ http.ResponseWriter, r *http.Request) bool {
			timeout.Store(r.URL.Query().Get("timeout"))
			<-r.Context().Done()
			return true
		}
	})
	began := time.Now()
	_, err := s.Write(t.Context(), record("a", 1), "")
	requireUnknown(t, err)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(began), 2*time.Second)
	server, err := time.ParseDuration(timeout.Load().(string))
	require.NoError(t, err)
	require.Less(t, server, cfg.RequestTimeout, "the server gives up first")
	require.Greater(t, server, cfg.RequestTimeout/2)

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = s.Read(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(began), 2*time.Second)
}

// A lease that does not exist is an answer; a server in trouble has none.
func TestStore_LastAnswer(t *testing.T) {
	f := kubefake.New(t)
	s := newStore(t, f)
	require.Zero(t, s.LastAnswer())
	f.Hook = func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "no", http.StatusServiceUnavailable)
		return true
	}
	_, err := s.Read(t.Context())
	require.Error(t, err)
	require.Zero(t, s.LastAnswer())
	f.Hook = nil
	before := time.Now()
	_, err = s.Read(t.Context())
	require.NoError(t, err)
	require.False(t, s.LastAnswer().Before(before))
}
