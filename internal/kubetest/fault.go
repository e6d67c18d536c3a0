package kubetest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// FaultKind says what becomes of a request.
type FaultKind uint8

const (
	// FaultNone passes the request on: the zero value.
	FaultNone FaultKind = iota
	// FaultStatus answers with Fault.Status; the API server never sees the request.
	FaultStatus
	// FaultDropRequest closes the client's connection; the API server never sees the request.
	FaultDropRequest
	// FaultDropResponse passes the request on and, once the API server has answered, closes the client's connection: the client
	// cannot know that its write was committed. The request is passed on even if the client has given up meanwhile: with a
	// Delay beyond the client's deadline the write is committed after the client's error.
	FaultDropResponse
)

// Fault is what a hook wants to be done to one request. The zero Fault does nothing.
type Fault struct {
	Kind FaultKind
	// Delay passes before anything else is done.
	Delay time.Duration
	// Status is the code that FaultStatus answers.
	Status int
	// RetryAfter is the Retry-After header of FaultStatus, as it is to be sent. Empty: none.
	RetryAfter string
}

// applyFault asks the hook about each request and does what it says.
func (p *Proxy) applyFault(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fault := p.faultOf(r)
		if fault.Kind == FaultDropResponse {
			kept, cancel := p.outliveClient(r)
			defer cancel()
			r = kept
		}
		if !sleep(r.Context(), fault.Delay) {
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

type dropResponseKey struct{}

// outliveClient makes a request that ends with the proxy, not with its client, and whose response is dropped. The body is read
// now: it cannot be read once the client has gone.
func (p *Proxy) outliveClient(r *http.Request) (*http.Request, func()) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	stop := context.AfterFunc(p.life, cancel)
	kept := r.Clone(context.WithValue(ctx, dropResponseKey{}, true))
	kept.Body = io.NopCloser(bytes.NewReader(body))
	return kept, func() {
		stop()
		cancel()
	}
}

// dropResponse runs when the API server has answered, so a write is committed.
func dropResponse(response *http.Response) error {
	if response.Request.Context().Value(dropResponseKey{}) != nil {
		return http.ErrAbortHandler
	}
	return nil
}

// closeOnAbort turns an aborted handler into a closed connection, as a client sees it when the server dies. On its own an abort
// resets only the one HTTP/2 stream.
func closeOnAbort(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			problem := recover()
			if problem == nil {
				return
			}
			// A client that gave up on this request may have others on the connection.
			if r.Context().Err() == nil {
				connectionOf(r).Close()
			}
			panic(problem)
		}()
		next.ServeHTTP(w, r)
	})
}

// writeStatus answers as the API server would, so that client libraries decode it.
func writeStatus(w http.ResponseWriter, fault Fault) {
	if fault.RetryAfter != "" {
		w.Header().Set("Retry-After", fault.RetryAfter)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(fault.Status)
	_ = json.NewEncoder(w).Encode(object{
		"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": fault.Status,
		"message": "kubetest: injected " + http.StatusText(fault.Status),
	})
}

// sleep tells whether d passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
