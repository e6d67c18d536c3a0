package world

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// client is one process's way to a lease: the machine of package lease, and what drives it, as lease.Lease
// does in production. Only the way to the store and the clock are simulated.
type client struct {
	w *World
	p *process
	s *store
	m *lease.Machine
	// origin is what the machine's clock shows when the process's shows zero.
	origin   time.Time
	alarm    alarm
	last     lease.OpID
	calls    map[lease.OpID]func(lease.Finished)
	requests map[lease.RequestID]*request

	// granted is the time of holding the lease that was told last; lost is told that it is over, and nobody
	// here has ended it.
	granted uint64
	lost    func(why string)
	// watches says whether changes of the record are followed, and news is told of them. waking: a change is
	// about to be heard of.
	watches func() bool
	news    func(lease.Record)
	// told: what was heard last was news.
	waking, told bool
}

// epoch is the wall clock at the beginning of each run.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func newClient(p *process, s *store) *client {
	w := p.w
	settings := w.opts.Store.Settings
	c := &client{
		w: w, p: p, s: s, origin: epoch.Add(w.now + p.node.skew - p.clock()),
		calls: make(map[lease.OpID]func(lease.Finished)), requests: make(map[lease.RequestID]*request),
	}
	c.m = lease.NewMachine(string(p.id), settings, settings.Window(), lease.DefaultBackoff(settings, w.draw))
	c.alarm = alarm{p: p, of: c}
	s.clients = append(s.clients, c)
	return c
}

// close ends everything. A lease that is still held runs out.
func (c *client) close() {
	c.step(lease.Closed{})
	c.s.clients = slices.DeleteFunc(c.s.clients, func(o *client) bool { return o == c })
}

// now is the machine's clock.
func (c *client) now() time.Time { return c.origin.Add(c.p.clock()) }

func (c *client) works() bool { return c.p.stage != stageStopped }

func (c *client) next() (at time.Duration, ok bool) {
	due, ok := c.m.Deadline()
	return due.Sub(c.origin), ok
}

func (c *client) tick() { c.step(lease.Tick{}) }

// String is for people.
func (c *client) String() string { return "the lease of " + c.s.String() }

// check reports whether the lease is certainly held.
func (c *client) check() bool { return c.m.Check(c.now()) }

// begin begins an operation; done is called with its end, after what happens now.
func (c *client) begin(do any, done func(lease.Finished)) lease.OpID {
	c.last++
	c.calls[c.last] = done
	op, end := c.last, c.now().Add(c.w.opts.Store.OperationTimeout)
	c.step(lease.Begin{Op: op, Do: do, Deadline: end, Hurry: end})
	return op
}

// cancel gives an operation up. Its end is still told.
func (c *client) cancel(op lease.OpID) { c.step(lease.Cancel{Op: op, Cause: errGivenUp}) }

var (
	errGivenUp = errors.New("given up")
	errSilence = errors.New("no answer in time")
	errRights  = fmt.Errorf("%w: the rights are missing", lease.ErrRefused)
)

// step lets the machine take in an event, and does what it wants.
func (c *client) step(e lease.Event) {
	for _, effect := range c.m.Step(c.now(), e) {
		switch effect := effect.(type) {
		case lease.Send:
			c.send(effect)
		case lease.Abort:
			if r := c.requests[effect.Request]; r != nil {
				c.w.after(0, c.p, func() { r.finish(lease.Failed{Request: r.id, Err: effect.Cause}) })
			}
		case lease.Finished:
			if effect.Tenure != 0 {
				c.granted = effect.Tenure
			}
			done := c.calls[effect.Op]
			delete(c.calls, effect.Op)
			c.w.after(0, c.p, func() { done(effect) })
		case lease.Ended:
			c.ended(effect)
		case lease.News:
			c.told = true
			c.news(effect.Record)
		}
	}
	c.alarm.plan()
}

// ended tells of a loss, after the grant.
func (c *client) ended(e lease.Ended) {
	if e.Tenure != c.granted || errors.Is(e.Reason, lease.ErrReleased) || errors.Is(e.Reason, lease.ErrClosed) {
		return
	}
	c.w.after(0, c.p, func() { c.lost(e.Reason.Error()) })
}

// request is one request to the store, and then its answer.
type request struct {
	c     *client
	id    lease.RequestID
	send  lease.Send
	fault StoreFault // of the node, when the request was sent
	// answer is what the store says once the request has arrived; over says that the machine was told how it
	// ended.
	answer lease.Event
	over   bool
}

// send sends a request. It arrives, whatever becomes of its sender meanwhile.
func (c *client) send(e lease.Send) {
	w := c.w
	r := &request{c: c, id: e.Request, send: e, fault: c.p.node.fault}
	c.requests[e.Request] = r
	if r.fault.Access == Refused {
		r.answer = lease.Failed{Request: r.id, Err: errRights}
		w.enact(w.now+r.leg(), c.p, r)
		return
	}
	w.after(c.p.wall(c.p.clock()+e.Timeout)-w.now, c.p, func() {
		r.finish(lease.Failed{Request: r.id, Err: errSilence})
	})
	if r.fault.Access == Silent || w.chance(r.fault.LoseRequests) {
		return
	}
	there := r.leg()
	if e.Write && w.chance(r.fault.Late) {
		there += w.between(0, r.fault.LateBy)
	}
	w.enact(w.now+there, nil, r)
}

// leg is how long one way takes.
func (r *request) leg() time.Duration {
	o := &r.c.w.opts.Store
	return r.c.w.between(o.Latency, o.Jitter) + r.fault.Slow
}

// act is the arrival, of the request or of its answer.
func (r *request) act() {
	if r.answer != nil {
		r.finish(r.answer)
		return
	}
	w, s := r.c.w, r.c.s
	if r.send.Write && w.chance(r.fault.Conflicts) {
		s.touch() // a foreign write that changes nothing we read, such as a label
	}
	switch {
	case !r.send.Write:
		r.answer = lease.Answered{Request: r.id, Snapshot: s.snapshot()}
		s.witnessed(r.c.p)
	case s.commit(r.c.p, r.send.Prev, r.send.Record):
		r.answer = lease.Answered{Request: r.id, Snapshot: lease.Snapshot{Version: s.at()}}
	default:
		r.answer = lease.Failed{Request: r.id, Err: lease.ErrConflict}
	}
	if r.c.p.node.fault.Access == Silent || w.chance(r.fault.LoseAnswers) {
		return
	}
	w.enact(w.now+r.leg(), r.c.p, r)
}

// finish tells the machine how a request has ended, once.
func (r *request) finish(e lease.Event) {
	if !r.over {
		r.over = true
		delete(r.c.requests, r.id)
		r.c.step(e)
	}
}

// wake lets the client hear of a change of the record, if it watches and can.
func (c *client) wake() {
	o := &c.w.opts.Store
	if c.waking || !c.watches() || c.p.node.fault.Access != Open {
		return
	}
	c.waking = true
	c.w.after(c.w.between(o.Latency, o.Jitter), c.p, func() {
		c.waking = false
		if c.watches() && c.p.node.fault.Access == Open {
			c.s.witnessed(c.p)
			c.hear()
		}
	})
}

// hear takes in what the watch brings. What may be late is no news: then a read tells, as in lease.Follow.
func (c *client) hear() {
	c.told = false
	if c.step(lease.Heard{Snapshot: c.s.snapshot()}); c.told {
		return
	}
	c.begin(lease.ReadOp{}, func(f lease.Finished) {
		if f.Err == nil {
			c.news(f.Snapshot.Record)
		}
	})
}

// recordOf is what a resolver is told of a record. Nobody changes a verdict that was written, so all share
// it.
func recordOf(r lease.Record) sbr.Record {
	return sbr.Record{Holder: sbr.ID(r.Holder), Token: r.Token, Verdict: r.Verdict, Behind: r.Behind}
}

// nonce is a text that no other attempt uses.
func (w *World) nonce() string {
	w.nonces++
	return strconv.FormatUint(w.nonces, 10)
}

// draw returns a random time from zero up to, but not including, d.
func (w *World) draw(d time.Duration) time.Duration { return time.Duration(w.rng.Int64N(int64(d))) }
