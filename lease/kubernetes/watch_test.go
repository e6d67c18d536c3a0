package kubernetes_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/kubefake"
	"github.com/serf-sbr/serf-sbr/internal/logtest"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
)

const quietFor = 150 * time.Millisecond

// newWatched returns a store whose watches retry quickly but poll only when told to.
func newWatched(t *testing.T, f *kubefake.API, poll time.Duration) (*kubernetes.Store, *logtest.Log) {
	log := new(logtest.Log)
	cfg := testConfig()
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	s := newStoreWith(t, f, cfg)
	s.Hurry(5*time.Second, poll)
	return s, log
}

func TestWatch_AbsentCreatedChangedDeletedCreated(t *testing.T) {
	f := kubefake.New(t)
	s, _ := newWatched(t, f, time.Hour)
	seen := watching(t, s)
	require.Equal(t, lease.Snapshot{}, next(t, seen))
	first := mustWrite(t, s, record("a", 1), "")
	require.Equal(t, first, next(t, seen))
	second := mustWrite(t, s, record("b", 2), first.Version)
	require.Equal(t, second, next(t, seen))
	f.Remove(testName)
	require.Equal(t, lease.Snapshot{}, next(t, seen))
	third := mustWrite(t, s, record("c", 1), "")
	require.Equal(t, third, next(t, seen))
	nothing(t, seen, quietFor)
	require.Equal(t, 1, f.Count("watch"))
	require.Equal(t, 1, f.Count("get"), "idle means idle")
}

func TestWatch_StartsWithThePresentOnce(t *testing.T) {
	f := kubefake.New(t)
	s, log := newWatched(t, f, time.Hour)
	present := mustWrite(t, s, record("a", 1), "")
	seen := watching(t, s)
	require.Equal(t, present, next(t, seen))
	nothing(t, seen, quietFor)
	require.Empty(t, log.String())
}

func TestWatch_ReopensWhereItWas(t *testing.T) {
	f := kubefake.New(t)
	f.Bookmarks = true
	var mu sync.Mutex
	var from []string
	f.Hook = func(_ http.ResponseWriter, r *http.Request) bool {
		if q := r.URL.Query(); q.Has("watch") {
			mu.Lock()
			defer mu.Unlock()
			from = append(from, q.Get("resourceVersion"))
		}
		return false
	}
	s, log := newWatched(t, f, time.Hour)
	first := mustWrite(t, s, record("a", 1), "")
	seen := watching(t, s)
	require.Equal(t, first, next(t, seen))
	f.Put("other", object{}) // moves the bookmark on
	f.DropStreams()
	require.Eventually(t, func() bool { return f.Count("watch") == 2 }, waitFor, time.Millisecond)
	second := mustWrite(t, s, record("b", 2), first.Version)
	require.Equal(t, second, next(t, seen))
	nothing(t, seen, quietFor)
	require.Empty(t, log.String(), "the end of a stream is nothing special")
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, from, 2)
	require.Empty(t, from[0])
	require.NotEmpty(t, from[1])
}

func TestWatch_ChangesWhileDisconnected(t *testing.T) {
	f := kubefake.New(t)
	s, _ := newWatched(t, f, time.Hour)
	first := mustWrite(t, s, record("a", 1), "")
	seen := watching(t, s)
	require.Equal(t, first, next(t, seen))

	away := func(change func()) {
		f.With(func() { f.Hook = unavailable })
		f.DropStreams()
		time.Sleep(20 * time.Millisecond)
		change()
		f.With(func() { f.Hook = nil })
	}
	away(func() { f.Put(testName, object{"spec": object{"holderIdentity": "b"}}) })
	require.Equal(t, "b", next(t, seen).Record.Holder)
	away(func() { f.Remove(testName) })
	require.Equal(t, lease.Snapshot{}, next(t, seen))
	away(func() {
		f.Put(testName, object{"spec": object{"holderIdentity": "c"}})
		f.Put(testName, object{"spec": object{"holderIdentity": "d"}})
	})
	require.Eventually(t, func() bool { return next(t, seen).Record.Holder == "d" }, waitFor, time.Millisecond)
}

func unavailable(w http.ResponseWriter, _ *http.Request) bool {
	w.Header().Set("Retry-After", "1")
	code, body := kubefake.Failure(503, "ServiceUnavailable", "", "", "not now")
	kubefake.WriteJSON(w, code, body)
	return true
}

func TestWatch_ExpiredVersion(t *testing.T) {
	f := kubefake.New(t)
	s, log := newWatched(t, f, time.Hour)
	first := mustWrite(t, s, record("a", 1), "")
	seen := watching(t, s)
	require.Equal(t, first, next(t, seen))
	f.Put("other", object{})
	f.With(func() { f.Compacted = f.Revision })
	f.DropStreams()
	require.Eventually(t, func() bool { return f.Count("watch") == 3 }, waitFor, time.Millisecond, "once too old, then afresh")
	second := mustWrite(t, s, record("b", 2), first.Version)
	require.Equal(t, second, next(t, seen))
	nothing(t, seen, quietFor)
	require.Equal(t, 3, f.Count("watch"))
	require.Contains(t, log.String(), "too old resource version")
}

// The same as an HTTP status, as some proxies of the API (and old versions) answer.
func TestWatch_GoneBeforeItOpens(t *testing.T) {
	f := kubefake.New(t)
	s, _ := newWatched(t, f, time.Hour)
	first := mustWrite(t, s, record("a", 1), "")
	f.Hook = func(w http.ResponseWriter, r *http.Request) bool {
		gone := r.URL.Query().Get("resourceVersion") != ""
		if gone {
			code, body := kubefake.Failure(410, "Gone", "", "", "gone")
			kubefake.WriteJSON(w, code, body)
		}
		return gone
	}
	seen := watching(t, s)
	require.Equal(t, first, next(t, seen))
	f.DropStreams()
	require.Eventually(t, func() bool { return f.Count("watch") == 3 }, waitFor, time.Millisecond)
	second := mustWrite(t, s, record("b", 2), first.Version)
	require.Equal(t, second, next(t, seen))
}

// After a restored backup the store is younger than the watch: the stream opens at a version of the future and stays silent.
func TestWatch_RestoredBackup(t *testing.T) {
	for name, c := range map[string]struct {
		poll    time.Duration
		restore func(f *kubefake.API)
		holder  string
	}{
		"older state": {time.Hour, func(f *kubefake.API) { f.Put(testName, object{"spec": object{"holderIdentity": "old"}}) }, "old"},
		"no lease":    {time.Hour, func(*kubefake.API) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := kubefake.New(t)
			s, _ := newWatched(t, f, c.poll)
			f.With(func() { f.Revision = 5000 })
			first := mustWrite(t, s, record("a", 1), "")
			seen := watching(t, s)
			require.Equal(t, first, next(t, seen))
			f.With(func() { f.Revision, f.Leases, f.Events = 200, map[string]object{}, nil })
			c.restore(f)
			f.DropStreams()
			require.Equal(t, c.holder, next(t, seen).Record.Holder)
			requireHears(t, f, seen, 3)
		})
	}
}

// The same with a lease that was not changed since the backup: only what comes later can show it.
func TestWatch_RestoredBackupOfTheSameState(t *testing.T) {
	for name, c := range map[string]struct {
		poll      time.Duration
		bookmarks bool
	}{
		"found by a bookmark": {time.Hour, true},
		"found by a read":     {50 * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := kubefake.New(t)
			f.Bookmarks = true
			s, _ := newWatched(t, f, c.poll)
			first := mustWrite(t, s, record("a", 1), "")
			f.With(func() { f.Revision = 5000 })
			seen := watching(t, s)
			require.Equal(t, first, next(t, seen))
			time.Sleep(50 * time.Millisecond) // for the bookmark
			f.With(func() { f.Revision, f.Events, f.Bookmarks = 3000, nil, c.bookmarks })
			f.DropStreams()
			require.Eventually(t, func() bool { return f.Count("watch") >= 2 }, waitFor, time.Millisecond)
			if !c.bookmarks {
				f.Put(testName, object{"spec": object{"holderIdentity": "late"}})
				require.Equal(t, "late", next(t, seen).Record.Holder)
			}
			requireHears(t, f, seen, 3)
		})
	}
}

// requireHears waits for the stream that was opened afresh, and shows that it does.
func requireHears(t *testing.T, f *kubefake.API, seen <-chan lease.Snapshot, streams int) {
	t.Helper()
	require.Eventually(t, func() bool { return f.Count("watch") >= streams }, waitFor, time.Millisecond)
	f.Put(testName, object{"spec": object{"holderIdentity": "new"}})
	require.Equal(t, "new", next(t, seen).Record.Holder)
}

// Client-go would obey the server and keep still for a minute.
func TestWatch_NoHiddenRetries(t *testing.T) {
	f := kubefake.New(t)
	s, _ := newWatched(t, f, time.Hour)
	var mu sync.Mutex
	refused := false
	f.Hook = func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if refused || !r.URL.Query().Has("watch") {
			return false
		}
		refused = true
		w.Header().Set("Retry-After", "60")
		code, body := kubefake.Failure(429, "TooManyRequests", "", "", "later")
		kubefake.WriteJSON(w, code, body)
		return true
	}
	watching(t, s)
	require.Eventually(t, func() bool { return f.Count("watch") == 2 }, time.Second, time.Millisecond)
}

func TestWatch_OpeningHangs(t *testing.T) {
	f := kubefake.New(t)
	var mu sync.Mutex
	hang := true
	f.Hook = func(_ http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if !r.URL.Query().Has("watch") || !hang {
			return false
		}
		mu.Unlock()
		<-r.Context().Done()
		mu.Lock()
		return true
	}
	s, log := newWatched(t, f, time.Hour)
	s.Hurry(300*time.Millisecond, time.Hour)
	first := mustWrite(t, s, record("a", 1), "")
	seen := watching(t, s)
	require.Equal(t, first, next(t, seen), "the read beside it works")
	require.Eventually(t, func() bool { return f.Count("watch") > 1 }, waitFor, time.Millisecond)
	mu.Lock()
	hang = false
	mu.Unlock()
	second := mustWrite(t, s, record("b", 2), first.Version)
	require.Equal(t, second, next(t, seen))
	require.Contains(t, log.String(), "did not open in time")
	require.Eventually(t, func() bool { return bytes.Contains([]byte(log.String()), []byte("watching the lease again")) }, waitFor, time.Millisecond)
}

func TestWatch_Forbidden(t *testing.T) {
	f := kubefake.New(t)
	f.Forbidden["watch"] = true
	s, _ := newWatched(t, f, time.Hour)
	err := s.Watch(t.Context(), func(lease.Snapshot) { t.Error("called") })
	require.ErrorIs(t, err, lease.ErrRefused)
	require.ErrorContains(t, err, "must allow get, watch")
	require.Equal(t, 1, f.Count("watch"))
}

func TestWatch_ForbiddenLater(t *testing.T) {
	f := kubefake.New(t)
	s, log := newWatched(t, f, 200*time.Millisecond)
	first := mustWrite(t, s, record("a", 1), "")
	seen := watching(t, s)
	require.Equal(t, first, next(t, seen))
	f.With(func() { f.Forbidden["watch"] = true })
	f.DropStreams()
	second := mustWrite(t, s, record("b", 2), first.Version)
	require.Equal(t, second, next(t, seen), "read instead")
	require.Eventually(t, func() bool { return f.Count("watch") > 2 }, waitFor, time.Millisecond)
	f.With(func() { delete(f.Forbidden, "watch") })
	third := mustWrite(t, s, record("c", 3), second.Version)
	require.Equal(t, third, next(t, seen))
	require.Contains(t, log.String(), `cannot watch`)
}

func TestWatch_UnreadableStateIsSkipped(t *testing.T) {
	f := kubefake.New(t)
	s, log := newWatched(t, f, 20*time.Millisecond)
	f.Put(testName, object{"metadata": object{"annotations": object{kubernetes.Annotation: "junk"}}, "spec": object{}})
	seen := watching(t, s)
	nothing(t, seen, quietFor)
	require.Equal(t, 1, f.Count("watch"), "not a reason to open again")
	require.Equal(t, 1, bytes.Count([]byte(log.String()), []byte("skipped a state")))
	f.Put(testName, object{"spec": object{"holderIdentity": "a"}})
	require.Equal(t, "a", next(t, seen).Record.Holder)
}

// An event that a read has overtaken must not bring the old state back.
func TestWatch_NothingOlderThanARead(t *testing.T) {
	f := kubefake.New(t)
	s, _ := newWatched(t, f, time.Hour)
	first := mustWrite(t, s, record("a", 1), "")
	var once sync.Once
	f.Hook = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && !r.URL.Query().Has("watch") {
			// The stream is open: it has the first state in its pipe.
			once.Do(func() { f.Put(testName, object{"spec": object{"holderIdentity": "b"}}) })
		}
		return false
	}
	seen := watching(t, s)
	require.Equal(t, "b", next(t, seen).Record.Holder)
	nothing(t, seen, quietFor)
	require.NotEqual(t, "", string(first.Version))
}

func TestWatch_NeverEndsOnAnOldState(t *testing.T) {
	f := kubefake.New(t)
	s, _ := newWatched(t, f, 5*time.Millisecond)
	seen := watching(t, s)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(3 * time.Millisecond):
				f.DropStreams()
			}
		}
	})
	for i := range 300 {
		if i%50 == 20 {
			f.Remove(testName)
		}
		f.Put(testName, object{"spec": object{"holderIdentity": strconv.Itoa(i)}})
		time.Sleep(time.Millisecond)
	}
	close(stop)
	wg.Wait()
	last := -1
	for last != 299 {
		if holder := next(t, seen).Record.Holder; holder != "" {
			n, err := strconv.Atoi(holder)
			require.NoError(t, err)
			require.Greater(t, n, last, "went back")
			last = n
		}
	}
	nothing(t, seen, quietFor)
}

func TestWatch_Several(t *testing.T) {
	f := kubefake.New(t)
	s, _ := newWatched(t, f, time.Hour)
	a, b := watching(t, s), watching(t, s)
	require.Equal(t, lease.Snapshot{}, next(t, a))
	require.Equal(t, lease.Snapshot{}, next(t, b))
	first := mustWrite(t, s, record("a", 1), "")
	require.Equal(t, first, next(t, a))
	require.Equal(t, first, next(t, b))
}
