package sharding

import (
	"net/http"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/locate"
)

// Errors of a Transport. Package singleton has the same.
var (
	// ErrBusy is wrapped when MaxWaiting requests wait already.
	ErrBusy = locate.ErrBusy
	// ErrNowhere is wrapped when no run that takes the request was found in time.
	ErrNowhere = locate.ErrNowhere
	// ErrNoEndpoint is wrapped when the run has no endpoint that is an absolute URL: set Config.Endpoint.
	ErrNoEndpoint = locate.ErrNoEndpoint
)

// Transport is an http.RoundTripper that sends each request to the member that runs its shard. It uses only
// path and query of the request's URL.
//
// While a shard moves its requests wait, in bounded number and time. A request also waits if no connection
// could be made, or if the answer was http.StatusMisdirectedRequest (421): the shard does not run there, and
// nothing was done. A request that was handled, or may have been, is never sent twice. Start from
// NewTransport.
type Transport struct {
	// Manager knows the owners of the shards. Required, and started; after its Stop the owners do not change
	// any more.
	Manager *Manager
	// Shard names the shard that a request is for, such as ShardOf of a part of its path. Required.
	Shard func(r *http.Request) string
	// Base sends the requests. Nil: http.DefaultTransport.
	Base http.RoundTripper
	// MaxWaiting is how many requests may wait for one shard. Default 100.
	MaxWaiting int
	// MaxBody is how many bytes of a request's body are kept, so that it can be sent to another place. A
	// request with a larger body is sent to one place only. Default 64 KiB.
	MaxBody int64
	// MaxWait bounds how long a request waits; the request's context may end it earlier. Default 30 s.
	MaxWait time.Duration

	waiting sync.Map // of shard to *locate.Queue
}

// NewTransport returns a transport with the defaults.
func NewTransport(m *Manager, shard func(r *http.Request) string) *Transport {
	d := locate.DefaultLimits()
	return &Transport{Manager: m, Shard: shard, MaxWaiting: d.MaxWaiting, MaxBody: d.MaxBody, MaxWait: d.MaxWait}
}

var _ http.RoundTripper = (*Transport)(nil)

// RoundTrip implements http.RoundTripper. Errors wrap ErrNoShard, ErrBusy, ErrNowhere or ErrNoEndpoint, or
// are those of Base.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	shard := t.Shard(r)
	to, err := t.Manager.place(shard)
	if err != nil {
		locate.CloseBody(r)
		return nil, err
	}
	q, ok := t.waiting.Load(shard)
	if !ok {
		q, _ = t.waiting.LoadOrStore(shard, new(locate.Queue))
	}
	limits := locate.Limits{Base: t.Base, MaxWaiting: t.MaxWaiting, MaxBody: t.MaxBody, MaxWait: t.MaxWait}
	return limits.RoundTrip(r, to, q.(*locate.Queue))
}
