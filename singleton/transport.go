package singleton

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Errors of a Transport.
var (
	// ErrBusy is wrapped when as many requests wait for the singleton as may.
	ErrBusy = errors.New("singleton: too many requests wait for it")
	// ErrNowhere is wrapped when the singleton was not found in time.
	ErrNowhere = errors.New("singleton: it was not found in time")
	// ErrNoEndpoint is wrapped when the run has no endpoint that is an absolute URL: set Config.Endpoint.
	ErrNoEndpoint = errors.New("singleton: its member names no endpoint")
)

// Transport is an http.RoundTripper that sends each request to wherever a singleton runs. Of the request's URL only path and query count.
//
// While the singleton is handed over requests wait, in bounded number and time. A request that could not be sent because nobody listens there any more
// waits for the next place; one that was sent is never sent twice. Start from NewTransport.
type Transport struct {
	// Locator finds the singleton. Required.
	Locator *Locator
	// Base sends the requests. Nil: http.DefaultTransport.
	Base http.RoundTripper
	// MaxWaiting is how many requests may wait. Default 100.
	MaxWaiting int
	// MaxBody is how many bytes of a request's body are kept, so that it can be sent to another place. Larger ones are sent to the first. Default 64 KiB.
	MaxBody int64
	// MaxWait bounds how long a request waits; the request's context may end it earlier. Default 30 s.
	MaxWait time.Duration

	mu      sync.Mutex
	waiting int
}

// NewTransport returns a transport with the defaults.
func NewTransport(l *Locator) *Transport {
	return &Transport{Locator: l, MaxWaiting: 100, MaxBody: 64 << 10, MaxWait: 30 * time.Second}
}

var _ http.RoundTripper = (*Transport)(nil)

// RoundTrip implements http.RoundTripper. Errors wrap ErrBusy, ErrNowhere or ErrNoEndpoint, or are those of Base.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, again, err := t.keep(r)
	if err != nil {
		return nil, err
	}
	var tried uint64
	for {
		at, err := t.locate(r.Context(), tried)
		if err != nil {
			return nil, err
		}
		out, err := rewrite(r, at, body)
		if err != nil {
			return nil, err
		}
		resp, err := t.base().RoundTrip(out)
		if err == nil || !again || !unsent(err) {
			return resp, err
		}
		t.Locator.Refresh()
		tried = at.Token
	}
}

func (t *Transport) base() http.RoundTripper {
	if t.Base != nil {
		return t.Base
	}
	return http.DefaultTransport
}

// keep reads a small body, so that it can be sent again. body is nil where the request's own is sent, and again false where that can be done once.
func (t *Transport) keep(r *http.Request) (body []byte, again bool, err error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, true, nil
	}
	if r.ContentLength < 0 || r.ContentLength > t.MaxBody {
		return nil, false, nil
	}
	defer r.Body.Close()
	body, err = io.ReadAll(r.Body)
	return body, true, err
}

// locate waits for a place other than the one that was tried in vain.
func (t *Transport) locate(ctx context.Context, tried uint64) (Location, error) {
	if at := t.Locator.Location(); at.Known() && at.Token != tried {
		return at, nil
	}
	if !t.enter() {
		return Location{}, fmt.Errorf("%w: %d do already", ErrBusy, t.MaxWaiting)
	}
	defer t.leave()
	ctx, cancel := context.WithTimeout(ctx, t.MaxWait)
	defer cancel()
	at, err := t.Locator.Wait(ctx, tried)
	if err != nil {
		return Location{}, fmt.Errorf("%w: %w", ErrNowhere, err)
	}
	return at, nil
}

func (t *Transport) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting >= t.MaxWaiting {
		return false
	}
	t.waiting++
	return true
}

func (t *Transport) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting--
}

// rewrite returns the request as it goes to a place.
func rewrite(r *http.Request, at Location, body []byte) (*http.Request, error) {
	u, err := url.Parse(at.Endpoint)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%w: %s says %q", ErrNoEndpoint, at.Name, at.Endpoint)
	}
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.Host = u.Scheme, u.Host, ""
	if u.Path != "" {
		out.URL = u.JoinPath(r.URL.Path)
		out.URL.RawQuery = r.URL.RawQuery
	}
	if body != nil {
		out.Body = io.NopCloser(bytes.NewReader(body))
	}
	return out, nil
}

// unsent reports whether an error says that the request has reached nobody: no connection was made.
func unsent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}
