package agentrpc

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/serf/client"
	"github.com/hashicorp/serf/serf"
	"golang.org/x/time/rate"

	"github.com/serf-sbr/serf-sbr/downing/wire"
)

// line is one of the two connections for messages. The resolver has its own: whatever becomes of the other
// one, where applications talk, is nothing to it.
type line struct {
	query string // the name of the queries
	// filter is what the agent shall send: what may change the members, and our queries. Junk stays with the
	// agent.
	filter string
	now    atomic.Pointer[messages] // nil without a connection
}

func lines() map[string]*line {
	return map[string]*line{
		wire.MessageQuery: {query: wire.MessageQuery,
			filter: "member-join,member-leave,member-failed,member-update,member-reap,query:" + wire.MessageQuery},
		wire.FrameQuery: {query: wire.FrameQuery, filter: "query:" + wire.FrameQuery},
	}
}

const (
	recordQueue = 1024
	queryQueue  = 512
	answerQueue = 256
	// queryRate is how many queries of one line are taken in each second; 500 members in the middle of a
	// partition send half as many.
	queryRate = 1000
	// relays is how many other members carry each answer as well, for the sake of pairs that cannot reach
	// each other.
	relays = 2
	// dropsEvery bounds how often dropped queries are logged.
	dropsEvery = time.Minute
)

// messages is a connection for queries and events.
type messages struct {
	line    *line
	link    *link
	records chan map[string]any
	queries chan record
	answers chan answer
	limit   *rate.Limiter
}

type answer struct {
	id      uint64
	payload []byte
}

func (a *Agent) openMessages(ctx context.Context, to *line) (*messages, error) {
	l, err := dial(ctx, &a.opts)
	if err != nil {
		return nil, err
	}
	l.streams = true
	m := &messages{line: to, link: l, records: make(chan map[string]any, recordQueue),
		queries: make(chan record, queryQueue),
		answers: make(chan answer, answerQueue), limit: rate.NewLimiter(queryRate, queryRate)}
	ctx, cancel := context.WithTimeout(ctx, a.opts.Timeout)
	defer cancel()
	err = l.do(ctx, func(c *client.RPCClient) error {
		_, err := c.Stream(to.filter, m.records)
		return err
	})
	if err != nil {
		l.close()
		return nil, err
	}
	to.now.Store(m)
	return m, nil
}

// followMessages delivers events, and connects again when the connection is lost.
func (a *Agent) followMessages(m *messages) {
	for to := m.line; m != nil; {
		a.deliver(m)
		to.now.CompareAndSwap(m, nil)
		m.link.close()
		a.readSoon()
		m = retry(a, "events", func(ctx context.Context) (*messages, error) { return a.openMessages(ctx, to) })
		a.readSoon() // what happened in between is not repeated
		a.changed()
	}
}

// deliver takes records in until the connection ends.
func (a *Agent) deliver(m *messages) {
	unhook := context.AfterFunc(a.ctx, func() { m.link.cut(a.ctx.Err()) })
	defer unhook()
	a.spawn(func() { a.tellQueries(m) })
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	a.spawn(func() { a.sendAnswers(ctx, m) })
	defer close(m.queries)
	said, dropped := time.Now(), 0
	for raw := range m.records {
		m.link.finished()
		switch event, _ := text(raw["Event"]); {
		case strings.HasPrefix(event, "member-"):
			a.readSoon()
		case event == "query":
			if r, ok := decode(raw); ok && !m.take(r) {
				dropped++
			}
		}
		if dropped > 0 && time.Since(said) >= dropsEvery {
			a.log.Warn("sbr: dropped queries: more arrived than members can have sent", "queries", dropped)
			said, dropped = time.Now(), 0
		}
	}
}

// take reports false for a query without room, and for a query of another name.
func (m *messages) take(r record) bool {
	if r.name != m.line.query || !m.limit.Allow() {
		return false
	}
	select {
	case m.queries <- r:
		return true
	default:
		return false
	}
}

func (a *Agent) tellQueries(m *messages) {
	for r := range m.queries {
		if a.events.Query == nil {
			continue
		}
		a.telling.Lock()
		a.events.Query(r.name, "", r.payload, func(payload []byte) error { return m.respond(r.id, payload) })
		a.telling.Unlock()
	}
}

// respond never blocks: the caller must not wait for an agent that hangs.
func (m *messages) respond(id uint64, payload []byte) error {
	select {
	case m.answers <- answer{id: id, payload: payload}:
		return nil
	default:
		return ErrBusy
	}
}

func (a *Agent) sendAnswers(ctx context.Context, m *messages) {
	for {
		select {
		case r := <-m.answers:
			bounded, cancel := context.WithTimeout(ctx, a.opts.Timeout)
			err := m.link.do(bounded, func(c *client.RPCClient) error { return c.Respond(r.id, r.payload) })
			cancel()
			if err != nil && ctx.Err() == nil {
				a.log.Debug("sbr: an answer was not sent", "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// Query implements downing.Agent. Errors: ErrNotCurrent while there is no connection, that of a name which is
// none of ours, and those of the agent.
func (a *Agent) Query(name string, payload []byte, timeout time.Duration) (<-chan serf.NodeResponse, error) {
	to, ok := a.lines[name]
	if !ok {
		return nil, fmt.Errorf("agentrpc: queries are called %s or %s, not %q", wire.MessageQuery,
			wire.FrameQuery, name)
	}
	m := to.now.Load()
	if m == nil {
		return nil, ErrNotCurrent
	}
	in := make(chan client.NodeResponse, 64)
	ctx, cancel := context.WithTimeout(a.ctx, a.opts.Timeout)
	defer cancel()
	over := time.NewTimer(timeout)
	err := m.link.do(ctx, func(c *client.RPCClient) error {
		return c.Query(&client.QueryParam{Name: name, Payload: payload, Timeout: timeout, RelayFactor: relays,
			RespCh: in})
	})
	if err != nil {
		over.Stop()
		return nil, err
	}
	list, _, _ := a.Members()
	out := make(chan serf.NodeResponse, 2*len(list)+16) // Serf passes on one answer of each member
	a.spawn(func() {
		defer over.Stop()
		forward(out, in, over.C)
	})
	return out, nil
}

// forward passes answers on until the time is over or the connection ends. The client itself never waits for
// a reader.
func forward(out chan<- serf.NodeResponse, in <-chan client.NodeResponse, over <-chan time.Time) {
	defer close(out)
	for {
		select {
		case r, ok := <-in:
			if !ok {
				return
			}
			select {
			case out <- serf.NodeResponse{From: r.From, Payload: r.Payload}:
			default:
			}
		case <-over:
			return
		}
	}
}

// record is a query of the stream.
type record struct {
	id      uint64
	name    string
	payload []byte
}

// decode reads a query as agents of all versions write it; ok is false for one that makes no sense.
func decode(raw map[string]any) (r record, ok bool) {
	id, numbered := number(raw["ID"])
	name, named := text(raw["Name"])
	payload, read := text(raw["Payload"])
	r = record{id: id, name: name, payload: []byte(payload)}
	return r, numbered && named && (read || raw["Payload"] == nil)
}

func text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case []byte:
		return string(v), true
	default:
		return "", false
	}
}

func number(v any) (uint64, bool) {
	switch v := v.(type) {
	case uint64:
		return v, true
	case int64:
		return uint64(v), v >= 0
	default:
		return 0, false
	}
}
