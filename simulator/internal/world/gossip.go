package world

import "math"

// newsKind is what news says.
type newsKind uint8

const (
	newsAlive   newsKind = iota // memberlist: who runs under the name, with the number inc
	newsSuspect                 // memberlist: from suspects it
	newsDead                    // memberlist: from calls it dead
	newsLeave                   // Serf: it leaves, or is removed, at the Lamport time inc
	newsJoin                    // Serf: it does not leave
)

// news is one message of gossip about a member.
type news struct {
	kind newsKind
	name int32
	from int32
	inc  uint32
	who  *process
}

// size is about how long a message is, with the two bytes that it costs in a packet.
func (n *news) size(w *World) int {
	const about, tags = 30, 170
	switch n.kind {
	case newsAlive:
		return about + tags
	case newsSuspect, newsDead:
		return about + len(w.names[n.name]) + len(w.names[n.from])
	default:
		return about + len(w.names[n.name])
	}
}

// broadcast is news that a member still spreads.
type broadcast struct {
	news
	sent int
	over bool // newer news has replaced it, or it was sent often enough
}

// broadcasts is memberlist's TransmitLimitedQueue: what was sent least often goes first, of that the newest.
type broadcasts struct {
	tiers [][]*broadcast // by how often they were sent
	held  int            // how many are not over
	moved []*broadcast
}

// add queues news.
func (b *broadcasts) add(c *broadcast) {
	b.put(c)
	b.held++
}

func (b *broadcasts) put(c *broadcast) {
	for c.sent >= len(b.tiers) {
		b.tiers = append(b.tiers, nil)
	}
	b.tiers[c.sent] = append(b.tiers[c.sent], c)
}

// drop ends a broadcast.
func (b *broadcasts) drop(c *broadcast) {
	if c != nil && !c.over {
		c.over = true
		b.held--
	}
}

// take appends what one packet with so much room carries, and counts it as sent once more.
func (b *broadcasts) take(w *World, to []news, room, limit int) ([]news, int) {
	b.moved = b.moved[:0]
	for i := range b.tiers {
		tier := b.tiers[i]
		for len(tier) > 0 {
			c := tier[len(tier)-1]
			if c.over {
				tier = tier[:len(tier)-1]
				continue
			}
			size := c.size(w)
			if size > room {
				break
			}
			room -= size
			to, tier = append(to, c.news), tier[:len(tier)-1]
			if c.sent++; c.sent >= limit {
				b.drop(c)
			} else {
				b.moved = append(b.moved, c)
			}
		}
		b.tiers[i] = tier
	}
	for i := range b.moved {
		b.put(b.moved[len(b.moved)-1-i])
	}
	return to, room
}

// spread queues news for all members. It replaces older news of the member, if both are memberlist's.
func (p *process) spread(n news) *broadcast {
	c := &broadcast{news: n}
	if n.kind <= newsDead {
		q := p.named(n.name)
		p.broadcasts.drop(q.spreads)
		q.spreads = c
		p.broadcasts.add(c)
	} else {
		p.intents.add(c)
	}
	p.w.wakeSerf()
	if p.does&doesGossip == 0 {
		p.does |= doesGossip
		p.w.schedule(p.w.now+p.w.draw(p.w.serf.GossipInterval), p, jobGossip)
	}
	return c
}

// gossip is the tick of the process's gossip: a few members get a packet each.
func (p *process) gossip() {
	p.does &^= doesGossip
	if !p.works() || p.broadcasts.held+p.intents.held == 0 {
		return
	}
	m, now := &p.w.serf, p.w.now
	for _, name := range p.pick(m.GossipNodes, func(name int32) bool {
		q := &p.peers[name]
		return !q.state.gone() || q.state == dead && now-q.since <= m.GossipToTheDeadTime
	}) {
		p.tellNews(p.peers[name].at())
	}
	if p.broadcasts.held+p.intents.held > 0 {
		p.does |= doesGossip
		p.w.schedule(now+m.GossipInterval, p, jobGossip)
	}
}

func (p *process) tellNews(to *process) {
	_, ok := p.w.leg(p, to)
	p.piggyback(to, ok)
}

// piggyback sends the news that fits into a packet with it; arrives says whether the packet gets there.
func (p *process) piggyback(to *process, arrives bool) {
	if p.broadcasts.held+p.intents.held == 0 {
		return
	}
	w := p.w
	limit := p.transmits()
	b := w.newPacket()
	var room int
	b.news, room = p.broadcasts.take(w, b.news, packetSize, limit)
	b.news, _ = p.intents.take(w, b.news, room, limit)
	if !arrives || len(b.news) == 0 {
		w.packets = append(w.packets, b)
		return
	}
	b.from, b.to = p, to
	o := w.net.quality(p.node.index, to.node.index)
	w.enact(w.now+w.between(o.Latency, o.Jitter), to, b)
}

// sendNews sends one piece of news by itself.
func (w *World) sendNews(from, to *process, n news) {
	if d, ok := w.leg(from, to); ok {
		b := w.newPacket()
		b.from, b.to, b.news = from, to, append(b.news, n)
		w.enact(w.now+d, to, b)
	}
}

// packet is news on its way.
type packet struct {
	from, to *process
	news     []news
}

func (w *World) newPacket() *packet {
	if n := len(w.packets); n > 0 {
		b := w.packets[n-1]
		w.packets = w.packets[:n-1]
		b.news = b.news[:0]
		return b
	}
	return new(packet)
}

// act is the arrival. News of living members comes first, and then the last comes first (memberlist net.go,
// getNextMessage).
func (b *packet) act() {
	p := b.to
	if p.works() {
		for i := range b.news {
			if n := &b.news[i]; n.kind == newsAlive {
				p.hearAlive(n.name, n.who, n.inc)
			}
		}
		for i := len(b.news) - 1; i >= 0; i-- {
			p.hear(&b.news[i])
		}
	}
	p.w.packets = append(p.w.packets, b)
}

func (p *process) hear(n *news) {
	switch n.kind {
	case newsSuspect:
		p.hearSuspect(n.name, n.inc, n.from)
	case newsDead:
		p.hearDead(n.name, n.inc, n.from)
	case newsLeave:
		if p.hearLeave(n.name, n.inc) {
			p.spread(*n)
		}
	case newsJoin:
		if p.hearJoin(n.name, n.inc) {
			p.spread(*n)
		}
	}
}

// transmits is how often a member sends what it has to spread (memberlist util.go, retransmitLimit).
func (p *process) transmits() int {
	return p.w.serf.RetransmitMult * int(math.Ceil(math.Log10(float64(len(p.order)+1))))
}
