package kubetest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/sleep"
)

// FaultKind says what becomes of a request; the zero value passes it on.
type FaultKind uint8

const (
	// FaultStatus answers with Fault.Status; the API server never sees the request.
	FaultStatus FaultKind = iota + 1
	// FaultDropRequest closes the client's connection, with all that shares it; the API server never sees the
	// request.
	FaultDropRequest
	// FaultDropResponse passes the request on and, once the API server has answered, closes the client's
	// connection: the client cannot know that its write was committed. The request is passed on even if the
	// client has given up meanwhile: with a Delay beyond the client's deadline the write is committed after
	// the client's error.
	FaultDropResponse
)

// Fault is what a hook wants to be done to one request. The zero Fault does nothing. What else may happen on
// the way to an API server is in the fault matrix of test/kubernetes.
type Fault struct {
	Kind FaultKind
	// Delay passes before anything else is done.
	Delay time.Duration
	// Status is the code that FaultStatus answers, RetryAfter the header Retry-After; empty: none.
	Status     int
	RetryAfter string
}

// applyFault asks the hook about each request and does what it says. lose passes on and forgets the answer.
func (p *Proxy) applyFault(forward, lose http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fault := p.faultOf(r)
		next := forward
		if fault.Kind == FaultDropResponse {
			kept, cancel := p.outliveClient(r)
			defer cancel()
			r, next = kept, lose
		}
		if sleep.For(r.Context(), fault.Delay) != nil {
			return
		}
		switch fault.Kind {
		case FaultStatus:
			writeStatus(w, fault)
		case FaultDropRequest:
			panic(http.ErrAbortHandler)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func (p *Proxy) faultOf(r *http.Request) Fault {
	p.mu.Lock()
	hook := p.hook
	p.mu.Unlock()
	if hook == nil {
		return Fault{}
	}
	return hook(r)
}

// outliveClient makes a request that ends with the proxy, not with its client. The body is read now: it
// cannot be read once the client has gone.
func (p *Proxy) outliveClient(r *http.Request) (*http.Request, func()) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	stop := context.AfterFunc(p.life, cancel)
	kept := r.Clone(ctx)
	kept.Body = io.NopCloser(bytes.NewReader(body))
	return kept, func() {
		stop()
		cancel()
	}
}

// writeStatus answers as the API server would, so that client libraries decode it.
func writeStatus(w http.ResponseWriter, fault Fault) {
	w.Header().Set("Content-Type", "application/json")
	if fault.RetryAfter != "" {
		w.Header().Set("Retry-After", fault.RetryAfter)
	}
	w.WriteHeader(fault.Status)
	_ = json.NewEncoder(w).Encode(object{
		"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": fault.Status,
		"message": "kubetest: injected " + http.StatusText(fault.Status),
	})
}

type connectionKey struct{}

// cutOnAbort turns an aborted handler into a connection that is closed below TLS, as a client sees it when
// the server dies. On its own an abort resets only the one HTTP/2 stream.
func cutOnAbort(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			problem := recover()
			if problem == nil {
				return
			}
			// A client that gave up on this request may have others on the connection.
			if r.Context().Err() == nil {
				_ = r.Context().Value(connectionKey{}).(net.Conn).Close()
			}
			panic(problem)
		}()
		next.ServeHTTP(w, r)
	})
}
