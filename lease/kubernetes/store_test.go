package kubernetes_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
)

func TestStore_OneRequestEach(t *testing.T) {
	f := newFakeAPI(t)
	s := newStore(t, f)
	first := mustWrite(t, s, record("a", 1), "")
	mustWrite(t, s, record("b", 2), first.Version)
	_, err := s.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"update", "patch", "get"}, f.made())
	require.Equal(t, "team-a/payments-sbr", s.String())
}

// The contract cannot show this on a real server: it has no field yet that the client does not know.
func TestStore_KeepsFieldsOfTomorrow(t *testing.T) {
	f := newFakeAPI(t)
	s := newStore(t, f)
	f.put(testName, object{"spec": object{"fieldOfTomorrow": "stays"}})
	snapshot, err := s.Read(t.Context())
	require.NoError(t, err)
	mustWrite(t, s, record("a", 1), snapshot.Version)
	require.Equal(t, "stays", f.stored(testName)["spec"].(object)["fieldOfTomorrow"])
}

func TestStore_RefusesForeignVersions(t *testing.T) {
	f := newFakeAPI(t)
	s := newStore(t, f)
	for _, prev := range []lease.Version{"7", "/7", "uid/", "/"} {
		_, err := s.Write(t.Context(), record("a", 1), prev)
		require.ErrorIs(t, err, lease.ErrRefused)
	}
	_, err := s.Write(t.Context(), lease.Record{Holder: "\xff"}, "")
	require.ErrorIs(t, err, lease.ErrRefused)
	require.Empty(t, f.made())
}

func TestStore_TooLarge(t *testing.T) {
	f := newFakeAPI(t)
	s := newStore(t, f)
	huge := record("a", 1)
	huge.Verdict.Reason = randomText(300 << 10)
	_, err := s.Write(t.Context(), huge, "")
	require.ErrorIs(t, err, lease.ErrTooLarge)
	require.ErrorIs(t, err, lease.ErrRefused)
	require.Empty(t, f.made(), "refused before the server would")
}

// race lets n writers write at once and returns what the only winner has written.
func race(t *testing.T, n int, prev lease.Version, store func(int) lease.Store) lease.Snapshot {
	t.Helper()
	var wg sync.WaitGroup
	results := make([]lease.Version, n)
	errs := make([]error, n)
	start := make(chan struct{})
	for i := range n {
		s := store(i)
		wg.Go(func() {
			<-start
			results[i], errs[i] = s.Write(t.Context(), record("member-"+string(rune('A'+i)), 1), prev)
		})
	}
	close(start)
	wg.Wait()
	won := -1
	for i, err := range errs {
		if err == nil {
			require.Equal(t, -1, won, "a second winner")
			won = i
			continue
		}
		require.ErrorIs(t, err, lease.ErrConflict)
	}
	require.NotEqual(t, -1, won, "no winner")
	read, err := store(won).Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, results[won], read.Version)
	return read
}

func TestStore_UnreadableLease(t *testing.T) {
	f := newFakeAPI(t)
	s := newStore(t, f)
	for value, want := range map[string]string{"junk": "neither JSON nor gzip", `{"v":9}`: "newer than this program"} {
		f.put(testName, object{"metadata": object{"annotations": object{kubernetes.Annotation: value}}, "spec": object{}})
		_, err := s.Read(t.Context())
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "lease team-a/payments-sbr")
		require.ErrorContains(t, err, "kubectl -n team-a annotate lease payments-sbr "+kubernetes.Annotation+"-")
		require.ErrorIs(t, err, lease.ErrRefused, "asking again at once is futile")
	}
}

// A webhook that changes what is stored must not look like success.
func TestStore_StoredSomethingElse(t *testing.T) {
	f := newFakeAPI(t)
	s := newStore(t, f)
	first := mustWrite(t, s, record("a", 1), "")
	f.hook = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch {
			writeJSON(w, 200, f.stored(testName))
		}
		return r.Method == http.MethodPatch
	}
	_, err := s.Write(t.Context(), record("b", 2), first.Version)
	requireUnknown(t, err)
	require.ErrorContains(t, err, "stored something else")
}

func TestStore_LostResponseIsUnknown(t *testing.T) {
	f := newFakeAPI(t)
	s := newStore(t, f)
	first := mustWrite(t, s, record("a", 1), "")
	f.with(func() { f.after = func(r *http.Request) bool { return r.Method == http.MethodPatch } })
	f.resetCalls()
	_, err := s.Write(t.Context(), record("a", 2), first.Version)
	requireUnknown(t, err)
	require.Equal(t, 1, f.count("patch"), "a repeated write would meet itself")
	read, err := s.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, "a-2", read.Record.Nonce, "committed all the same")
}

func TestStore_EachRequestEnds(t *testing.T) {
	f := newFakeAPI(t)
	cfg := testConfig()
	cfg.RequestTimeout = 200 * time.Millisecond
	s := newStoreWith(t, f, cfg)
	var timeout atomic.Value
	f.with(func() {
		f.hook = func(_ http.ResponseWriter, r *http.Request) bool {
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

func TestStore_QuorumRead(t *testing.T) {
	f := newFakeAPI(t)
	s := newStore(t, f)
	f.with(func() {
		f.hook = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Has("resourceVersion") {
				t.Error("a read with a resourceVersion may be answered from a cache")
			}
			return false
		}
	})
	_, err := s.Read(t.Context())
	require.NoError(t, err)
}

func randomText(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(randomID())
	}
	return b.String()[:n]
}
