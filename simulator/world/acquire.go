package world

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// attempt is one acquisition: read, judge, write, and after an unanswered write read again, all inside one time limit.
type attempt struct {
	c     *client
	eff   sbr.AcquireLease
	nonce uint64
	sent  time.Duration // when the first write was sent, by the process's clock; zero before
	// adrift is the version an unanswered write was sent for.
	adrift   uint64
	isAdrift bool
	answered bool
}

func (c *client) acquire(eff sbr.AcquireLease) {
	v := &eff.Verdict
	c.w.trace.mix(c.w.now, c.p, "asks")
	c.w.trace.number(eff.Base)
	c.w.trace.ids(v.Survivors)
	c.w.trace.ids(v.Down)
	if c.w.wordy() {
		c.w.say(c.p, "asks", "attempt %d over token %d: survivors %v, down %v, over %v",
			eff.Attempt, eff.Base, names(v.Survivors), names(v.Down), names(eff.TakeOver))
	}
	a := &attempt{c: c, eff: eff, nonce: c.w.store.newNonce()}
	c.w.after(c.w.opts.Store.Timeout, c.p, func() { a.answer(sbr.Unknown, state{}, "no answer in time") })
	if c.have {
		a.judge(c.know, false)
	} else {
		a.read()
	}
}

func (a *attempt) answer(o sbr.Outcome, s state, err string) {
	if a.answered {
		return
	}
	a.answered = true
	c := a.c
	if a.isAdrift && o != sbr.Granted {
		c.strays = append(c.strays, stray{nonce: a.nonce, prev: a.adrift, sent: true})
		c.tidyLater(2 * c.w.opts.Store.Timeout)
	}
	c.w.note(c.p, "answer", "attempt %d: %s %s", a.eff.Attempt, o, err)
	e := sbr.LeaseAnswer{Attempt: a.eff.Attempt, Outcome: o, Err: err}
	if o != sbr.Unknown {
		e.Record = c.p.recordOf(s)
	}
	c.p.step(e)
}

func (a *attempt) read() {
	if a.answered {
		return
	}
	var s state
	a.c.call(false, func() { s = a.c.w.store.state }, func(ok bool) {
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
	case fresh && r.Token != a.eff.Base && c.strayIn(s):
		// An earlier attempt was granted after it had been given up: taken on.
		c.begin(s.nonce, c.p.clock())
		a.answer(sbr.Held, s, "")
	case r.Token == a.eff.Base && c.mayReplace(a, s):
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
	return h == "" || h == c.p.id || slices.Contains(a.eff.TakeOver, h) ||
		c.have && c.know.nonce == s.nonce && c.know.beat == s.beat && c.p.clock()-c.since >= c.w.opts.Store.TTL
}

func (a *attempt) write(s state) {
	c := a.c
	next := s
	v := a.eff.Verdict
	v.Token = s.record.Token + 1
	next.record = sbr.Record{Holder: c.p.id, Token: v.Token, Verdict: &v}
	next.nonce = a.nonce
	next.beat++
	if a.sent == 0 {
		a.sent = max(c.p.clock(), 1)
	}
	var done bool
	c.call(true, func() { done = c.w.store.commit(c.p, s.version, next) }, func(ok bool) {
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
