package world

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// client is one process's way to the store. It keeps the contract of lease.Lease: an answer is Granted or Held only when
// that is certain, a holder is judged by its silence as seen from here, and a grant that came too late is undone.
type client struct {
	w *World
	p *process

	know  state // the newest state learnt
	have  bool
	since time.Duration // since when the holder's last sign of life has been standing there

	tenure  uint64 // the nonce of the grant that is held, zero: none
	trusted time.Duration
	strays  []stray
	tidying bool
	waking  bool
}

// stray is a grant of our own that was given up, or that may still come.
type stray struct {
	nonce uint64
	prev  uint64 // the version its write was sent for
	sent  bool   // the write may still be under way
}

// call sends one request. do runs at the store when the request arrives, whatever became of the sender meanwhile; done hears
// whether an answer came back in time.
func (c *client) call(write bool, do func(), done func(ok bool)) {
	w, f := c.w, c.p.node.fault
	over := false
	finish := func(ok bool) {
		if !over {
			over = true
			done(ok)
		}
	}
	leg := func() time.Duration { return w.between(w.opts.Store.Latency, w.opts.Store.Jitter) + f.Slow }
	if f.Access == Refused {
		w.after(leg(), c.p, func() { finish(false) })
		return
	}
	w.after(w.opts.Store.Timeout*2/5, c.p, func() { finish(false) })
	if f.Access == Silent || w.chance(f.LoseRequests) {
		return
	}
	there := leg()
	if write && w.chance(f.Late) {
		there += w.between(0, f.LateBy)
	}
	w.after(there, nil, func() {
		if write && w.chance(f.Conflicts) {
			w.store.version++ // a foreign write that changes nothing we read, such as a label
		}
		do()
		if c.p.node.fault.Access == Silent || w.chance(f.LoseAnswers) {
			return
		}
		w.after(leg(), c.p, func() { finish(true) })
	})
}

// learn takes in a state of the store; an older one than is known is not believed.
func (c *client) learn(s state) {
	if c.have && s.version < c.know.version {
		return
	}
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

func (c *client) read(eff sbr.ReadLease) {
	c.w.note(c.p, "reads", "attempt %d", eff.Attempt)
	var s state
	end := c.w.now + c.w.opts.Store.Timeout
	var try func()
	try = func() {
		c.call(false, func() { s = c.w.store.state }, func(ok bool) {
			switch {
			case ok:
				c.learn(s)
				c.p.step(sbr.LeaseRead{Attempt: eff.Attempt, Record: recordOf(c.know)})
			case c.w.now+500*time.Millisecond < end:
				c.w.after(500*time.Millisecond, c.p, try)
			default:
				c.p.step(sbr.LeaseRead{Attempt: eff.Attempt, Err: "no answer"})
			}
		})
	}
	try()
}

// recordOf copies what is handed to a resolver, so that members share nothing.
func recordOf(s state) sbr.Record {
	r := s.record
	r.Verdict = r.Verdict.Clone()
	return r
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
	c.call(true, func() {
		if st := &c.w.store; c.mine(st.state, nonce) {
			next := st.state
			next.beat++
			st.commit(c.p, st.version, next)
		}
		s = c.w.store.state
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
	c.w.note(c.p, "lost", "the lease: %s", why)
	c.w.after(0, c.p, func() { c.p.step(sbr.LeaseReleased{Done: true}) })
}

// release gives the lease back.
func (c *client) release(eff sbr.ReleaseLease) {
	nonce := c.tenure
	c.tenure = 0
	if nonce != 0 {
		c.strays = append(c.strays, stray{nonce: nonce})
	}
	if len(c.strays) == 0 {
		c.w.after(0, c.p, func() { c.p.step(sbr.LeaseReleased{Attempt: eff.Attempt, Done: true}) })
		return
	}
	var s state
	c.call(true, func() { s = c.free() }, func(ok bool) {
		if ok {
			c.learn(s)
		} else {
			c.tidyLater(c.w.opts.Store.Timeout)
		}
		c.p.step(sbr.LeaseReleased{Attempt: eff.Attempt, Done: ok && len(c.strays) == 0})
	})
}

// free runs at the store: it frees the record if a stray grant stands in it.
func (c *client) free() state {
	st := &c.w.store
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
	if !o.Watch || c.waking || !c.p.runs() || c.p.node.fault.Access != Open {
		return
	}
	c.waking = true
	c.w.after(c.w.between(o.Latency, o.Jitter), c.p, func() {
		c.waking = false
		s := c.w.store.state
		if c.p.node.fault.Access != Open || c.have && s.version <= c.know.version {
			return
		}
		c.learn(s)
		c.p.step(sbr.LeaseObserved{Record: recordOf(s)})
	})
}
