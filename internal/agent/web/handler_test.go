package web

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func TestPaths(t *testing.T) {
	noLeaks(t)
	sick := whole(3)
	sick.health = Health{Live: Check{Reason: "down: verdict 4\nby n1"}}
	_, well := served(t, Options{Source: whole(3), Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "sbr_up 1\n") })})
	_, ill := served(t, Options{Source: sick})
	for _, tc := range []struct {
		name, method, url string
		status            int
		body, kind        string
	}{
		{"the page", "GET", well + "/", 200, "This page needs JavaScript. The same as JSON: <a href=\"status\">", "text/html; charset=utf-8"},
		{"only the headers of the page", "HEAD", well + "/", 200, "", "text/html; charset=utf-8"},
		{"the status", "GET", well + "/status", 200, `"state": "up"`, "application/json"},
		{"the status ignores a query", "GET", well + "/status?x=1", 200, `"state": "up"`, "application/json"},
		{"the metrics", "GET", well + "/metrics", 200, "sbr_up 1\n", "text/plain; charset=utf-8"},
		{"alive", "GET", well + "/healthz/live", 200, "ok\n", "text/plain; charset=utf-8"},
		{"ready", "GET", well + "/healthz/ready", 200, "ok\n", "text/plain; charset=utf-8"},
		{"not alive, in one line", "GET", ill + "/healthz/live", 503, "down: verdict 4 by n1\n", "text/plain; charset=utf-8"},
		{"not ready without a reason", "GET", ill + "/healthz/ready", 503, "not ok\n", "text/plain; charset=utf-8"},
		{"the health by HEAD", "HEAD", ill + "/healthz/live", 503, "", "text/plain; charset=utf-8"},
		{"only the headers of the feed", "HEAD", well + "/events", 200, "", "text/event-stream"},
		{"no such path", "GET", well + "/statuses", 404, "no such page", "text/plain; charset=utf-8"},
		{"nothing below the page", "GET", well + "/index.html", 404, "no such page", "text/plain; charset=utf-8"},
		{"not by another spelling", "GET", well + "//status", 404, "no such page", "text/plain; charset=utf-8"},
		{"nothing below the health", "GET", well + "/healthz/live/", 404, "no such page", "text/plain; charset=utf-8"},
		{"no POST", "POST", well + "/status", 405, "nothing can be changed", "text/plain; charset=utf-8"},
		{"no DELETE", "DELETE", well + "/", 405, "nothing can be changed", "text/plain; charset=utf-8"},
		{"no OPTIONS", "OPTIONS", well + "/events", 405, "nothing can be changed", "text/plain; charset=utf-8"},
		{"no POST to nowhere", "POST", well + "/nowhere", 405, "nothing can be changed", "text/plain; charset=utf-8"},
		{"no PUT of health", "PUT", well + "/healthz/live", 405, "nothing can be changed", "text/plain; charset=utf-8"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			status, body, h := get(t, tc.method, tc.url)
			require.Equal(t, tc.status, status, body)
			require.Contains(t, body, tc.body)
			require.Equal(t, tc.kind, h.Get("Content-Type"))
			if status == 405 {
				require.Equal(t, "GET, HEAD", h.Get("Allow"))
			}
			require.Equal(t, "no-store", h.Get("Cache-Control"))
			require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
			require.Equal(t, "no-referrer", h.Get("Referrer-Policy"))
			require.Equal(t, "same-origin", h.Get("Cross-Origin-Resource-Policy"))
			p := h.Get("Content-Security-Policy")
			require.True(t, strings.HasPrefix(p, "default-src 'none'; connect-src 'self'; "), p)
			for _, loose := range []string{"unsafe", "http:", "https:", "*"} {
				require.NotContains(t, p, loose)
			}
		})
	}
}

// Programs are attached by POST at one path, and nothing else can be changed.
func TestPrograms(t *testing.T) {
	noLeaks(t)
	says := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
	}
	_, url := served(t, Options{Source: whole(1), Programs: says("attached")})
	for _, tc := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"POST", "/run", 200, "attached"},
		{"GET", "/run", 405, "programs are attached here, by sbr run: use POST"},
		{"GET", "/singletons", 200, "[]"},
		{"POST", "/singletons", 405, "nothing can be changed"},
		{"POST", "/status", 405, "nothing can be changed"},
		{"POST", "/run/", 405, "nothing can be changed"},
	} {
		status, body, _ := get(t, tc.method, url+tc.path)
		require.Equal(t, tc.status, status, tc)
		require.Contains(t, body, tc.body)
	}
}

// GET /status is the contract: what was served once is read, and served again, with nothing missing, renamed or
// added unseen.
func TestStatus_Golden(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "status.golden.json"))
	require.NoError(t, err)
	f := whole(1)
	f.status = downing.Status{}
	require.NoError(t, json.Unmarshal(golden, &f.status))
	_, url := served(t, Options{Source: f})
	_, body, _ := get(t, "GET", url+"/status")
	require.Equal(t, string(golden), body)
}

func TestNew_SaysWhatToDo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	empty, two := write("empty", " \n"), write("two", "one two\n")
	long := write("long", strings.Repeat("x", maxToken+1))
	for _, tc := range []struct {
		name string
		o    Options
		want []string
	}{
		{"port in use", Options{Listen: taken.Addr().String()}, []string{"cannot listen on " + taken.Addr().String(), "address already in use", "set http.listen"}},
		{"not ours", Options{Listen: "192.0.2.1:7380"}, []string{"192.0.2.1:7380", "set http.listen to an address of this machine"}},
		{"no certificate", Options{TLSCert: dir + "/none", TLSKey: dir + "/none"}, []string{dir + "/none", "http.tls-cert-file"}},
		{"no PEM", Options{TLSCert: empty, TLSKey: empty}, []string{empty, "PEM"}},
		{"no token file", Options{TokenFile: dir + "/none"}, []string{dir + "/none", "http.token-file"}},
		{"no token in it", Options{TokenFile: empty}, []string{empty, "one token"}},
		{"two tokens in it", Options{TokenFile: two}, []string{two, "one line"}},
		{"no end of it", Options{TokenFile: long}, []string{long, "at most 4096 bytes"}},
		{"a folder as token", Options{TokenFile: dir}, []string{dir, "http.token-file"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			noLeaks(t)
			if tc.o.Listen == "" {
				tc.o.Listen = "127.0.0.1:0"
			}
			tc.o.Source = whole(1)
			_, err := New(tc.o)
			for _, want := range tc.want {
				require.ErrorContains(t, err, want)
			}
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestNew_WarnsBeyondLoopback(t *testing.T) {
	cert, key := pair(t, t.TempDir(), "one")
	secret := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(secret, []byte("s3cret"), 0o600))
	const open, clear = "everybody who reaches this address", "in clear text"
	for _, tc := range []struct {
		name      string
		o         Options
		want, not []string
	}{
		{"on the loopback", Options{Listen: "127.0.0.1:0"}, nil, []string{open, clear}},
		{"bare", Options{Listen: ":0"}, []string{open, clear}, nil},
		{"with a token", Options{Listen: "0.0.0.0:0", TokenFile: secret}, []string{clear}, []string{open}},
		{"with TLS", Options{Listen: "0.0.0.0:0", TLSCert: cert, TLSKey: key}, []string{open}, []string{clear}},
		{"with both", Options{Listen: "0.0.0.0:0", TLSCert: cert, TLSKey: key, TokenFile: secret}, nil, []string{open, clear}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var log strings.Builder
			tc.o.Source, tc.o.Logger = whole(1), slog.New(slog.NewTextHandler(&log, nil))
			s, err := New(tc.o)
			require.NoError(t, err)
			require.NoError(t, s.Shutdown(t.Context()))
			for _, w := range tc.want {
				require.Contains(t, log.String(), w)
			}
			for _, w := range tc.not {
				require.NotContains(t, log.String(), w)
			}
			require.NotContains(t, log.String(), "s3cret")
		})
	}
}

// A web site whose name is made to lead to this machine gets nothing.
func TestHost_DNSRebinding(t *testing.T) {
	noLeaks(t)
	_, url := served(t, Options{Source: whole(3)})
	for host, want := range map[string]int{
		"localhost": 200, "localhost:7380": 200, "LOCALHOST.:80": 200, "sbr.localhost": 200, "127.0.0.1": 200, "127.9.8.7:1": 200, "[::1]:7380": 200,
		"[::ffff:127.0.0.1]": 200, "evil.example": 421, "evil.example:7380": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421,
		"10.0.0.1": 421, "0.0.0.0:7380": 421, "evil-localhost": 421, "[::]": 421,
	} {
		for _, path := range []string{"/", "/status", "/healthz/live"} {
			status, body, _ := get(t, "GET", url+path, "Host", host)
			require.Equal(t, want, status, "%s%s: %s", host, path, body)
			require.Equal(t, want == 200, !strings.Contains(body, "answers to localhost only"))
		}
	}
	t.Run("beyond the loopback any name may lead here", func(t *testing.T) {
		s, _ := served(t, Options{Source: whole(3), Listen: "0.0.0.0:0"})
		_, port, err := net.SplitHostPort(s.Addr().String())
		require.NoError(t, err)
		status, _, _ := get(t, "GET", "http://127.0.0.1:"+port+"/status", "Host", "n1.cluster.example")
		require.Equal(t, 200, status)
	})
}

// The last thing to be seen of a member that goes down is that it did.
func TestServe_EndsWithItsContext(t *testing.T) {
	noLeaks(t)
	f := whole(3)
	s, err := New(Options{Listen: "127.0.0.1:0", Source: f})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	a, err := http.Get("http://" + s.Addr().String() + "/events")
	require.NoError(t, err)
	defer a.Body.Close()
	lines := bufio.NewScanner(a.Body)
	lines.Buffer(nil, 1<<20)
	require.True(t, lines.Scan())
	require.Equal(t, "retry: 2000", lines.Text())
	f.set(func(f *fake) { f.status.State = sbr.StateDown }).happened(noon, downing.OccurredDown, "down: told so")
	began := time.Now()
	cancel()
	var last string
	for lines.Scan() {
		last += lines.Text()
	}
	require.NoError(t, lines.Err(), "the feed ends, it is not cut off")
	require.Contains(t, last, `"state":"down"`)
	require.Contains(t, last, "down: told so")
	require.NoError(t, <-ended)
	require.Less(t, time.Since(began), shutdownGrace)
	_, err = net.Dial("tcp", s.Addr().String())
	require.Error(t, err)
}

func TestShutdown_WithoutServe(t *testing.T) {
	s, err := New(Options{Listen: "127.0.0.1:0", Source: whole(3)})
	require.NoError(t, err)
	require.NoError(t, s.Shutdown(t.Context()))
	require.NoError(t, s.Shutdown(t.Context()), "twice does no harm")
	_, err = net.Dial("tcp", s.Addr().String())
	require.Error(t, err)
	require.NoError(t, s.Serve(t.Context()), "nothing is served after it")
}

// A client that never ends its request is cut off; other clients are served.
func TestServe_SlowClients(t *testing.T) {
	s, url := served(t, Options{Source: whole(3)})
	require.Positive(t, s.http.ReadHeaderTimeout)
	require.Positive(t, s.http.WriteTimeout)
	require.Positive(t, s.http.IdleTimeout)
	for range 20 {
		c, err := net.Dial("tcp", s.Addr().String())
		require.NoError(t, err)
		defer c.Close()
		fmt.Fprint(c, "GET /status HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
	}
	status, _, _ := get(t, "GET", url+"/status")
	require.Equal(t, 200, status)
	c, err := net.Dial("tcp", s.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	fmt.Fprintf(c, "GET /status HTTP/1.1\r\nHost: localhost\r\nX-Large: %s\r\n\r\n", strings.Repeat("x", 64<<10))
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, answer.StatusCode)
}
