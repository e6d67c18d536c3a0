package locate

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

// Errors of a round trip, in addition to those of its transport.
var (
	// ErrBusy is wrapped when MaxWaiting requests wait already.
	ErrBusy = errors.New("too many requests wait")
	// ErrNowhere is wrapped when no run that takes the request was found in time.
	ErrNowhere = errors.New("no run was found in time")
	// ErrNoEndpoint is wrapped when the run has no endpoint that is an absolute URL.
	ErrNoEndpoint = errors.New("its member names no endpoint: set Config.Endpoint")
)

// Limits are those of requests to runs that move. Base carries them; nil: http.DefaultTransport.
type Limits struct {
	Base       http.RoundTripper
	MaxWaiting int
	MaxBody    int64
	MaxWait    time.Duration
}

// DefaultLimits are 100 requests that wait for at most 30 s, and bodies of 64 KiB.
func DefaultLimits() Limits {
	return Limits{MaxWaiting: 100, MaxBody: 64 << 10, MaxWait: 30 * time.Second}
}

// Queue counts the requests that wait. The zero Queue is empty. It is safe for concurrent use.
type Queue struct{ n atomic.Int64 }

// enter reports whether there was room.
func (q *Queue) enter(most int) bool {
	if q.n.Add(1) <= int64(most) {
		return true
	}
	q.leave()
	return false
}

func (q *Queue) leave() { q.n.Add(-1) }

// The pauses before a request is sent again to a run that did not take it: the run may be about to.
const (
	retryAfter  = 20 * time.Millisecond
	retryAtMost = time.Second
)

// RoundTrip sends a request to where a slot runs, and waits in q while that is not known. A request that made
// no connection, or was answered with 421 (Misdirected Request), was not handled: it waits for the next
// location, or a moment for the same one. Errors wrap ErrBusy, ErrNowhere or ErrNoEndpoint, or are those of
// Base.
func (o Limits) RoundTrip(r *http.Request, to Slot, q *Queue) (*http.Response, error) {
	body, again, err := o.keep(r)
	if err != nil {
		return nil, err
	}
	w := waiter{Limits: o, to: to, q: q}
	at := to.At()
	for {
		if !at.Known() || w.tried > 0 {
			at, err = w.next(r.Context())
		}
		var out *http.Request
		if err == nil {
			out, err = rewrite(r, at, body)
		}
		if err != nil {
			CloseBody(r)
			return nil, err
		}
		resp, err := cmp.Or(o.Base, http.DefaultTransport).RoundTrip(out)
		if !again || !unhandled(resp, err) {
			return resp, err
		}
		if err == nil {
			discard(resp.Body) // nobody reads why
		}
		w.tried = at.Token
		to.Refresh()
	}
}

// CloseBody closes a request's body, as an http.RoundTripper must when it does not send the request.
func CloseBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}

// keep reads a small body, so that it can be sent again. body is nil where the request's own body is sent;
// again is false where it can be sent only once.
func (o Limits) keep(r *http.Request) (body []byte, again bool, err error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, true, nil
	}
	if r.ContentLength <= 0 || r.ContentLength > o.MaxBody { // 0: not known, as there is a body
		return nil, false, nil
	}
	defer r.Body.Close()
	body, err = io.ReadAll(r.Body)
	return body, true, err
}

// waiter is a request that may have to wait.
type waiter struct {
	Limits
	to    Slot
	q     *Queue
	tried uint64 // the token of the run that has not taken it; 0: none yet
	pause time.Duration
	end   time.Time // when its time is over; zero: it has not waited yet
}

// next waits for a location other than the one that was tried in vain, or for a moment.
func (w *waiter) next(ctx context.Context) (Location, error) {
	most := w.MaxWaiting
	if w.end.IsZero() {
		w.end = time.Now().Add(w.MaxWait)
	} else {
		most = math.MaxInt // the request has waited before: it is not refused now
	}
	if !w.q.enter(most) {
		return Location{}, fmt.Errorf("%w: %d do already", ErrBusy, most)
	}
	defer w.q.leave()
	ctx, cancel := context.WithDeadline(ctx, w.end)
	defer cancel()
	w.pause = min(max(2*w.pause, retryAfter), retryAtMost)
	moment, over := context.WithTimeout(ctx, w.pause)
	defer over()
	at, err := w.to.Wait(moment, w.tried)
	if err != nil && ctx.Err() == nil && moment.Err() != nil {
		at, err = w.to.Wait(ctx, 0) // the same location, if it still is the known one
	}
	if err != nil {
		return Location{}, fmt.Errorf("%w: %w", ErrNowhere, err)
	}
	return at, nil
}

// rewrite returns the request as it goes to a location.
func rewrite(r *http.Request, at Location, body []byte) (*http.Request, error) {
	u, err := url.Parse(at.Endpoint)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%w: %s says %q", ErrNoEndpoint, at.Name, at.Endpoint)
	}
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.Host = u.Scheme, u.Host, ""
	if u.Path != "" {
		out.URL = u.JoinPath(r.URL.EscapedPath())
		out.URL.RawQuery = r.URL.RawQuery
	}
	if body != nil {
		out.Body = io.NopCloser(bytes.NewReader(body))
	}
	return out, nil
}

// discard reads what little is left, so that the connection can be used again.
func discard(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 4<<10)
	_ = body.Close()
}

// unhandled reports whether a request has certainly changed nothing: no connection was made, or the member
// answered that the slot does not run there.
func unhandled(resp *http.Response, err error) bool {
	if err == nil {
		return resp.StatusCode == http.StatusMisdirectedRequest
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}
