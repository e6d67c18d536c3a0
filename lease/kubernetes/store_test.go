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

func TestStore_CreateUpdateRead(t *testing.T) {
	f := newFakeAPI(t)
	s := newStore(t, f)
	absent, err := s.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, lease.Snapshot{}, absent)

	f.resetCalls()
	first := mustWrite(t, s, record("a", 1), "")
	require.Equal(t, record("a", 1), first.Record)
	second := mustWrite(t, s, record("b", 2), first.Version)
	require.NotEqual(t, first.Version, second.Version)
	require.Equal(t, []string{"update", "patch"}, f.made(), "one request for each write")

	read, err := s.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, second, read)
	require.Equal(t, "team-a/payments-sbr", s.String())
}

func TestStore_WriteClearsWhatIsGone(t *testing.T) {
	f := newFakeAPI(t)
	s := newStore(t, f)
	held := mustWrite(t, s, record("a", 1), "")
	free := lease.Record{Token: 2, Nonce: "released", Verdict: record("a", 1).Verdict}
	require.Equal(t, free, mustWrite(t, s, free, held.Version).Record)
	spec := f.stored(testName)["spec"].(object)
	require.Equal(t, object{"holderIdentity": "", "leaseTransitions": 2.0}, spec)
}

func TestStore_EqualWritesMoveTheVersion(t *testing.T) {
	s := newStore(t, newFakeAPI(t))
	first := mustWrite(t, s, record("a", 1), "")
	second := mustWrite(t, s, record("a", 1), first.Version)
	require.NotEqual(t, first.Version, second.Version)
	_, err := s.Write(t.Context(), record("a", 1), first.Version)
	require.ErrorIs(t, err, lease.ErrConflict)
}

func TestStore_KeepsWhatIsNotOurs(t *testing.T) {
	f := newFakeAPI(t)
	s := newStore(t, f)
	f.put(testName, object{
		"metadata": object{"labels": object{"team": "a"}, "annotations": object{"note": "mine"}, "finalizers": []any{"x/y"}},
		"spec":     object{"holderIdentity": "kubectl", "fieldOfTomorrow": "stays"},
	})
	snapshot, err := s.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, lease.Record{Holder: "kubectl"}, snapshot.Record)
	mustWrite(t, s, record("a", 1), snapshot.Version)

	stored := f.stored(testName)
	metadata := stored["metadata"].(object)
	require.Equal(t, object{"team": "a"}, metadata["labels"])
	require.Equal(t, "mine", metadata["annotations"].(object)["note"])
	require.Equal(t, []any{"x/y"}, metadata["finalizers"])
	require.Equal(t, "stays", stored["spec"].(object)["fieldOfTomorrow"])
}

func TestStore_Conflicts(t *testing.T) {
	f := newFakeAPI(t)
	s := newStore(t, f)
	first := mustWrite(t, s, record("a", 1), "")
	conflict := func(prev lease.Version, why string) {
		t.Helper()
		before := f.stored(testName)
		_, err := s.Write(t.Context(), record("b", 2), prev)
		require.ErrorIs(t, err, lease.ErrConflict, why)
		require.NotErrorIs(t, err, lease.ErrRefused)
		require.Equal(t, before, f.stored(testName))
	}
	conflict("", "exists already")
	second := mustWrite(t, s, record("a", 2), first.Version)
	conflict(first.Version, "stale")

	f.remove(testName)
	conflict(second.Version, "deleted")
	mustWrite(t, s, record("c", 1), "")
	conflict(second.Version, "deleted and created again")

	uid, _, _ := strings.Cut(string(first.Version), "/")
	current := f.stored(testName)["metadata"].(object)["resourceVersion"].(string)
	conflict(lease.Version(uid+"/"+current), "another object that has the same version, after a restored backup")
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

	// The annotations of others leave too little room.
	f.put(testName, object{"metadata": object{"annotations": object{"other": strings.Repeat("x", 250<<10)}}, "spec": object{}})
	snapshot, err := s.Read(t.Context())
	require.NoError(t, err)
	large := record("a", 1)
	large.Verdict.Reason = randomText(20 << 10)
	_, err = s.Write(t.Context(), large, snapshot.Version)
	require.ErrorIs(t, err, lease.ErrTooLarge)
	require.ErrorIs(t, err, lease.ErrRefused)
}

func TestStore_RacingWritersHaveOneWinner(t *testing.T) {
	f := newFakeAPI(t)
	s := newStore(t, f)
	prev := lease.Version("")
	for range 5 {
		winner := race(t, 30, prev, func(int) lease.Store { return s })
		prev = winner.Version
	}
}

// race lets n writers write at once and returns what the only winner has written.
func race(t *testing.T, n int, prev lease.Version, store func(int) lease.Store) lease.Snapshot {
	t.Helper()
	var wg sync.WaitGroup
	results := make([]lease.Snapshot, n)
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
	require.Equal(t, results[won], read)
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
		require.NotErrorIs(t, err, lease.ErrRefused)
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

