package kubernetes

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/serf-sbr/serf-sbr/internal/shared"
)

const (
	// A connection that died silently takes every request down with it until the pings find out: 3.5 s with
	// the default times, 45 s by client-go's.
	pingAfter = time.Second
	// Certificates and authorities are rotated by replacing their files.
	reloadAfter = time.Minute
)

// roundTrip is how long one round trip of a connection may take where a request may take that long: for
// dialling, the TLS handshake and each ping. Less would tell a slow network from a dead one, and break
// connections that work.
func roundTrip(request time.Duration) time.Duration { return max(request/2, time.Second) }

// newHTTPClient returns a client with all of cfg's authentication, and its own connections. Requests may take
// that long.
func newHTTPClient(cfg *rest.Config, request time.Duration) (*http.Client, error) {
	limit := roundTrip(request)
	if cfg.Dial == nil {
		cfg.Dial = (&net.Dialer{Timeout: limit, KeepAlive: 30 * time.Second}).DialContext
	}
	conf, err := cfg.TransportConfig()
	if err != nil {
		return nil, err
	}
	if conf.HasBasicAuth() && conf.HasTokenAuth() {
		return nil, errors.New("both a user name and a token are set")
	}
	base, err := baseTransport(conf, limit)
	if err != nil {
		return nil, err
	}
	tokenFile := conf.BearerTokenFile
	if tokenFile != "" {
		conf.BearerToken, conf.BearerTokenFile = "", ""
	}
	rt, err := transport.HTTPWrappersForConfig(conf, base)
	if err != nil {
		return nil, err
	}
	if tokenFile != "" {
		rt = &tokenFileTransport{next: rt, path: tokenFile}
	}
	return &http.Client{
		Transport: rt,
		// A redirect would repeat a write behind our back.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// clients are the HTTP clients of this process by what they are made of, so that all stores of one
// configuration share a connection.
var clients shared.Values[string, *http.Client]

// sharedHTTPClient is newHTTPClient for all callers with an equal cfg. release gives it up; the last one
// drops its idle connections.
func sharedHTTPClient(cfg *rest.Config, request time.Duration) (c *http.Client, release func(), err error) {
	key, ok := configKey(cfg, request)
	if !ok {
		c, err = newHTTPClient(cfg, request)
		return c, func() { closeIdle(c.Transport) }, err
	}
	open := func() (*http.Client, error) { return newHTTPClient(cfg, request) }
	return clients.Use(key, open, func(c *http.Client) { closeIdle(c.Transport) })
}

// configKey is equal for configurations that make equal clients. ok is false where functions decide that.
func configKey(cfg *rest.Config, request time.Duration) (key string, ok bool) {
	if cfg.Dial != nil || cfg.Proxy != nil || cfg.Transport != nil || cfg.WrapTransport != nil ||
		cfg.ExecProvider != nil || cfg.AuthProvider != nil {
		return "", false
	}
	text, err := json.Marshal([]any{
		cfg.Host, cfg.Username, cfg.Password, cfg.BearerToken, cfg.BearerTokenFile, cfg.Impersonate,
		cfg.TLSClientConfig,
		cfg.DisableCompression, cfg.UserAgent, request,
	})
	return string(text), err == nil
}

func baseTransport(conf *transport.Config, limit time.Duration) (http.RoundTripper, error) {
	if conf.Transport == nil {
		return newReloader(conf, limit)
	}
	if conf.HasCA() || conf.HasCertAuth() || conf.HasCertCallback() || conf.TLS.Insecure {
		return nil, errors.New("a transport of one's own excludes certificates and the insecure flag")
	}
	return conf.Transport, nil
}

func newTransport(conf *transport.Config, limit time.Duration) (*http.Transport, error) {
	fresh := *conf // TLSConfigFor fills in what it has read from files
	tlsConfig, err := transport.TLSConfigFor(&fresh)
	if err != nil {
		return nil, err
	}
	proxy := http.ProxyFromEnvironment
	if conf.Proxy != nil {
		proxy = conf.Proxy
	}
	return &http.Transport{
		Proxy:               proxy,
		DialContext:         conf.DialHolder.Dial,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: limit,
		IdleConnTimeout:     90 * time.Second,
		ForceAttemptHTTP2:   true,
		DisableCompression:  conf.DisableCompression,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: limit},
	}, nil
}

// reloader replaces the transport when one of its files changes. It looks once a minute, and after a 401: a
// connection that was opened with a client certificate is refused for ever once that has expired. It replaces
// the transport also after a request that the server did not answer, or answered with its own failure: of
// several API servers behind one address another may still reach its etcd, and this one answers each ping.
type reloader struct {
	conf  *transport.Config
	limit time.Duration // see roundTrip

	mu      sync.Mutex
	current *http.Transport
	files   [sha256.Size]byte
	checked time.Time
}

func newReloader(conf *transport.Config, limit time.Duration) (*reloader, error) {
	first, err := newTransport(conf, limit)
	if err != nil {
		return nil, err
	}
	r := &reloader{conf: conf, limit: limit, current: first, checked: time.Now()}
	r.files = r.fingerprint()
	return r, nil
}

func (r *reloader) RoundTrip(req *http.Request) (*http.Response, error) {
	used := r.transport()
	resp, err := used.RoundTrip(req)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil && resp.StatusCode == http.StatusUnauthorized:
		r.checked = time.Time{}
	case r.current == used && (err != nil && req.Context().Err() != nil || err == nil && resp.StatusCode >= 500):
		used.CloseIdleConnections()
		r.current = used.Clone()
	}
	return resp, err
}

// CloseIdleConnections makes http.Client's method of that name work.
func (r *reloader) CloseIdleConnections() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current.CloseIdleConnections()
}

func (r *reloader) transport() *http.Transport {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.checked) < reloadAfter {
		return r.current
	}
	r.checked = time.Now()
	files := r.fingerprint()
	if files == r.files {
		return r.current
	}
	next, err := newTransport(r.conf, r.limit)
	if err != nil {
		// Half written, most likely: the old one serves until the next look.
		return r.current
	}
	r.current.CloseIdleConnections()
	r.current, r.files = next, files
	return next
}

func (r *reloader) fingerprint() [sha256.Size]byte {
	sum := sha256.New()
	for _, path := range []string{r.conf.TLS.CAFile, r.conf.TLS.CertFile, r.conf.TLS.KeyFile} {
		if path != "" {
			text, err := os.ReadFile(path)
			fmt.Fprintf(sum, "%d %v ", len(text), err != nil)
			sum.Write(text)
		}
	}
	return [sha256.Size]byte(sum.Sum(nil))
}

// tokenFileTransport reads the token for each request. Client-go keeps it for 50 s, through refusals too;
// requests are so few here that nothing is saved by that, and a rotated token would cost a decision.
type tokenFileTransport struct {
	next http.RoundTripper
	path string

	mu   sync.Mutex
	last string
}

func (t *tokenFileTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Header.Get("Authorization") != "" {
		return t.next.RoundTrip(req)
	}
	token, err := t.token()
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // a RoundTripper must
		}
		return nil, err
	}
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+token)
	return t.next.RoundTrip(req)
}

func (t *tokenFileTransport) CloseIdleConnections() { closeIdle(t.next) }

// token goes on with the last one when the file is away for a moment.
func (t *tokenFileTransport) token() (string, error) {
	text, err := os.ReadFile(t.path)
	token := strings.TrimSpace(string(text))
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case token != "":
		t.last = token
	case t.last != "":
	case err != nil:
		return "", &tokenError{err}
	default:
		return "", &tokenError{fmt.Errorf("%s is empty", t.path)}
	}
	return t.last, nil
}

// tokenError says that a request was not even sent.
type tokenError struct{ err error }

func (e *tokenError) Error() string { return "no token: " + e.err.Error() }
func (e *tokenError) Unwrap() error { return e.err }

// closeIdle looks through client-go's wrappers, which do not pass CloseIdleConnections on.
func closeIdle(rt http.RoundTripper) {
	for rt != nil {
		if c, ok := rt.(interface{ CloseIdleConnections() }); ok {
			c.CloseIdleConnections()
			return
		}
		w, ok := rt.(interface{ WrappedRoundTripper() http.RoundTripper })
		if !ok {
			return
		}
		rt = w.WrappedRoundTripper()
	}
}
