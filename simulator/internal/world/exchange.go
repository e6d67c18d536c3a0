package world

import (
	"math"
	"slices"
	"time"
)

// Members exchange their whole lists: now and then with another member, at a join with the member found, and
// with a failed member that they list, to see whether it is back. Exchanges go over TCP.

// synReply and dataReply are how long TCP waits before it sends something again, the first time.
const (
	synReply  = time.Second
	dataReply = 200 * time.Millisecond
)

// stream is how long a connection, a request and an answer take; ok says that both ends can reach each other.
func (w *World) stream(p, q *process) (d time.Duration, ok bool) {
	a, b := p.node.index, q.node.index
	if !w.net.direct(a, b) || !q.hears() {
		return 0, false
	}
	for _, retry := range [...]time.Duration{synReply, dataReply} {
		there, back := w.net.quality(a, b), w.net.quality(b, a)
		for w.chance(there.Loss) || w.chance(back.Loss) {
			if d, retry = d+retry, 2*retry; d > w.serf.TCPTimeout {
				return 0, false
			}
		}
		d += w.between(there.Latency, there.Jitter) + w.between(back.Latency, back.Jitter)
	}
	return d, true
}

// exchangeWith lets both learn what the other process has in its lists, once the connection stands. It
// returns when that is over, or given up.
func (p *process) exchangeWith(q *process, then func()) (over time.Duration) {
	w := p.w
	d, ok := w.stream(p, q)
	if !ok {
		return w.now + w.serf.TCPTimeout
	}
	w.after(d, p, func() {
		if p.works() && q.hears() {
			q.merge(p)
			p.merge(q)
			if then != nil {
				then()
			}
		}
	})
	return w.now + d
}

// merge takes in the lists of another process (memberlist state.go, mergeState; serf delegate.go,
// MergeRemoteState).
func (p *process) merge(from *process) {
	p.named(int32(len(from.peers) - 1)) // no list grows meanwhile
	for i := range from.peers {
		q, name := &from.peers[i], int32(i)
		switch {
		case q.state == alive:
			p.hearAlive(name, q.who, q.inc)
		case q.state == departed:
			p.hearDead(name, q.inc, name)
		case q.state != unheard && (p.w.times == nil || name == p.name):
			p.hearSuspect(name, q.inc, p.name)
		}
	}
	for i := range from.peers {
		q, name := &from.peers[i], int32(i)
		switch {
		case q.status == left:
			p.hearLeave(name, q.ltime+1)
		case q.status != unlisted:
			p.hearJoin(name, q.ltime)
		}
	}
}

// exchange is the tick of the exchanges.
func (p *process) exchange() {
	p.does &^= doesExchange
	if p.w.serfRests || !p.works() {
		return
	}
	if p.w.times != nil {
		p.forgetDead() // otherwise probing does
	}
	over := p.w.now
	for _, name := range p.pick(1, func(name int32) bool { return p.peers[name].state == alive }) {
		over = p.exchangeWith(p.peers[name].at(), nil)
	}
	p.does |= doesExchange
	p.w.schedule(over+p.exchangeEvery(), p, jobExchange)
}

// exchangeEvery is the time between two of them (memberlist util.go, pushPullScale).
func (p *process) exchangeEvery() time.Duration {
	d := p.w.serf.PushPullInterval
	if n := len(p.order); n > exchangeThreshold {
		d *= time.Duration(math.Ceil(math.Log2(float64(n))-math.Log2(exchangeThreshold)) + 1)
	}
	return d
}

// reconnect is the tick of Serf's attempts to reach failed members again.
func (p *process) reconnect() {
	p.does &^= doesReconnect
	w := p.w
	if w.serfRests || !p.works() {
		return
	}
	over, here := w.now, 0
	p.picked = p.picked[:0]
	for i := range p.peers {
		switch p.peers[i].status {
		case failed:
			p.picked = append(p.picked, int32(i))
		case present, leaving:
			here++
		}
	}
	if n := len(p.picked); n > 0 && w.rng.Float64() <= float64(n)/float64(max(here, 1)) {
		over = p.rejoin(&p.peers[p.picked[w.rng.IntN(n)]])
	}
	p.does |= doesReconnect
	w.schedule(over+reconnectInterval, p, jobReconnect)
}

// rejoin joins by way of the address of a member.
func (p *process) rejoin(q *peer) (over time.Duration) {
	if to := q.who.node.proc; to != p {
		return p.exchangeWith(to, p.sayJoined)
	}
	return p.w.now
}

// sayJoined is what Serf tells the others after each join.
func (p *process) sayJoined() { p.spread(news{kind: newsJoin, name: p.name, inc: p.lamport}) }

// sayLeft is Serf's Leave: it says that it leaves, then that it has left, and is there a moment longer to
// answer.
func (p *process) sayLeft(done func()) {
	q := p.named(p.name)
	q.status, q.ltime = leaving, p.lamport
	p.lamport++
	p.await(news{kind: newsLeave, name: p.name, inc: q.ltime}, func() {
		q.state = departed
		p.await(news{kind: newsDead, name: p.name, from: p.name, inc: q.inc}, func() {
			p.w.after(leaveDelay, p, done)
		})
	})
}

// await spreads news, and goes on once that was sent as often as it is, or no member is there, or it takes
// too long.
func (p *process) await(n news, then func()) {
	someone := false
	for i := range p.peers {
		q := &p.peers[i]
		someone = someone || q.who != p && q.status == present
	}
	if !someone {
		then()
		return
	}
	c, late := p.spread(n), p.w.now+broadcastTimeout
	var look func()
	look = func() {
		if c.over || p.w.now >= late {
			then()
			return
		}
		p.w.after(p.w.serf.GossipInterval, p, look)
	}
	p.w.after(p.w.serf.GossipInterval, p, look)
}

// What a process's Serf has arranged to do.
const (
	doesProbe = 1 << iota
	doesGossip
	doesExchange
	doesReconnect
)

// startTicks lets the process's Serf tick, at moments of its own.
func (p *process) startTicks() {
	w := p.w
	if w.serfRests || !p.works() {
		return
	}
	if w.times == nil && p.does&doesProbe == 0 {
		p.ticks = w.now + w.draw(w.serf.ProbeInterval) - w.serf.ProbeInterval
		p.turn = w.rng.IntN(len(p.order) + 1)
		w.rng.Shuffle(len(p.order), func(a, b int) { p.order[a], p.order[b] = p.order[b], p.order[a] })
		p.probeAgain(w.now)
	}
	if p.does&doesExchange == 0 {
		p.does |= doesExchange
		w.schedule(w.now+w.draw(p.exchangeEvery()), p, jobExchange)
	}
	if w.times == nil && p.does&doesReconnect == 0 {
		p.does |= doesReconnect
		w.schedule(w.now+w.draw(reconnectInterval), p, jobReconnect)
	}
}

// calmEvery is how often it is looked whether anything is left to be played.
const calmEvery = 5 * time.Second

// wakeSerf lets every member's Serf work from now on, because something has happened. The one thing that changed
// meanwhile is that the dead were forgotten.
func (w *World) wakeSerf() {
	if !w.serfRests {
		return
	}
	w.serfRests = false
	for _, p := range w.procs {
		p.forgetDead()
		p.startTicks()
	}
	w.after(calmEvery, nil, w.restSerf)
}

// restSerf lets everything rest if nothing would change any more: every packet gets there in time, and all
// agree. Then phases and orders are drawn anew when something happens, and the dead forgotten: nobody could tell
// the difference.
func (w *World) restSerf() {
	w.serfRests = w.calm()
	if !w.serfRests {
		w.after(calmEvery, nil, w.restSerf)
	}
}

// calm reports whether packets of Serf would change nothing.
func (w *World) calm() bool {
	if !w.net.clean(w.serf.ProbeTimeout) {
		return false
	}
	for _, n := range w.nodes {
		p := n.proc
		if p == nil || !p.hears() {
			continue
		}
		if !p.runs() || p.awareness > 0 || p.broadcasts.held+p.intents.held > 0 || !p.agrees() {
			return false
		}
	}
	for _, n := range w.nodes {
		if n.proc != nil && n.proc.attends() && slices.ContainsFunc(n.proc.peers, func(q peer) bool {
			return (q.status == present || q.status == leaving) && q.who.here != n.proc.here
		}) {
			return false
		}
	}
	return true
}

// agrees reports whether all members that p lists are what p thinks, and list p as well; here counts those
// that are.
func (p *process) agrees() bool {
	p.here = 0
	for i := range p.peers {
		q := &p.peers[i]
		if q.status == unlisted || q.status == left || q.who == p {
			continue
		}
		to := q.who.node.proc
		reached := p.w.net.direct(p.node.index, to.node.index)
		switch {
		case q.state == suspect, q.state == unheard && q.status != failed:
			return false
		case q.status == failed:
			if reached && to.works() && !to.paused {
				return false
			}
		case q.who != to || !reached || to.paused || !to.runs():
			return false
		default:
			if back := to.named(p.name); back.who != p || back.status == failed || !back.listed() {
				return false
			}
			p.here++
		}
	}
	return true
}
