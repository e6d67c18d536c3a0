package kubetest

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
)

// VerbWatch is the verb of a GET that watches. The other verbs are the HTTP methods.
const VerbWatch = "WATCH"

// Call is a kind of request. Path is without the query.
type Call struct {
	Verb string
	Path string
}

// Proxy is a reverse proxy in front of an API server, HTTP/2 on both sides. It counts the requests that
// arrive and injects faults. It speaks for itself below HTTP: while the API server is paused, the proxy still
// answers HTTP/2 pings.
type Proxy struct {
	source   access
	path     string // of the kubeconfig
	server   *httptest.Server
	upstream *http.Transport
	life     context.Context
	end      context.CancelFunc

	mu     sync.Mutex
	counts map[Call]int
	hook   func(*http.Request) Fault
}

// NewProxy starts a proxy in front of the API server of a kubeconfig that this package made. It ends with the
// test.
func NewProxy(tb testing.TB, kubeconfig string) *Proxy {
	tb.Helper()
	p := &Proxy{counts: make(map[Call]int)}
	p.life, p.end = context.WithCancel(context.Background())
	var err error
	if p.source, err = readAccess(kubeconfig); err != nil {
		tb.Fatal(err)
	}
	handler, err := p.handler()
	if err != nil {
		tb.Fatal(err)
	}
	p.server = httptest.NewUnstartedServer(handler)
	p.server.EnableHTTP2, p.server.Config.ErrorLog = true, silent()
	p.server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, c.(*tls.Conn).NetConn())
	}
	p.server.StartTLS()
	tb.Cleanup(p.Close)
	if p.path, err = p.KubeconfigFor(kubeconfig); err != nil {
		tb.Fatal(err)
	}
	return p
}

func (p *Proxy) handler() (http.Handler, error) {
	target, err := url.Parse(p.source.server)
	if err != nil {
		return nil, fmt.Errorf("kubetest: proxy: address of the API server: %w", err)
	}
	trust, err := clientTLS(p.source.authority)
	if err != nil {
		return nil, err
	}
	p.upstream = &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: true, DisableCompression: true}
	forward := httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     p.upstream,
		FlushInterval: -1,
		// A dead API server must look dead, not like a gateway that answers 502.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     silent(),
	}
	lose := forward // a write is committed when its answer comes
	lose.ModifyResponse = func(*http.Response) error { return http.ErrAbortHandler }
	return cutOnAbort(p.count(p.applyFault(&forward, &lose))), nil
}

func (p *Proxy) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.counts[Call{Verb: Verb(r), Path: r.URL.Path}]++
		p.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

// Verb is the verb of a request as it is counted; hooks may use it too.
func Verb(r *http.Request) string {
	if watch := r.URL.Query().Get("watch"); r.Method == http.MethodGet && (watch == "true" || watch == "1") {
		return VerbWatch
	}
	return r.Method
}

// Kubeconfig is the path of a kubeconfig with the rights of that given to NewProxy that goes through the
// proxy.
func (p *Proxy) Kubeconfig() string { return p.path }

// KubeconfigFor makes the same of another kubeconfig of the same cluster, so that several users go through
// one proxy.
func (p *Proxy) KubeconfigFor(kubeconfig string) (string, error) {
	user, err := readAccess(kubeconfig)
	if err != nil {
		return "", err
	}
	if user.server != p.source.server {
		return "", fmt.Errorf("kubetest: kubeconfig %s is for %s, the proxy for %s; make it a proxy of its own",
			kubeconfig, user.server, p.source.server)
	}
	user.server = p.server.URL
	user.authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	return user.write(filepath.Dir(kubeconfig))
}

// SetFault makes hook decide about each request from now on. It is called by many goroutines at once and must
// not read the body. Nil ends all faults.
func (p *Proxy) SetFault(hook func(*http.Request) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hook = hook
}

// Counts returns how often each call has arrived, dropped and refused ones included.
func (p *Proxy) Counts() map[Call]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

// Close ends the proxy and everything that is under way in it. The kubeconfigs stay until the cluster stops.
func (p *Proxy) Close() {
	p.end()
	p.server.CloseClientConnections()
	p.server.Close()
	p.upstream.CloseIdleConnections()
}

func silent() *log.Logger { return log.New(io.Discard, "", 0) }
