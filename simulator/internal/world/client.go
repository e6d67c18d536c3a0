package world

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// client is one process's way to the store. It keeps the contract of lease.Lease: an answer is Granted or Held only when
// that is certain, a holder is judged by its silence as seen from here, and a grant that came too late is undone.
type client struct {
	w    *World
	p    *process
	s    *store
	user tenant

	know  state // the newest state learnt
	have  bool
	since time.Duration // since when the holder's last sign of life has been standing there

	tenure  uint64 // the nonce of the grant that is held, zero: none
	trusted time.Duration
	strays  []stray
	tidying bool
	waking  bool
}

// tenant is on whose behalf a client asks for the lease: the resolver, or a slot.
type tenant interface {
	// answered is told what became of an attempt.
	answered(attempt uint64, o sbr.Outcome, s state, why string)
	// released is told that the lease was given back, or that this took too long.
	released(attempt uint64, done bool)
	// lost is told that a lease that was held is not any more.
	lost(why string)
}

// stray is a grant of our own that was given up, or that may still come.
type stray struct {
	nonce uint64
	prev  uint64 // the version its write was sent for
	sent  bool   // the write may still be under way
}

// request is one request to the store, and then its answer.
type request struct {
	c     *client
	fault StoreFault // of the node, when the request was sent
	write bool
	// do is the arrival at the store, whatever became of the sender meanwhile; done hears whether an answer came back in time.
	do   func()
	done func(ok bool)
	// over says that done was called, back that the answer is on its way.
	over, back bool
}

// call sends a request that is an operation of its own.
func (c *client) call(write bool, do func(), done func(ok bool)) {
	c.send(c.w.now+c.w.opts.Store.Timeout, write, do, done)
}

// send sends one request of an operation that ends at end.
func (c *client) send(end time.Duration, write bool, do func(), done func(ok bool)) {
	w := c.w
	r := &request{c: c, fault: c.p.node.fault, write: write, do: do, done: done}
	if r.fault.Access == Refused {
		w.enact(w.now+r.leg(), c.p, (*expiry)(r))
		return
	}
	w.enact(w.now+w.opts.Store.requestTime(end-w.now), c.p, (*expiry)(r))
	if r.fault.Access == Silent || w.chance(r.fault.LoseRequests) {
		return
	}
	there := r.leg()
	if write && w.chance(r.fault.Late) {
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
	w := r.c.w
	if r.back {
		r.finish(true)
		return
	}
	if r.write && w.chance(r.fault.Conflicts) {
		r.c.s.version++ // a foreign write that changes nothing we read, such as a label
	}
	r.do()
	if r.c.p.node.fault.Access == Silent || w.chance(r.fault.LoseAnswers) {
		return
	}
	r.back = true
	w.enact(w.now+r.leg(), r.c.p, r)
}

func (r *request) finish(ok bool) {
	if !r.over {
		r.over = true
		r.done(ok)
	}
}

// expiry is the moment at which a request has had no answer for too long.
type expiry request

func (e *expiry) act() { (*request)(e).finish(false) }

// learn takes in a state of the store; an older one than is known is not believed.
func (c *client) learn(s state) {
	if c.have && s.version < c.know.version {
		return
	}
	c.s.witnessed(c.p, s.version)
	if !c.have || s.record.Holder != c.know.record.Holder || s.nonce != c.know.nonce || s.beat != c.know.beat {
		c.since = c.p.clock()
	}
	c.know, c.have = s, true
	if c.tenure != 0 && (s.nonce != c.tenure || s.record.Holder != c.p.id) {
		c.lose("the record is another one's")
	}
	c.strays = slices.DeleteFunc(c.strays, func(t stray) bool {
		return !c.mine(s, t.nonce) && !(t.sent && t.prev == s.version)
	})
	if c.tenure == 0 && c.strayIn(s) {
		c.tidyLater(2 * c.w.opts.Store.Timeout)
	}
}

func (c *client) mine(s state, nonce uint64) bool {
	return s.nonce == nonce && s.record.Holder == c.p.id
}

func (c *client) strayIn(s state) bool {
	return slices.ContainsFunc(c.strays, func(t stray) bool { return c.mine(s, t.nonce) })
}

// read answers one ReadLease.
func (c *client) read(eff sbr.ReadLease) {
	c.w.tried(c.p, "reads", eff.Attempt)
	var s state
	c.call(false, func() { s = c.s.state }, func(ok bool) {
		if !ok {
			c.p.step(sbr.LeaseRead{Attempt: eff.Attempt, Err: "no answer"})
			return
		}
		c.learn(s)
		c.p.step(sbr.LeaseRead{Attempt: eff.Attempt, Record: c.know.record})
	})
}

// begin starts a tenure: the lease is held under the nonce, by a write that was sent at sent.
func (c *client) begin(nonce uint64, sent time.Duration) bool {
	o := &c.w.opts.Store
	c.trusted = sent + o.TTL - o.TTL/8 - min(o.Timeout, o.TTL/4)
	if c.p.clock() >= c.trusted {
		return false
	}
	c.tenure = nonce
	c.strays = slices.DeleteFunc(c.strays, func(t stray) bool { return t.nonce == nonce })
	c.w.after(o.Interval, c.p, func() { c.beat(nonce) })
	return true
}

// beat is one heartbeat of a tenure.
func (c *client) beat(nonce uint64) {
	if c.tenure != nonce {
		return
	}
	o := &c.w.opts.Store
	sent := c.p.clock()
	if sent >= c.trusted {
		c.lose("no heartbeat was confirmed in time")
		return
	}
	var s state
	c.send(c.w.now+min(c.trusted-sent, o.Timeout), true, func() {
		if st := c.s; c.mine(st.state, nonce) {
			next := st.state
			next.beat++
			st.commit(c.p, st.version, next)
		}
		s = c.s.state
	}, func(ok bool) {
		switch {
		case c.tenure != nonce:
		case !ok:
			c.w.after(o.Interval/4, c.p, func() { c.beat(nonce) })
		default:
			c.learn(s)
			if c.tenure == nonce {
				c.trusted = sent + o.TTL - o.TTL/8 - min(o.Timeout, o.TTL/4)
				c.w.after(o.Interval, c.p, func() { c.beat(nonce) })
			}
		}
	})
}

func (c *client) lose(why string) {
	c.tenure = 0
	c.user.lost(why)
}

// release gives the lease back.
func (c *client) release(attempt uint64) {
	nonce := c.tenure
	c.tenure = 0
	if nonce != 0 {
		c.strays = append(c.strays, stray{nonce: nonce})
	}
	if len(c.strays) == 0 {
		c.w.after(0, c.p, func() { c.user.released(attempt, true) })
		return
	}
	var s state
	c.call(true, func() { s = c.free() }, func(ok bool) {
		if ok {
			c.learn(s)
		} else {
			c.tidyLater(c.w.opts.Store.Timeout)
		}
		c.user.released(attempt, ok && len(c.strays) == 0)
	})
}

// free runs at the store: it frees the record if a stray grant stands in it.
func (c *client) free() state {
	st := c.s
	if c.tenure == 0 && c.strayIn(st.state) {
		next := st.state
		next.record.Holder = ""
		st.commit(c.p, st.version, next)
	}
	return st.state
}

// tidyLater undoes strays in the background.
func (c *client) tidyLater(d time.Duration) {
	if c.tidying {
		return
	}
	c.tidying = true
	c.w.after(d, c.p, func() {
		c.tidying = false
		if len(c.strays) == 0 {
			return
		}
		var s state
		c.call(true, func() { s = c.free() }, func(ok bool) {
			if ok {
				c.learn(s)
			}
			if len(c.strays) > 0 {
				c.tidyLater(c.w.opts.Store.Interval)
			}
		})
	})
}

// wake tells the process of a change of the record, if it watches and can.
func (c *client) wake() {
	o := &c.w.opts.Store
	if !c.p.node.rules.Resolver.Watched || c.waking || !c.p.runs() || c.p.node.fault.Access != Open {
		return
	}
	c.waking = true
	c.w.schedule(c.w.now+c.w.between(o.Latency, o.Jitter), c.p, jobWake)
}

// woken reads what the watch reports. A heartbeat is a sign of life of the holder and no news to the resolver.
func (p *process) woken() {
	if p.paused {
		p.backlog = append(p.backlog, call(p.woken))
		return
	}
	c := &p.client
	c.waking = false
	switch s := &p.w.store.state; {
	case p.stage == stageStopped:
	case p.node.fault.Access != Open || c.have && s.version <= c.know.version:
	case c.have && s.record.Token == c.know.record.Token && s.record.Holder == c.know.record.Holder:
		c.learn(*s)
	default:
		c.learn(*s)
		p.step(sbr.LeaseObserved{Record: s.record})
	}
}
