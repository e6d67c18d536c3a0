package kubetest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/sleep"
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
	// FaultDropResponse passes the request on and, once the API server has answered, closes the client's
	// connection: the client cannot know that its write was committed. The request is passed on even if the
	// client has given up meanwhile: with a Delay beyond the client's deadline the write is committed after
	// the client's error.
	FaultDropResponse
	// FaultReplaceResponse passes the request on and answers with Fault.Status instead of what the API server
	// said: a write is committed, and its client hears of an error.
	FaultReplaceResponse
	// FaultHalfBody passes the request on and gives the client the first half of the answer's body (of a
	// watch: of what the stream brings first), which then ends as if that were all.
	FaultHalfBody
)

// Cut is how FaultDropRequest and FaultDropResponse end the client's connection. All that shares the
// connection goes with it.
type Cut uint8

const (
	// CutClose closes it, as a process that ends does: the zero value.
	CutClose Cut = iota
	// CutReset resets it, as a firewall or a machine that has restarted does.
	CutReset
	// CutFreeze leaves it open and dead: nothing that the client sends is read any more and nothing is
	// answered, HTTP/2 pings included, as behind a link that drops all packets. Only the client or Close ends
	// it.
	CutFreeze
)

// Fault is what a hook wants to be done to one request. The zero Fault does nothing.
type Fault struct {
	Kind FaultKind
	// Delay passes before anything else is done.
	Delay time.Duration
	// ResponseDelay is for how long the API server's answer is held back: a write is committed at once, its
	// client waits.
	ResponseDelay time.Duration
	// Status is the code that FaultStatus and FaultReplaceResponse answer.
	Status int
	// Foreign makes that answer a line of text, as a load balancer gives it, instead of the API server's own
	// form.
	Foreign bool
	// RetryAfter is the Retry-After header of these answers, as it is to be sent. Empty: none.
	RetryAfter string
	// Cut is how the connection ends, if the Kind ends it.
	Cut Cut
	// Answered is called with the status code of the API server as soon as it has answered, whatever becomes
	// of the answer. It is not called for a request that the API server never saw. Nil: no call.
	Answered func(status int)
}

// applyFault asks the hook about each request and does what it says.
func (p *Proxy) applyFault(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fault := p.faultOf(r)
		fateOf(r).cut = fault.Cut
		r = r.WithContext(context.WithValue(r.Context(), faultKey{}, fault))
		if fault.Kind == FaultDropResponse {
			kept, cancel := p.outliveClient(r)
			defer cancel()
			r = kept
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
