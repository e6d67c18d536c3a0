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

	"github.com/serf-sbr/serf-sbr/internal/logtest"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
)

const quietFor = 150 * time.Millisecond

// newWatched returns a store whose watches retry quickly but poll only when told to.
func newWatched(t *testing.T, f *fakeAPI, poll time.Duration) (*kubernetes.Store, *logtest.Log) {
	log := new(logtest.Log)
	cfg := testConfig()
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	s := newStoreWith(t, f, cfg)
	s.Hurry(5*time.Second, poll)
	return s, log
}

func TestWatch_AbsentCreatedChangedDeletedCreated(t *testing.T) {
	f := newFakeAPI(t)
	s, _ := newWatched(t, f, time.Hour)
	seen := watching(t, s)
	require.Equal(t, lease.Snapshot{}, next(t, seen))
	first := mustWrite(t, s, record("a", 1), "")
	require.Equal(t, first, next(t, seen))
	second := mustWrite(t, s, record("b", 2), first.Version)
	require.Equal(t, second, next(t, seen))
	f.remove(testName)
	require.Equal(t, lease.Snapshot{}, next(t, seen))
	third := mustWrite(t, s, record("c", 1), "")
	require.Equal(t, third, next(t, seen))
	nothing(t, seen, quietFor)
	require.Equal(t, 1, f.count("watch"))
	require.Equal(t, 1, f.count("get"), "idle means idle")
}

func TestWatch_StartsWithThePresentOnce(t *testing.T) {
	f := newFakeAPI(t)
	s, log := newWatched(t, f, time.Hour)
	present := mustWrite(t, s, record("a", 1), "")
	seen := watching(t, s)
	require.Equal(t, present, next(t, seen))
	nothing(t, seen, quietFor)
	require.Empty(t, log.String())
}

func TestWatch_ReopensWhereItWas(t *testing.T) {
	f := newFakeAPI(t)
	f.bookmarks = true
	var mu sync.Mutex
	var from []string
	f.hook = func(_ http.ResponseWriter, r *http.Request) bool {
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
	f.put("other", object{}) // moves the bookmark on
	f.dropStreams()
	require.Eventually(t, func() bool { return f.count("watch") == 2 }, waitFor, time.Millisecond)
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
	f := newFakeAPI(t)
	s, _ := newWatched(t, f, time.Hour)
	first := mustWrite(t, s, record("a", 1), "")
	seen := watching(t, s)
	require.Equal(t, first, next(t, seen))

	away := func(change func()) {
		f.with(func() { f.hook = unavailable })
		f.dropStreams()
		time.Sleep(20 * time.Millisecond)
		change()
		f.with(func() { f.hook = nil })
	}
	away(func() { f.put(testName, object{"spec": object{"holderIdentity": "b"}}) })
	require.Equal(t, "b", next(t, seen).Record.Holder)
	away(func() { f.remove(testName) })
	require.Equal(t, lease.Snapshot{}, next(t, seen))
	away(func() {
		f.put(testName, object{"spec": object{"holderIdentity": "c"}})
		f.put(testName, object{"spec": object{"holderIdentity": "d"}})
	})
	require.Eventually(t, func() bool { return next(t, seen).Record.Holder == "d" }, waitFor, time.Millisecond)
}

func unavailable(w http.ResponseWriter, _ *http.Request) bool {
	w.Header().Set("Retry-After", "1")
	code, body := failure(503, "ServiceUnavailable", "", "", "not now")
	writeJSON(w, code, body)
	return true
}

func TestWatch_ExpiredVersion(t *testing.T) {
	f := newFakeAPI(t)
	s, log := newWatched(t, f, time.Hour)
	first := mustWrite(t, s, record("a", 1), "")
	seen := watching(t, s)
	require.Equal(t, first, next(t, seen))
	f.put("other", object{})
	f.with(func() { f.compacted = f.revision })
	f.dropStreams()
	require.Eventually(t, func() bool { return f.count("watch") == 3 }, waitFor, time.Millisecond, "once too old, then afresh")
	second := mustWrite(t, s, record("b", 2), first.Version)
	require.Equal(t, second, next(t, seen))
	nothing(t, seen, quietFor)
	require.Equal(t, 3, f.count("watch"))
	require.Contains(t, log.String(), "too old resource version")
}

// The same as an HTTP status, as some proxies of the API (and old versions) answer.
func TestWatch_GoneBeforeItOpens(t *testing.T) {
	f := newFakeAPI(t)
	s, _ := newWatched(t, f, time.Hour)
	first := mustWrite(t, s, record("a", 1), "")
	f.hook = func(w http.ResponseWriter, r *http.Request) bool {
		gone := r.URL.Query().Get("resourceVersion") != ""
		if gone {
			code, body := failure(410, "Gone", "", "", "gone")
			writeJSON(w, code, body)
		}
		return gone
	}
	seen := watching(t, s)
	require.Equal(t, first, next(t, seen))
	f.dropStreams()
	require.Eventually(t, func() bool { return f.count("watch") == 3 }, waitFor, time.Millisecond)
	second := mustWrite(t, s, record("b", 2), first.Version)
	require.Equal(t, second, next(t, seen))
}

// After a restored backup the store is younger than the watch: the stream opens at a version of the future and stays silent.
func TestWatch_RestoredBackup(t *testing.T) {
	for name, c := range map[string]struct {
		poll    time.Duration
		restore func(f *fakeAPI)
		holder  string
	}{
		"older state": {time.Hour, func(f *fakeAPI) { f.put(testName, object{"spec": object{"holderIdentity": "old"}}) }, "old"},
		"no lease":    {time.Hour, func(*fakeAPI) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeAPI(t)
			s, _ := newWatched(t, f, c.poll)
			f.with(func() { f.revision = 5000 })
			first := mustWrite(t, s, record("a", 1), "")
			seen := watching(t, s)
			require.Equal(t, first, next(t, seen))
			f.with(func() { f.revision, f.leases, f.events = 200, map[string]object{}, nil })
			c.restore(f)
			f.dropStreams()
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
			f := newFakeAPI(t)
			f.bookmarks = true
			s, _ := newWatched(t, f, c.poll)
			first := mustWrite(t, s, record("a", 1), "")
			f.with(func() { f.revision = 5000 })
			seen := watching(t, s)
			require.Equal(t, first, next(t, seen))
			time.Sleep(50 * time.Millisecond) // for the bookmark
			f.with(func() { f.revision, f.events, f.bookmarks = 3000, nil, c.bookmarks })
			f.dropStreams()
			require.Eventually(t, func() bool { return f.count("watch") >= 2 }, waitFor, time.Millisecond)
			if !c.bookmarks {
				f.put(testName, object{"spec": object{"holderIdentity": "late"}})
				require.Equal(t, "late", next(t, seen).Record.Holder)
			}
			requireHears(t, f, seen, 3)
		})
	}
}

// requireHears waits for the stream that was opened afresh, and shows that it does.
func requireHears(t *testing.T, f *fakeAPI, seen <-chan lease.Snapshot, streams int) {
	t.Helper()
	require.Eventually(t, func() bool { return f.count("watch") >= streams }, waitFor, time.Millisecond)
	f.put(testName, object{"spec": object{"holderIdentity": "new"}})
	require.Equal(t, "new", next(t, seen).Record.Holder)
}

// Client-go would obey the server and keep still for a minute.
func TestWatch_NoHiddenRetries(t *testing.T) {
	f := newFakeAPI(t)
	s, _ := newWatched(t, f, time.Hour)
	var mu sync.Mutex
	refused := false
	f.hook = func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if refused || !r.URL.Query().Has("watch") {
			return false
		}
		refused = true
		w.Header().Set("Retry-After", "60")
		code, body := failure(429, "TooManyRequests", "", "", "later")
		writeJSON(w, code, body)
		return true
	}
	watching(t, s)
	require.Eventually(t, func() bool { return f.count("watch") == 2 }, time.Second, time.Millisecond)
}

func TestWatch_OpeningHangs(t *testing.T) {
	f := newFakeAPI(t)
	var mu sync.Mutex
	hang := true
	f.hook = func(_ http.ResponseWriter, r *http.Request) bool {
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
	require.Eventually(t, func() bool { return f.count("watch") > 1 }, waitFor, time.Millisecond)
	mu.Lock()
	hang = false
	mu.Unlock()
	second := mustWrite(t, s, record("b", 2), first.Version)
	require.Equal(t, second, next(t, seen))
	require.Contains(t, log.String(), "did not open in time")
	require.Eventually(t, func() bool { return bytes.Contains([]byte(log.String()), []byte("watching the lease again")) }, waitFor, time.Millisecond)
}

func TestWatch_Forbidden(t *testing.T) {
	f := newFakeAPI(t)
	f.forbidden["watch"] = true
	s, _ := newWatched(t, f, time.Hour)
	err := s.Watch(t.Context(), func(lease.Snapshot) { t.Error("called") })
	require.ErrorIs(t, err, lease.ErrRefused)
	require.ErrorContains(t, err, "must allow get, watch")
	require.Equal(t, 1, f.count("watch"))
}

func TestWatch_ForbiddenLater(t *testing.T) {
	f := newFakeAPI(t)
	s, log := newWatched(t, f, 200*time.Millisecond)
	first := mustWrite(t, s, record("a", 1), "")
	seen := watching(t, s)
	require.Equal(t, first, next(t, seen))
	f.with(func() { f.forbidden["watch"] = true })
	f.dropStreams()
	second := mustWrite(t, s, record("b", 2), first.Version)
	require.Equal(t, second, next(t, seen), "read instead")
	require.Eventually(t, func() bool { return f.count("watch") > 2 }, waitFor, time.Millisecond)
	f.with(func() { delete(f.forbidden, "watch") })
	third := mustWrite(t, s, record("c", 3), second.Version)
	require.Equal(t, third, next(t, seen))
	require.Contains(t, log.String(), `cannot watch`)
}

func TestWatch_UnreadableStateIsSkipped(t *testing.T) {
	f := newFakeAPI(t)
	s, log := newWatched(t, f, 20*time.Millisecond)
	f.put(testName, object{"metadata": object{"annotations": object{kubernetes.Annotation: "junk"}}, "spec": object{}})
	seen := watching(t, s)
	nothing(t, seen, quietFor)
	require.Equal(t, 1, f.count("watch"), "not a reason to open again")
	require.Equal(t, 1, bytes.Count([]byte(log.String()), []byte("skipped a state")))
	f.put(testName, object{"spec": object{"holderIdentity": "a"}})
	require.Equal(t, "a", next(t, seen).Record.Holder)
}

// An event that a read has overtaken must not bring the old state back.
func TestWatch_NothingOlderThanARead(t *testing.T) {
	f := newFakeAPI(t)
	s, _ := newWatched(t, f, time.Hour)
	first := mustWrite(t, s, record("a", 1), "")
	var once sync.Once
	f.hook = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && !r.URL.Query().Has("watch") {
			// The stream is open: it has the first state in its pipe.
			once.Do(func() { f.put(testName, object{"spec": object{"holderIdentity": "b"}}) })
		}
		return false
	}
	seen := watching(t, s)
	require.Equal(t, "b", next(t, seen).Record.Holder)
	nothing(t, seen, quietFor)
	require.NotEqual(t, "", string(first.Version))
}

func TestWatch_NeverEndsOnAnOldState(t *testing.T) {
	f := newFakeAPI(t)
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
				f.dropStreams()
			}
		}
	})
	for i := range 300 {
		if i%50 == 20 {
			f.remove(testName)
		}
		f.put(testName, object{"spec": object{"holderIdentity": strconv.Itoa(i)}})
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
	f := newFakeAPI(t)
	s, _ := newWatched(t, f, time.Hour)
	a, b := watching(t, s), watching(t, s)
	require.Equal(t, lease.Snapshot{}, next(t, a))
	require.Equal(t, lease.Snapshot{}, next(t, b))
	first := mustWrite(t, s, record("a", 1), "")
	require.Equal(t, first, next(t, a))
	require.Equal(t, first, next(t, b))
}
