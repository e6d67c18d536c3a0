package singleton

import (
	"net/http"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/locate"
)

// Errors of a Transport. Package sharding has the same.
var (
	// ErrBusy is wrapped when as many requests wait as may.
	ErrBusy = locate.ErrBusy
	// ErrNowhere is wrapped when no run was found in time that takes the request.
	ErrNowhere = locate.ErrNowhere
	// ErrNoEndpoint is wrapped when the run has no endpoint that is an absolute URL: set Config.Endpoint.
	ErrNoEndpoint = locate.ErrNoEndpoint
)

// Transport is an http.RoundTripper that sends each request to wherever a singleton runs. Of the request's
// URL only path and query count.
//
// While the singleton is handed over requests wait, in bounded number and time. So does a request that could
// not be sent because nobody listens there any more, and one that was answered with
// http.StatusMisdirectedRequest (421), by which a member says that the singleton does not run there and that
// nothing was done. One that was handled, or may have been, is never sent twice. Start from NewTransport.
type Transport struct {
	// Locator finds the singleton. Required.
	Locator *Locator
	// Base sends the requests. Nil: http.DefaultTransport.
	Base http.RoundTripper
	// MaxWaiting is how many requests may wait. Default 100.
	MaxWaiting int
	// MaxBody is how many bytes of a request's body are kept, so that it can be sent to another place. Larger
	// ones are sent to the first. Default 64 KiB.
	MaxBody int64
	// MaxWait bounds how long a request waits; the request's context may end it earlier. Default 30 s.
	MaxWait time.Duration

	waiting locate.Queue
}

// NewTransport returns a transport with the defaults.
func NewTransport(l *Locator) *Transport {
	d := locate.DefaultLimits()
	return &Transport{Locator: l, MaxWaiting: d.MaxWaiting, MaxBody: d.MaxBody, MaxWait: d.MaxWait}
}

var _ http.RoundTripper = (*Transport)(nil)

// RoundTrip implements http.RoundTripper. Errors wrap ErrBusy, ErrNowhere or ErrNoEndpoint, or are those of
// Base.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	limits := locate.Limits{Base: t.Base, MaxWaiting: t.MaxWaiting, MaxBody: t.MaxBody, MaxWait: t.MaxWait}
	return limits.RoundTrip(r, t.Locator.at.Slot(0), &t.waiting)
}
