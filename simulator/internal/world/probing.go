package world

import (
	"slices"
	"time"
)

// Each member probes the others in turn, one in each ProbeInterval: with a ping, then through others, and
// over TCP (memberlist state.go, probeNode). What becomes of a packet is drawn when it is sent.

// probeNext is the tick of the process's prober.
func (p *process) probeNext() {
	p.does &^= doesProbe
	if p.w.serfRests || !p.works() {
		return
	}
	name, ok := p.nextProbed()
	if !ok {
		p.probeAgain(p.w.now)
		return
	}
	p.ping(name)
}

// nextProbed is the next one in the list that is not dead. At the end of it the dead are forgotten, and the
// order is drawn anew.
func (p *process) nextProbed() (name int32, ok bool) {
	for range 2*len(p.order) + 1 {
		if p.turn >= len(p.order) {
			p.forgetDead()
			p.w.rng.Shuffle(len(p.order), func(a, b int) { p.order[a], p.order[b] = p.order[b], p.order[a] })
			p.turn = 0
		}
		name = p.order[p.turn]
		p.turn++
		if name != p.name && !p.peers[name].state.gone() {
			return name, true
		}
	}
	return 0, false
}

// forgetDead takes from memberlist's list the members that died too long ago to be told news.
func (p *process) forgetDead() {
	kept := p.order[:0]
	for _, name := range p.order {
		if q := &p.peers[name]; q.state.gone() && p.w.now-q.since > p.w.serf.GossipToTheDeadTime && name != p.name {
			q.state, q.inc = unheard, 0
			continue
		}
		kept = append(kept, name)
	}
	p.order = kept
}

// probeAgain arranges the next probe, at the first tick after the start of the last one, or now if that has
// passed.
func (p *process) probeAgain(began time.Duration) {
	if p.does&doesProbe != 0 {
		return
	}
	p.does |= doesProbe
	every := p.w.serf.ProbeInterval
	tick := p.ticks + ((began-p.ticks)/every+1)*every
	p.w.schedule(tick, p, jobProbe)
}

// ping probes a member: first directly.
func (p *process) ping(name int32) {
	w, q, began := p.w, &p.peers[name], p.w.now
	if q.state == suspect { // it is told, so that it can refute
		w.sendNews(p, q.at(), news{kind: newsSuspect, name: name, from: p.name, inc: q.inc})
	}
	rtt, ok := w.pinged(p, q.at())
	if ok && rtt <= w.serf.ProbeTimeout {
		p.answered(began)
		return
	}
	direct := never
	if ok {
		direct = began + rtt
	}
	w.after(w.serf.ProbeTimeout, p, func() { p.pingThrough(name, began, direct) })
}

// answered ends a probe.
func (p *process) answered(began time.Duration) {
	p.adjustAwareness(-1)
	p.probeAgain(began)
}

// pingThrough asks others to probe the member as well, and tries it over TCP; direct is when its own answer
// comes.
func (p *process) pingThrough(name int32, began, direct time.Duration) {
	if !p.works() {
		return
	}
	w, q := p.w, &p.peers[name]
	deadline := began + time.Duration(p.awareness+1)*w.serf.ProbeInterval
	heard, nacks, asked := direct, 0, 0
	for _, by := range p.pick(w.serf.IndirectChecks, func(by int32) bool {
		return by != name && p.peers[by].state == alive
	}) {
		asked++
		at, nack := p.through(p.peers[by].at(), q.at())
		if heard = min(heard, at); nack <= deadline {
			nacks++
		}
	}
	if heard <= deadline {
		w.at(heard, p, func() { p.answered(began) })
		return
	}
	inTime := false
	if d, ok := w.stream(p, q.at()); ok {
		inTime = w.now+d <= deadline
	}
	w.at(deadline, p, func() { p.failed(name, began, inTime, asked, nacks) })
}

// through is when an answer comes by way of another member, and when its nack does; never, if they do not.
func (p *process) through(by, to *process) (ack, nack time.Duration) {
	w := p.w
	there, ok := w.leg(p, by)
	if !ok || !by.hears() {
		return never, never
	}
	rtt, ok := w.pinged(by, to)
	back, comes := w.leg(by, p)
	switch {
	case !comes:
		return never, never
	case ok && rtt <= w.serf.ProbeTimeout:
		return w.now + there + rtt + back, never
	default:
		return never, w.now + there + w.serf.ProbeTimeout + back
	}
}

// failed is the end of a probe without an answer.
func (p *process) failed(name int32, began time.Duration, tcp bool, asked, nacks int) {
	q := &p.peers[name]
	switch {
	case !p.works():
		return
	case tcp && q.at().hears():
		p.answered(began)
		return
	case asked > 0:
		p.adjustAwareness(asked - nacks)
	default:
		p.adjustAwareness(1)
	}
	p.hearSuspect(name, q.inc, p.name)
	p.probeAgain(began)
}

// hears reports whether the process answers packets now.
func (p *process) hears() bool { return p.works() && !p.paused }

// pinged is what a ping and its answer take; ok says that both get there. News is piggybacked on them.
func (w *World) pinged(from, to *process) (rtt time.Duration, ok bool) {
	there, ok := w.leg(from, to)
	if !ok || !to.hears() {
		from.piggyback(to, false)
		return 0, false
	}
	from.piggyback(to, true)
	back, ok := w.leg(to, from)
	to.piggyback(from, ok)
	return there + back, ok
}

// pick chooses up to k members of the list that fit, in random order (memberlist util.go, kRandomNodes).
func (p *process) pick(k int, fits func(int32) bool) []int32 {
	n := len(p.order)
	p.picked = p.picked[:0]
	if n < 3*k {
		at := p.w.rng.Perm(n)
		for i := 0; i < n && len(p.picked) < k; i++ {
			if name := p.order[at[i]]; name != p.name && fits(name) {
				p.picked = append(p.picked, name)
			}
		}
		return p.picked
	}
	for i := 0; i < 3*n && len(p.picked) < k; i++ {
		name := p.order[p.w.rng.IntN(n)]
		if name != p.name && fits(name) && !slices.Contains(p.picked, name) {
			p.picked = append(p.picked, name)
		}
	}
	return p.picked
}
