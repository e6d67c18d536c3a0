package scenario

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr/timing"
)

// gossip are the settings of memberlist that a cut's detection follows from: what package timing knows, and how news spreads on a side
// that much of the gossip misses.
type gossip struct {
	timing.Gossip
	// retransmit is RetransmitMult: a message is sent retransmit*ceil(log10(n+1)) times by each member that has heard it.
	retransmit int
	// pushPull is the time between two exchanges of full states; each member makes one with one other in turn.
	pushPull time.Duration
	// forget is GossipToTheDeadTime: so long gossip goes to the dead as well.
	forget time.Duration
}

// gossipOf returns the settings of a profile (memberlist v0.7.0, config.go).
func gossipOf(profile string) gossip {
	g, _ := timing.Profile(profile) // validated
	switch profile {
	case "wan":
		return gossip{g, 4, 60 * time.Second, 60 * time.Second}
	case "local":
		return gossip{g, 2, 15 * time.Second, 15 * time.Second}
	default:
		return gossip{g, 4, 30 * time.Second, 30 * time.Second}
	}
}

// A side of at least someMembers is taken to be of one mind if gossip is dense enough there, which means that each member which hears
// a rumour for the first time tells at least dense others; one of manyMembers is, to save work.
const (
	someMembers = 16
	manyMembers = 64
	dense       = 4
)

// cut plays what memberlist does on one side of a cut, for so many members of a cluster of n that lost others, until everybody there has
// condemned them all. What it plays, with the place in memberlist:
//
//   - each member probes the others in turn, in an order that is drawn anew for each pass, one in each ProbeInterval (state.go, probe);
//   - a probe of somebody across the cut fails when the interval is over, stretched by Lifeguard's score; each peer that was asked to
//     probe as well and sent no nack in time adds one to the score, and a probe that is answered takes one off (probeNode);
//   - a failed probe is a suspicion, or confirms one. It lasts SuspicionMax, with n of SuspicionMult-2 confirmations less by
//     log(n+1)/log(k+1) of the difference to SuspicionMin, and then the suspect is dead (suspectNode, suspicion.go);
//   - suspicions and deaths are gossiped a limited number of times to random members, of which those across the cut are deaf, and each
//     that hears one for the first time gossips it on (gossip, queue.go). What gossip missed, exchanges of full states bring, where
//     a death counts as a suspicion (mergeState).
type cut struct {
	gossip
	rng            *rand.Rand
	n              int // of the whole cluster, as memberlist estimates it
	members        []prober
	others         int
	side           int
	min, max       time.Duration
	confirmations  int
	sent           int       // how often each member sends a rumour
	crowd          bool      // all members of the side have one mind
	views          []suspect // by member and other; a crowd has one view
	open           int       // how many entries of views are not dead yet
	queue          cutQueue
	seq            uint64
	nackInTimeFrom time.Duration
	told           []int // those that one round of gossip went to
	left           []int // of a crowd: those across the cut that are not dead yet
}

// prober is one member of the side.
type prober struct {
	order []int // whom it probes in turn: below others those across the cut, above its own side
	next  int
	score int
	phase time.Duration // of its ticker
	// alive is how many across the cut it does not suspect yet; deaths are when it found others dead, of which gossip has forgotten some.
	// A crowd has those of its first member.
	alive     int
	deaths    []time.Duration
	forgotten int
}

// suspect is what one member thinks of one other across the cut.
type suspect struct {
	since, until time.Duration
	from         []int
	suspected    bool
	dead         bool
}

func newCut(g gossip, rng *rand.Rand, n, side, others int) *cut {
	dense := side >= someMembers && g.transmissions(n)*(side-1) >= dense*(n-1)
	return startCut(g, rng, n, side, others, dense || side >= manyMembers)
}

// transmissions is how often a member sends a rumour that it has heard for the first time.
func (g *gossip) transmissions(n int) int {
	return g.retransmit * int(math.Ceil(math.Log10(float64(n+1))))
}

func startCut(g gossip, rng *rand.Rand, n, side, others int, crowd bool) *cut {
	c := &cut{
		gossip: g, rng: rng, n: n, side: side, others: others, crowd: crowd, min: g.SuspicionMin(n), max: g.SuspicionMax(n),
		sent: g.transmissions(n),
	}
	if n-2 >= g.SuspicionMult-2 {
		c.confirmations = max(g.SuspicionMult-2, 0)
	}
	// A peer that was asked after ProbeTimeout sends a nack after another one: at the score 0 that is too late with most profiles.
	c.nackInTimeFrom = 2*g.ProbeTimeout + time.Millisecond
	c.members = make([]prober, side)
	c.views = make([]suspect, others)
	if !c.crowd {
		c.views = make([]suspect, side*others)
	}
	c.open = len(c.views)
	for x := range others {
		c.left = append(c.left, x)
	}
	for i := range c.members {
		m := &c.members[i]
		if !c.crowd {
			m.order = rng.Perm(side - 1 + others)
			m.next = rng.IntN(len(m.order) + 1)
		}
		m.alive = others
		m.phase = time.Duration(rng.Int64N(int64(g.ProbeInterval)))
		c.at(m.phase, cutEvent{kind: cutProbe, member: i})
		if side > 1 && !c.crowd {
			c.at(time.Duration(rng.Int64N(int64(g.pushPull))), cutEvent{kind: cutExchange, member: i})
		}
	}
	return c
}

// run plays until all are dead, and returns when each member condemned each other.
func (c *cut) run() func(member, other int) time.Duration {
	for c.open > 0 {
		e := c.queue.pop()
		switch e.kind {
		case cutProbe:
			c.probe(e.at, e.member)
		case cutFailed:
			c.failed(e.at, e.member, e.other, e.took)
		case cutSuspect:
			c.suspect(e.at, e.member, e.other, e.from)
		case cutTimeout:
			if v := c.view(e.member, e.other); v.until == e.at {
				c.die(e.at, e.member, e.other)
			}
		case cutDead:
			c.die(e.at, e.member, e.other)
		case cutExchange:
			c.exchange(e.at, e.member)
		}
	}
	news := int64(c.Spread(c.side) / 2)
	return func(member, other int) time.Duration {
		d := c.view(member, other).until
		if c.crowd {
			d += time.Duration(c.rng.Int64N(news))
		}
		return d
	}
}

func (c *cut) view(member, other int) *suspect {
	if c.crowd {
		return &c.views[other]
	}
	return &c.views[member*c.others+other]
}

// mind is the member that keeps count for another one: a crowd has one mind.
func (c *cut) mind(i int) *prober {
	if c.crowd {
		i = 0
	}
	return &c.members[i]
}

// probe is one tick of a member's prober, or the one it missed while a probe was running.
func (c *cut) probe(now time.Duration, i int) {
	m := &c.members[i]
	if x, across := c.target(i); across {
		took := time.Duration(m.score+1) * c.ProbeInterval
		c.at(now+took, cutEvent{kind: cutFailed, member: i, other: x, took: took})
		return
	}
	m.score = max(m.score-1, 0) // it answers
	next := m.phase + (now-m.phase+c.ProbeInterval)/c.ProbeInterval*c.ProbeInterval
	c.at(next, cutEvent{kind: cutProbe, member: i})
}

// target is the next one that a member probes. In a crowd it is anybody: with so many probers the order of each does not matter.
func (c *cut) target(i int) (x int, across bool) {
	if c.crowd {
		at := c.rng.IntN(c.side - 1 + len(c.left))
		if at >= len(c.left) {
			return 0, false
		}
		x = c.left[at]
		if !c.views[x].dead {
			return x, true
		}
		c.left[at] = c.left[len(c.left)-1]
		c.left = c.left[:len(c.left)-1]
		return c.target(i)
	}
	m := &c.members[i]
	for range 2*len(m.order) + 1 {
		if m.next >= len(m.order) {
			c.rng.Shuffle(len(m.order), func(a, b int) { m.order[a], m.order[b] = m.order[b], m.order[a] })
			m.next = 0
		}
		x = m.order[m.next]
		m.next++
		if x >= c.others {
			return x, false
		}
		if !c.view(i, x).dead {
			return x, true
		}
	}
	return 0, false // all dead, and alone
}

// failed is the end of a probe that nobody answered.
func (c *cut) failed(now time.Duration, i, x int, took time.Duration) {
	m := &c.members[i]
	deaf, good := c.mind(i).alive, c.side-1
	if v := c.view(i, x); !v.suspected && !v.dead {
		deaf-- // the target itself is not asked
	}
	asked, missing := 0, 0
	for ; asked < c.IndirectChecks && deaf+good > 0; asked++ {
		if c.rng.IntN(deaf+good) < deaf {
			deaf--
			missing++
		} else if good--; took < c.nackInTimeFrom {
			missing++
		}
	}
	if asked == 0 {
		missing = 1
	}
	m.score = min(m.score+missing, max(c.AwarenessMaxMultiplier, 1)-1)
	c.suspect(now, i, x, i)
	c.probe(now, i) // a tick has passed meanwhile
}

// suspect is what a member makes of a suspicion, of its own or of another one.
func (c *cut) suspect(now time.Duration, i, x, from int) {
	v := c.view(i, x)
	switch {
	case v.dead, v.suspected && len(v.from) > c.confirmations:
		return
	case !v.suspected:
		v.suspected, v.since = true, now
		c.mind(i).alive--
	case slices.Contains(v.from, from):
		return
	}
	v.from = append(v.from, from)
	v.until = max(now, v.since+c.lasts(len(v.from)-1))
	c.at(v.until, cutEvent{kind: cutTimeout, member: i, other: x})
	c.tell(now, cutEvent{kind: cutSuspect, member: i, other: x, from: from})
}

// lasts is how long a suspicion lasts with so many confirmations.
func (c *cut) lasts(confirmed int) time.Duration {
	if c.confirmations == 0 {
		return c.min
	}
	share := math.Log(float64(confirmed)+1) / math.Log(float64(c.confirmations)+1)
	return max(c.max-time.Duration(share*float64(c.max-c.min)), c.min)
}

func (c *cut) die(now time.Duration, i, x int) {
	v := c.view(i, x)
	if v.dead {
		return
	}
	m := c.mind(i)
	if !v.suspected {
		m.alive-- // heard of the death alone
	}
	v.dead, v.suspected, v.until = true, false, now
	m.deaths = append(m.deaths, now)
	c.open--
	c.tell(now, cutEvent{kind: cutDead, member: i, other: x})
}

// tell gossips: what goes across the cut is lost.
func (c *cut) tell(now time.Duration, e cutEvent) {
	if c.side == 1 || c.crowd {
		return
	}
	i := e.member
	m := c.mind(i)
	for m.forgotten < len(m.deaths) && now-m.deaths[m.forgotten] > c.forget {
		m.forgotten++
	}
	hearers := c.side - 1 + c.others - m.forgotten
	at := now + time.Duration(c.rng.Int64N(int64(c.GossipInterval)))
	for left := c.sent; left > 0; at += c.GossipInterval {
		told := c.told[:0]
		for range min(left, c.GossipNodes, hearers) {
			to := c.rng.IntN(hearers)
			for slices.Contains(told, to) {
				to = c.rng.IntN(hearers)
			}
			told = append(told, to)
			if to < c.side-1 {
				if e.member = to; to >= i {
					e.member++
				}
				c.at(at, e)
			}
		}
		c.told, left = told, left-max(len(told), 1)
	}
}

// exchange is one of the full states, with somebody whom the member takes to be alive.
func (c *cut) exchange(now time.Duration, i int) {
	c.at(now+c.pushPull, cutEvent{kind: cutExchange, member: i})
	j := c.rng.IntN(c.side - 1 + c.members[i].alive)
	if j >= c.side-1 {
		return // across the cut
	}
	if j >= i {
		j++
	}
	for x := range c.others {
		a, b := *c.view(i, x), *c.view(j, x)
		if a.dead || a.suspected {
			c.suspect(now, j, x, j)
		}
		if b.dead || b.suspected {
			c.suspect(now, i, x, i)
		}
	}
}

type cutKind uint8

const (
	cutProbe cutKind = iota
	cutFailed
	cutSuspect
	cutTimeout
	cutDead
	cutExchange
)

type cutEvent struct {
	at                  time.Duration
	seq                 uint64
	kind                cutKind
	member, other, from int
	took                time.Duration
}

func (c *cut) at(at time.Duration, e cutEvent) {
	c.seq++
	e.at, e.seq = at, c.seq
	c.queue.push(e)
}
