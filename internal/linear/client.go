package linear

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Client is one owner whose calls are recorded.
type Client struct {
	*lease.Lease
	history *History
	index   int
	owner   string

	// seen is the record it was shown last: what its next verdict builds on.
	seen  lease.Record
	nonce string
	drawn int
	// held is Done of the grant whose end is recorded.
	held <-chan struct{}

	mu sync.Mutex
	// sent are the nonces that left in a write with a holder; freeing and tidied those of writes without one,
	// sent by a Release and by the lease itself.
	sent, freeing, tidied map[string]bool
}

// Open returns a client with a lease over store. Its index, less than 63, is its name in verdicts; lives
// tells apart the lives of one index. Options.Nonce is replaced.
func (h *History) Open(index, lives int, store lease.Store, s lease.Settings, o lease.Options) (
	*Client, error) {
	c := &Client{
		history: h, index: index, owner: fmt.Sprintf("c%d.%d", index, lives),
		sent: map[string]bool{}, freeing: map[string]bool{}, tidied: map[string]bool{},
	}
	o.Nonce = c.draw
	var err error
	if c.Lease, err = lease.New(tap{store, c}, c.owner, s, o); err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.clients = max(h.clients, index+1)
	h.mu.Unlock()
	return c, nil
}

func (c *Client) draw() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drawn++
	c.nonce = fmt.Sprintf("%s#%d", c.owner, c.drawn)
	return c.nonce
}

// begin is the start of an operation: no nonce is drawn yet, and nothing freed.
func (c *Client) begin(ctx context.Context) (context.Context, int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nonce = ""
	clear(c.freeing)
	return context.WithValue(ctx, inOperation{}, true), c.history.now()
}

// Acquire records a plain Acquire, or one with a verdict that lets survivors go on and builds on the record
// seen last.
func (c *Client) Acquire(ctx context.Context, survivors []sbr.ID) sbr.Outcome {
	in := input{action: acquire, who: c.owner}
	var p lease.Proposal
	if survivors != nil {
		in.verdict, in.base, in.survivors = true, c.seen.Token, setOf(survivors)
		p = lease.Proposal{Base: in.base, Verdict: &sbr.Verdict{Survivors: survivors, DecidedBy: sbr.ID(c.owner)}}
	}
	ctx, called := c.begin(ctx)
	out := AnswerOf(c.Lease.Acquire(ctx, p))
	if g := out.Grant; g != nil && c.held != g.Done() {
		c.held = g.Done()
		out.Following(func(reason error) {
			c.history.add(c.index, input{action: lost, who: c.owner, reason: reason.Error()},
				c.history.now(), output{})
		})
	}
	c.mu.Lock()
	in.nonce = c.nonce
	wrote := c.sent[in.nonce]
	c.mu.Unlock()
	if wrote {
		c.doubt(in, called, &out)
	}
	if out.Kind == sbr.Unknown {
		c.history.count("unknown")
	} else {
		c.history.add(c.index, in, called, output{kind: out.Kind, superseded: out.Superseded,
			shown: recordOf(out.Record)})
		c.seen = out.Record
	}
	return out.Kind
}

// doubt notes what the writes of an Acquire may have done beside what it has answered.
func (c *Client) doubt(in input, called int64, out *Answer) {
	in.action = lateGrant
	switch {
	case out.Kind == sbr.Unknown && errors.Is(out.Err, lease.ErrRefused):
		c.history.count("refused") // "the store certainly wrote nothing"
	case out.Kind == sbr.Unknown:
		c.history.pending(c.index, in, called)
	case c.history.opts.Tokens != nil:
		// Granted in between, and replaced again before it could answer: only where holders expire.
		for _, token := range c.history.opts.Tokens(in.nonce) {
			if out.Kind != sbr.Granted || token != out.Record.Token {
				c.history.add(c.index, in, called, output{})
			}
		}
	}
}

func (h *History) count(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tally[what]++
}

// Release records a Release.
func (c *Client) Release(ctx context.Context) error {
	ctx, called := c.begin(ctx)
	err := c.Lease.Release(ctx)
	out := wasReleased
	switch {
	case errors.Is(err, lease.ErrNotHeld):
		out = notHeld
	case err != nil:
		out = releaseUnknown
	}
	c.mu.Lock()
	freeing := keys(c.freeing)
	c.mu.Unlock()
	if out == releaseUnknown {
		for _, nonce := range freeing {
			c.history.pending(c.index, input{action: lateFree, who: c.owner, nonce: nonce}, called)
		}
	}
	c.history.add(c.index, input{action: release, who: c.owner, sent: len(freeing) > 0}, called,
		output{released: out})
	return err
}

func keys(m map[string]bool) (all []string) {
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

// Read records a Read that was answered.
func (c *Client) Read(ctx context.Context) (lease.Record, error) {
	ctx, called := c.begin(ctx)
	r, err := c.Lease.Read(ctx)
	if err == nil {
		c.history.add(c.index, input{action: read, who: c.owner}, called, output{shown: recordOf(r)})
		c.seen = r
	}
	return r, err
}

// Look records what Check and Token say, and returns the token.
func (c *Client) Look() uint64 {
	called := c.history.now()
	token := c.Token()
	c.history.add(c.index, input{action: look, who: c.owner}, called, output{token: token})
	return token
}

// Answer is what an Acquire has answered, as one value for tests to compare.
type Answer struct {
	Kind sbr.Outcome
	// Grant is the HeldError's if there is one.
	Grant *lease.Grant
	// Record is the grant's, or that of the HeldError, as are Superseded and RetryAfter.
	Record     lease.Record
	Superseded bool
	RetryAfter time.Duration
	// Err is nil where there is no more to be said than that it is granted or held.
	Err error
}

// AnswerOf returns what an Acquire has answered.
func AnswerOf(g *lease.Grant, err error) Answer {
	a := Answer{Kind: lease.OutcomeOf(err), Grant: g, Err: err}
	if g != nil {
		a.Record = g.Record()
	}
	if held := (*lease.HeldError)(nil); errors.As(err, &held) {
		a.Record, a.Superseded, a.RetryAfter, a.Grant = held.Record, held.Superseded, held.RetryAfter, held.Grant
		if held.Error() == err.Error() {
			a.Err = nil
		}
	}
	return a
}

// Following calls lost when the grant has ended without a word of its owner.
func (a Answer) Following(lost func(error)) Answer {
	if a.Grant == nil {
		return a
	}
	go func() {
		<-a.Grant.Done()
		if err := a.Grant.Lost(); err != nil {
			lost(err)
		}
	}()
	return a
}

// tap is a client's connection to the store. It notes what was sent, never what became of it.
type tap struct {
	lease.Store
	client *Client
}

type inOperation struct{}

// Write implements lease.Store.
func (t tap) Write(ctx context.Context, r lease.Record, prev lease.Version) (lease.Version, error) {
	t.client.sends(r, ctx.Value(inOperation{}) != nil)
	return t.Store.Write(ctx, r, prev)
}

// Watch implements lease.Watcher.
func (t tap) Watch(ctx context.Context, fn func(lease.Snapshot)) error {
	w, ok := t.Store.(lease.Watcher)
	if !ok {
		return errors.ErrUnsupported
	}
	return w.Watch(ctx, fn)
}

// sends is called before a write leaves. One without a holder frees the grant of its nonce; what is not part
// of an operation is the lease's own tidying up.
func (c *Client) sends(r lease.Record, inOperation bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Holder != "" {
		c.sent[r.Nonce] = true
		return
	}
	if inOperation {
		c.freeing[r.Nonce] = true
	} else if !c.tidied[r.Nonce] {
		c.tidied[r.Nonce] = true
		c.history.pending(c.index, input{action: lateFree, who: c.owner, nonce: r.Nonce}, c.history.now())
	}
}
