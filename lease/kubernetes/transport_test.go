package kubernetes_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/serf-sbr/serf-sbr/internal/kubefake"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
)

// heard is what the last request has carried.
type heard struct{ last atomic.Pointer[http.Request] }

// listen makes f remember what the last request carried.
func listen(f *kubefake.API) *heard {
	h := &heard{}
	f.With(func() {
		f.Hook = func(_ http.ResponseWriter, r *http.Request) bool { h.last.Store(r); return false }
	})
	return h
}

func (h *heard) authorization() string { return h.last.Load().Header.Get("Authorization") }

func unauthorized(w http.ResponseWriter, _ *http.Request) bool {
	code, body := kubefake.Failure(401, "Unauthorized", "", "", "Unauthorized")
	kubefake.WriteJSON(w, code, body)
	return true
}

func open(t *testing.T, c *rest.Config) *kubernetes.Store {
	s, err := kubernetes.NewForConfig(c, testConfig())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func read(t *testing.T, s *kubernetes.Store) {
	t.Helper()
	_, err := s.Read(t.Context())
	require.NoError(t, err)
}

func TestTransport_HTTP2AndTheCallersConfig(t *testing.T) {
	f := kubefake.New(t)
	h := listen(f)
	c := f.RESTConfig()
	c.UserAgent = "me"
	read(t, open(t, c))
	require.Equal(t, 2, h.last.Load().ProtoMajor)
	require.Equal(t, "Bearer secret", h.authorization())
	require.Equal(t, "me", h.last.Load().UserAgent())
	require.Nil(t, c.Dial, "the caller's configuration is not changed")
}

func TestTransport_Basic(t *testing.T) {
	f := kubefake.New(t)
	h := listen(f)
	c := f.RESTConfig()
	c.BearerToken, c.Username, c.Password = "", "user", "password"
	read(t, open(t, c))
	require.Equal(t, "Basic dXNlcjpwYXNzd29yZA==", h.authorization())

	c.BearerToken = "both"
	_, err := kubernetes.NewForConfig(c, testConfig())
	require.ErrorContains(t, err, "both a user name and a token")
}

func TestTransport_TokenFileIsReadEachTime(t *testing.T) {
	f := kubefake.New(t)
	h := listen(f)
	path := filepath.Join(t.TempDir(), "token")
	c := f.RESTConfig()
	c.BearerToken, c.BearerTokenFile = "of the start", path
	s := open(t, c)
	_, err := s.Read(t.Context())
	require.ErrorContains(t, err, "no token")
	require.Empty(t, f.Made())

	require.NoError(t, os.WriteFile(path, []byte("one\n"), 0o600))
	read(t, s)
	require.Equal(t, "Bearer one", h.authorization())
	require.NoError(t, os.WriteFile(path, []byte("two"), 0o600))
	read(t, s)
	require.Equal(t, "Bearer two", h.authorization())
	require.NoError(t, os.Remove(path))
	read(t, s)
	require.Equal(t, "Bearer two", h.authorization(), "goes on with the last one")
}

func TestTransport_CAFileIsReloaded(t *testing.T) {
	f := kubefake.New(t)
	path := filepath.Join(t.TempDir(), "ca.crt")
	right := certificatePEM(f.Certificate())
	require.NoError(t, os.WriteFile(path, right, 0o600))
	c := f.RESTConfig()
	c.CAData, c.CAFile = nil, path
	s := open(t, c)
	read(t, s)

	// A 401 makes it look again. The new file does not hold the right one: new connections must fail.
	f.With(func() { f.Hook = unauthorized })
	_, err := s.Read(t.Context())
	require.ErrorContains(t, err, "Unauthorized")
	f.With(func() { f.Hook = nil })
	foreign := newForeignCA(t)
	require.NoError(t, os.WriteFile(path, foreign, 0o600))
	_, err = s.Read(t.Context())
	require.ErrorContains(t, err, "not of the configured authority")
}

func TestTransport_OfOnesOwn(t *testing.T) {
	var asked int
	c := &rest.Config{Host: "https://example.invalid",
		Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			asked++
			return &http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {"0"}}, Body: http.NoBody,
				Request: r}, nil
		})}
	s := open(t, c)
	_, err := s.Write(t.Context(), record("a", 1), "")
	requireUnknown(t, err)
	require.Equal(t, 1, asked)
	c.Insecure = true
	_, err = kubernetes.NewForConfig(c, testConfig())
	require.ErrorContains(t, err, "excludes certificates")
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// An API server that has lost its etcd answers each ping, and another one behind the same address would serve.
func TestTransport_LeavesAServerThatFails(t *testing.T) {
	for name, fails := range map[string]func(w http.ResponseWriter, r *http.Request){
		"with a failure of its own": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) },
		"without an answer":         func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			f := kubefake.New(t)
			s := open(t, f.RESTConfig())
			var first string // the client's address of the connection to the server that fails
			f.With(func() {
				f.Hook = func(w http.ResponseWriter, r *http.Request) bool {
					if first == "" {
						first = r.RemoteAddr
					}
					if r.RemoteAddr != first {
						return false
					}
					fails(w, r)
					return true
				}
			})
			ctx, cancel := contextFor(t, 300*time.Millisecond)
			defer cancel()
			_, err := s.Read(ctx)
			require.Error(t, err)
			read(t, s)
		})
	}
}

// Forty requests at once are not throttled: the default of client-go would take six seconds.
func TestTransport_NoThrottle(t *testing.T) {
	f := kubefake.New(t)
	s := newStore(t, f)
	began := time.Now()
	for range 40 {
		read(t, s)
	}
	require.Less(t, time.Since(began), 3*time.Second)
}

// What client-go would print is returned as an error anyway.
func TestTransport_NothingOnStandardError(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	stderr := os.Stderr
	os.Stderr = w
	defer func() { os.Stderr = stderr }()
	f := kubefake.New(t)
	s, _ := newWatched(t, f)
	f.With(func() { f.Hook = unavailable })
	_, err = s.Read(t.Context())
	require.Error(t, err)
	f.With(func() {
		f.Hook = func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Warning", `299 - "do not use this"`)
			_, _ = io.WriteString(w, `{"type":"ADDED","object":{"half`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	})
	_, err = s.Read(t.Context())
	require.Error(t, err)
	_, err = s.Write(t.Context(), record("a", 1), "")
	requireUnknown(t, err)
	func() {
		ctx, cancel := contextFor(t, 300*time.Millisecond)
		defer cancel()
		require.Error(t, s.Watch(ctx, func(lease.Snapshot) {}))
	}()
	require.NoError(t, w.Close())
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Empty(t, string(text))
}

// Each connection is a TLS handshake, here and at the server: fifty shards need one.
func TestTransport_StoresOfOneConfigurationShareIt(t *testing.T) {
	var connections atomic.Int64
	server := httptest.NewUnstartedServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }))
	server.EnableHTTP2 = true
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.StartTLS()
	defer server.Close()
	open := func(name, token string) *kubernetes.Store {
		cfg := kubernetes.DefaultConfig()
		cfg.Name = name
		s, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, BearerToken: token,
			TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, cfg)
		require.NoError(t, err)
		_, err = s.Read(t.Context())
		require.Error(t, err)
		return s
	}
	var stores []*kubernetes.Store
	for i := range 50 {
		stores = append(stores, open("shard-"+strconv.Itoa(i), "a"))
	}
	require.EqualValues(t, 1, connections.Load())
	stores = append(stores, open("shard-0", "b"))
	require.EqualValues(t, 2, connections.Load(), "another account")
	for _, s := range stores {
		require.NoError(t, s.Close())
		require.NoError(t, s.Close())
	}
	require.NoError(t, open("shard-0", "a").Close())
	require.EqualValues(t, 3, connections.Load(), "the last one to close drops it")
}
