package faults

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/internal/logtest"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// settings are the times of all parties: the defaults, shrunk.
var settings = lease.Settings{HeartbeatTimeout: 8 * time.Second, HeartbeatInterval: time.Second,
	OperationTimeout: 2 * time.Second}

const (
	// slack is what a loaded machine may add to a bound.
	slack = 20 * time.Second
	// cellTimeout ends a cell that hangs.
	cellTimeout = 2 * time.Minute
)

// steps are the requests of A that are struck.
var steps = []string{"read", "create", "update", "heartbeat", "release", "watch"}

// cell is one fault at one step: a record of its own; party A, whose requests pass a proxy; party B and an
// observer, whose do not.
type cell struct {
	*T
	ctx    context.Context
	target *Target
	row    *Row
	step   string
	whole  *event // nil: the fault is not the server's
	log    *logtest.Log

	name    string
	proxy   *Proxy
	behind  *tapped     // A's store
	direct  lease.Store // B's and the observer's
	a, b    *Party
	history *Sightings // of the record, as the observer reads it

	mu            sync.Mutex
	armed, struck bool
	at            time.Time // of the strike
	held          bool      // what A's Check said then
	first         chan struct{}
	healed        bool
	got           string
}

// do runs the cell on a goroutine of its own, which its failure ends.
func (c *cell) do(ctx context.Context) {
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		if c.whole != nil {
			defer c.whole.leave(c.step)
		}
		defer c.Finish()
		var cancel context.CancelFunc
		c.ctx, cancel = context.WithTimeout(ctx, cellTimeout)
		c.Cleanup(cancel)
		c.build()
		switch c.step {
		case "heartbeat":
			c.runHeartbeat()
		case "release":
			c.runRelease()
		case "watch":
			c.runWatch()
		default:
			c.runAcquire()
		}
	}()
	<-finished
}

func (c *cell) build() {
	c.name = c.step + "-" + strings.ToLower(rand.Text())
	log := slog.New(slog.NewTextHandler(c.log, nil))
	c.proxy = NewProxy(c.T, c.target.Address, c.strikes)
	c.behind = &tapped{Store: c.target.Open(c.T, c.proxy.Address(), c.name), cell: c}
	c.direct = c.target.Open(c.T, c.target.Address, c.name)
	c.a = NewParty(c.T, "A", "A", c.behind.able(), settings, log)
	c.b = c.party("B", "B")
	c.first = make(chan struct{})
	c.within(slack, "the connections", func() bool { // a fault is to strike a request, not a handshake
		_, err := c.behind.Store.Read(c.ctx)
		return err == nil
	})
	c.history = Follow(c.ctx, c.T, func(ctx context.Context, s *Sightings) error {
		return lease.Follow(ctx, c.direct, lease.Pace{}, nil, func(seen lease.Snapshot) { s.Add(seen.Record) })
	})
}

// party is a party that no fault strikes.
func (c *cell) party(name, mark string) *Party {
	return NewParty(c.T, name, mark, c.direct, settings, slog.New(slog.NewTextHandler(c.log, nil)))
}

// within waits until done.
func (c *cell) within(bound time.Duration, what string, done func() bool) {
	deadline := time.Now().Add(bound)
	for !done() {
		require.NoError(c, c.ctx.Err(), "waiting for %s", what)
		require.False(c, time.Now().After(deadline), "%s: not within %v", what, bound)
		c.pause(20 * time.Millisecond)
	}
}

func (c *cell) pause(d time.Duration) {
	select {
	case <-c.ctx.Done():
	case <-time.After(d):
	}
}

// settled reads the record past A, its proxy and its lease.
func (c *cell) settled() (s lease.Snapshot) {
	c.within(slack, "the observer", func() bool {
		var err error
		s, err = c.direct.Read(c.ctx)
		return err == nil
	})
	return s
}

func (c *cell) takes(p *Party) {
	c.within(slack, p.Name+"'s grant", func() bool { return p.Ask(c.ctx).Kind == sbr.Granted })
}

// gives frees what p holds. On a slow machine p may have lost it meanwhile.
func (c *cell) gives(p *Party) {
	c.within(slack, p.Name+"'s release", func() bool {
		if p.Release(c.ctx) == nil {
			return true
		}
		if c.settled().Record.Holder == p.Name {
			p.Ask(c.ctx)
			return false
		}
		return true
	})
}

// begin arms the fault: the next request of the step's kind is struck.
func (c *cell) begin() {
	WatchOver(c.T, c.a, c.b)
	if c.whole != nil {
		c.whole.ready.Arrive(c.step)
		c.await(c.whole.happened)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed = true
}

// judged ends a fault of the whole server, which must be over before an observer can look.
func (c *cell) judged() {
	if c.whole != nil {
		c.whole.outcomes.Arrive(c.step)
		c.await(c.whole.over)
		c.healed = true
	}
}

func (c *cell) await(event <-chan struct{}) {
	select {
	case <-event:
	case <-c.ctx.Done():
		require.FailNow(c, "waited too long")
	}
}

// hits waits for the strike and returns when it was: a cell whose fault never struck proves nothing.
func (c *cell) hits() time.Time {
	select {
	case <-c.first:
	case <-c.ctx.Done():
		require.FailNow(c, "the fault never struck")
	case <-time.After(slack):
		require.FailNow(c, "the fault never struck")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// heal ends the fault.
func (c *cell) heal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.healed {
		return
	}
	c.healed = true
	if c.answers() {
		c.row.Answer(c.behind.Store, c.step, false)
	}
	c.proxy.Set(Pass, false)
	c.proxy.Break(true)
}

// answers: the fault is one of what the server says, and not of the way to it.
func (c *cell) answers() bool { return c.row.Answer != nil }

// strikes notes the first strike. The proxy calls it, too.
func (c *cell) strikes() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.armed && !c.struck {
		c.struck, c.at, c.held = true, time.Now(), c.a.Check()
		close(c.first)
	}
}

// about is called when A's store is about to send a request of that kind.
func (c *cell) about(kind string) (struck bool) {
	ours := kind == c.step || c.whole != nil
	if kind == "watch" && c.whole == nil {
		ours = ours && c.answers() // else the stream is broken: see breakStream
	}
	c.mu.Lock()
	again := c.struck && c.row.deed != nil && c.row.Stays && kind != "read" && kind != "watch"
	if !c.armed || c.healed || !again && (c.struck || !ours) {
		c.mu.Unlock()
		return false
	}
	c.mu.Unlock()
	switch {
	case c.whole != nil:
		c.strikes()
	case c.row.deed != nil:
		c.row.deed(c)
		c.strikes()
	case c.answers():
		c.row.Answer(c.behind.Store, c.step, true)
		c.strikes()
	default:
		c.proxy.Set(c.row.mode, !c.row.Stays)
	}
	return true
}

// done is called when that request is over.
func (c *cell) done() {
	switch {
	case c.whole != nil || c.row.Stays:
	case c.answers():
		c.row.Answer(c.behind.Store, c.step, false)
	case c.row.mode == Refuse:
		c.proxy.Set(Pass, false)
	}
}

// tapped is A's store: it tells the cell of each request before it is sent.
type tapped struct {
	lease.Store
	cell *cell
}

// able is the store, with a watch where it has one.
func (s *tapped) able() lease.Store {
	if w, ok := s.Store.(lease.Watcher); ok && !s.cell.target.Polls {
		return &watching{s, w}
	}
	return s
}

func (s *tapped) tell(kind string) func() {
	if s.cell.about(kind) {
		return s.cell.done
	}
	return func() {}
}

// Read implements lease.Store.
func (s *tapped) Read(ctx context.Context) (lease.Snapshot, error) {
	defer s.tell("read")()
	return s.Store.Read(ctx)
}

// Write implements lease.Store.
func (s *tapped) Write(ctx context.Context, r lease.Record, prev lease.Version) (lease.Version, error) {
	defer s.tell(kindOf(r, prev, s.cell.step))()
	return s.Store.Write(ctx, r, prev)
}

// kindOf says what a write of A is for.
func kindOf(r lease.Record, prev lease.Version, step string) string {
	switch {
	case r.Holder == "":
		return "release"
	case prev == "":
		return "create"
	case step == "heartbeat": // A has the lease already when the fault is armed
		return "heartbeat"
	default:
		return "update"
	}
}

type watching struct {
	*tapped
	inner lease.Watcher
}

// Watch implements lease.Watcher.
func (s *watching) Watch(ctx context.Context, fn func(lease.Snapshot)) error {
	defer s.tell("watch")()
	return s.inner.Watch(ctx, fn)
}

// result is what became of the call, and what an independent client found in the record then.
func (c *cell) result(outcome string, s lease.Snapshot) {
	c.got = fmt.Sprintf("%s; %s", outcome, Describe(s))
	if !c.row.Late || !c.row.Stays || !slices.Contains([]string{"create", "update", "release"}, c.step) {
		return
	}
	c.within(slack, "the late write", func() bool {
		late := c.history.first(c.a.LastNonce(), c.step != "release")
		c.got = fmt.Sprintf("%s; %s, then %s", outcome, Describe(s), late)
		return late != ""
	})
}

// asked is an Acquire of A, which is compared with the record right then (S4).
func (c *cell) asked() (linear.Answer, lease.Snapshot) {
	out := c.a.Ask(c.ctx)
	c.hits()
	c.judged()
	seen := c.settled()
	Honest(c.T, c.a, out, seen)
	return out, seen
}
