package kubernetes_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/kubefake"
	"github.com/serf-sbr/serf-sbr/internal/logtest"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
)

const quietFor = 150 * time.Millisecond

// newWatched returns a store, and its log.
func newWatched(t *testing.T, f *kubefake.API) (*kubernetes.Store, *logtest.Log) {
	log := new(logtest.Log)
	cfg := testConfig()
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	return newStoreWith(t, f, cfg), log
}

func unavailable(w http.ResponseWriter, _ *http.Request) bool {
	code, body := kubefake.Failure(503, "ServiceUnavailable", "", "", "not now")
	kubefake.WriteJSON(w, code, body)
	return true
}

func TestWatch_Forbidden(t *testing.T) {
	f := kubefake.New(t)
	f.Forbidden["watch"] = true
	s, _ := newWatched(t, f)
	err := s.Watch(t.Context(), func(lease.Snapshot) { t.Error("called") })
	require.ErrorIs(t, err, lease.ErrRefused)
	require.ErrorContains(t, err, "must allow get, watch")
	require.Equal(t, 1, f.Count("watch"))
}

func TestWatch_UnreadableStateIsSkipped(t *testing.T) {
	f := kubefake.New(t)
	s, log := newWatched(t, f)
	f.Put(testName, object{"metadata": object{"annotations": object{kubernetes.Annotation: "junk"}},
		"spec": object{}})
	seen := watching(t, s)
	nothing(t, seen, quietFor)
	require.Equal(t, 1, f.Count("watch"), "not a reason to open again")
	require.Equal(t, 1, bytes.Count([]byte(log.String()), []byte("skipped a state")))
	f.Put(testName, object{"spec": object{"holderIdentity": "a"}})
	require.Equal(t, "a", next(t, seen).Record.Holder)
}

// A stream is opened once, whatever the server says, and begins with the present.
func TestWatch_EndsAndSaysWhy(t *testing.T) {
	later := func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", "60")
		code, body := kubefake.Failure(429, "TooManyRequests", "", "", "later")
		kubefake.WriteJSON(w, code, body)
	}
	gone := func(w http.ResponseWriter) {
		code, body := kubefake.Failure(410, "Gone", "", "", "gone")
		kubefake.WriteJSON(w, code, body)
	}
	for want, answer := range map[string]func(http.ResponseWriter){"later": later, "gone": gone} {
		t.Run(want, func(t *testing.T) {
			f := kubefake.New(t)
			f.Hook = func(w http.ResponseWriter, _ *http.Request) bool { answer(w); return true }
			s, _ := newWatched(t, f)
			err := s.Watch(t.Context(), func(lease.Snapshot) { t.Error("called") })
			require.ErrorContains(t, err, want)
			require.NotErrorIs(t, err, lease.ErrRefused)
			require.Equal(t, 1, f.Count("watch"))
			var postponed interface{ RetryAfter() time.Duration }
			if errors.As(err, &postponed) {
				require.Equal(t, time.Minute, postponed.RetryAfter())
			}
		})
	}
}

func TestWatch_OpeningHangs(t *testing.T) {
	f := kubefake.New(t)
	f.Hook = func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	}
	cfg := testConfig()
	cfg.RequestTimeout = time.Second
	s := newStoreWith(t, f, cfg)
	began := time.Now()
	err := s.Watch(t.Context(), func(lease.Snapshot) { t.Error("called") })
	require.ErrorContains(t, err, "did not open in time")
	require.Less(t, time.Since(began), waitFor)
}

// A watch whose caller gives up just when it has opened leaves no reader of its stream behind: TestMain looks
// for that.
func TestWatch_GivenUpWhenItHasOpened(t *testing.T) {
	f := kubefake.New(t)
	f.Put(testName, object{"spec": object{"holderIdentity": "a"}})
	ctx, giveUp := context.WithCancel(t.Context())
	c := f.RESTConfig()
	c.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			resp, err := rt.RoundTrip(r)
			giveUp()
			return resp, err
		})
	})
	s, err := kubernetes.NewForConfig(c, testConfig())
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	require.ErrorIs(t, s.Watch(ctx, func(lease.Snapshot) {}), context.Canceled)
}
