package world

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// proposal is what is asked of a lease.
type proposal struct {
	attempt uint64
	// verdict, if there is one, is recorded with the grant, and builds on the token base, whose verdict baseBy has written as far as
	// that is known. takeOver may be replaced as holders.
	verdict  *sbr.Verdict
	base     uint64
	baseBy   sbr.ID
	takeOver []sbr.ID
}

// fits reports whether the proposal may be written over r.
func (p *proposal) fits(r *sbr.Record) bool {
	return p.verdict == nil || r.Token == p.base && (p.baseBy == "" || r.Verdict == nil || r.Verdict.DecidedBy == p.baseBy)
}

// attempt is one acquisition: read, judge, write, and after an unanswered write read again, all inside one time limit.
type attempt struct {
	c *client
	proposal
	nonce uint64
	end   time.Duration // of the time for it, by the world's clock
	sent  time.Duration // when the first write was sent, by the process's clock; zero before
	// adrift is the version an unanswered write was sent for.
	adrift   uint64
	isAdrift bool
	answered bool
}

func (c *client) acquire(p proposal) *attempt {
	timeout := c.w.opts.Store.Timeout
	a := &attempt{c: c, proposal: p, nonce: c.s.newNonce(), end: c.w.now + timeout}
	c.w.after(timeout, c.p, func() { a.answer(sbr.Unknown, state{}, "no answer in time") })
	if c.have {
		a.judge(c.know, false)
	} else {
		a.read()
	}
	return a
}

func (a *attempt) answer(o sbr.Outcome, s state, err string) {
	if a.answered {
		return
	}
	a.answered = true
	if a.isAdrift && o != sbr.Granted {
		a.stray()
	}
	a.c.user.answered(a.attempt, o, s, err)
}

// stray leaves a write behind that may still be committed.
func (a *attempt) stray() {
	a.c.strays = append(a.c.strays, stray{nonce: a.nonce, prev: a.adrift, sent: true})
	a.c.tidyLater(2 * a.c.w.opts.Store.Timeout)
}

// giveUp ends the attempt without an answer.
func (a *attempt) giveUp() {
	if a.answered {
		return
	}
	a.answered = true
	if a.isAdrift {
		a.stray()
	}
}

func (a *attempt) read() {
	if a.answered {
		return
	}
	var s state
	a.c.send(a.end, false, func() { s = a.c.s.state }, func(ok bool) {
		switch {
		case a.answered:
		case !ok:
			a.c.w.after(200*time.Millisecond, a.c.p, a.read)
		default:
			a.c.learn(s)
			a.judge(s, true)
		}
	})
}

// judge does what can be done with the state s; fresh says that it was read for this attempt.
func (a *attempt) judge(s state, fresh bool) {
	c, r := a.c, &s.record
	if a.isAdrift && fresh && s.version != a.adrift {
		a.isAdrift = c.mine(s, a.nonce) // if it is not there now, it never will be
	}
	switch {
	case a.sent != 0 && c.mine(s, a.nonce):
		a.granted(s)
	case fresh && !a.fits(r) && c.strayIn(s):
		// An earlier attempt was granted after it had been given up: taken on.
		c.begin(s.nonce, c.p.clock())
		a.answer(sbr.Held, s, "")
	case a.fits(r) && c.mayReplace(a, s):
		a.write(s)
	case fresh && !a.isAdrift:
		a.answer(sbr.Held, s, "")
	default:
		c.w.after(10*time.Millisecond, c.p, a.read)
	}
}

// mayReplace reports whether this attempt may replace the holder of s.
func (c *client) mayReplace(a *attempt, s state) bool {
	h := s.record.Holder
	return h == "" || h == c.p.id || slices.Contains(a.takeOver, h) ||
		c.have && c.know.nonce == s.nonce && c.know.beat == s.beat && c.p.clock()-c.since >= c.w.opts.Store.TTL
}

func (a *attempt) write(s state) {
	c := a.c
	next := s
	next.record = sbr.Record{Holder: c.p.id, Token: s.record.Token + 1}
	if a.verdict != nil {
		v := *a.verdict
		v.Token = next.record.Token
		next.record.Verdict = &v
	}
	next.nonce = a.nonce
	next.beat++
	if a.sent == 0 {
		a.sent = max(c.p.clock(), 1)
	}
	var done bool
	c.send(a.end, true, func() { done = c.s.commit(c.p, s.version, next) }, func(ok bool) {
		switch {
		case a.answered:
		case !ok:
			a.adrift, a.isAdrift = s.version, true
			a.read()
		case done:
			next.version = s.version + 1
			c.learn(next)
			a.granted(next)
		default:
			a.isAdrift = false // the version moved on: no write for it can be committed any more
			a.read()
		}
	})
	if !a.answered {
		// Until the answer comes the write is adrift: the attempt may be given up before.
		a.adrift, a.isAdrift = s.version, true
	}
}

func (a *attempt) granted(s state) {
	if a.answered {
		return
	}
	a.isAdrift = false
	if !a.c.begin(a.nonce, a.sent) {
		a.adrift, a.isAdrift = s.version, true
		a.answer(sbr.Unknown, s, "granted too late to be of use")
		return
	}
	a.answer(sbr.Granted, s, "")
}
