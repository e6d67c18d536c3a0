package world

import (
	"math"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr/timing"
)

// Memberlist are the settings of memberlist (v0.7.0, config.go) that a member's list follows from.
type Memberlist struct {
	timing.Gossip
	// RetransmitMult: each member that hears news sends it RetransmitMult*ceil(log10(n+1)) times.
	RetransmitMult int
	// TCPTimeout is how long a dial across a cut takes.
	TCPTimeout time.Duration
	// PushPullInterval is the time between two exchanges of the whole list; each member makes one with one
	// other in turn.
	PushPullInterval time.Duration
	// GossipToTheDeadTime is how long the dead are told news as well. Then they are forgotten.
	GossipToTheDeadTime time.Duration
}

// MemberlistOf returns the settings of a profile of Serf: lan, wan or local.
func MemberlistOf(profile string) (m Memberlist, ok bool) {
	g, ok := timing.Profile(profile)
	m = Memberlist{g, 4, 10 * time.Second, 30 * time.Second, 30 * time.Second}
	switch profile {
	case "wan":
		m.TCPTimeout, m.PushPullInterval, m.GossipToTheDeadTime = 30*time.Second, 60*time.Second, 60*time.Second
	case "local":
		m.RetransmitMult, m.TCPTimeout = 2, time.Second
		m.PushPullInterval, m.GossipToTheDeadTime = 15*time.Second, 15*time.Second
	}
	return m, ok
}

// Constants of memberlist and Serf that no profile changes.
const (
	packetSize        = 1400 // UDPBufferSize
	exchangeThreshold = 32   // pushPullScaleThreshold
	reconnectInterval = 30 * time.Second
	reapInterval      = 15 * time.Second
	broadcastTimeout  = 5 * time.Second
	leaveDelay        = time.Second // LeavePropagateDelay
)

// liveness is what memberlist thinks of a member.
type liveness uint8

const (
	unheard liveness = iota // it is not in the list
	alive
	suspect
	dead
	departed // it said itself that it is dead
)

func (l liveness) gone() bool { return l == dead || l == departed }

// maxAccusers is one more than the most confirmations that a suspicion waits for: SuspicionMult-2 of the
// profile wan.
const maxAccusers = 5

// peer is what a process keeps of one name: the entry in memberlist's list, the one in Serf's, and what the
// world notes beside them.
type peer struct {
	who   *process // heard of last under the name
	state liveness
	since time.Duration // of the state
	inc   uint32        // memberlist's incarnation number

	// until is the end of the suspicion; accusers are the members that have it, the first did not confirm.
	until    time.Duration
	accusers [maxAccusers]int32
	accused  int8

	spreads *broadcast // the news about it that still spreads

	status status
	ltime  uint32        // Serf's Lamport time of the status
	moved  time.Duration // when Serf called it failed

	bye    bool          // it has said goodbye
	evicts bool          // an operator removes it as soon as it is called failed here
	timed  timedFindings // what the detector that goes by times says
}

// at is the process that gets what is sent to the member.
func (q *peer) at() *process {
	if p := q.who.node.proc; p.name == q.who.name {
		return p
	}
	return q.who
}

// peer is what p keeps of the name of s.
func (p *process) peer(s *process) *peer { return p.named(s.name) }

func (p *process) named(name int32) *peer {
	for int(name) >= len(p.peers) {
		p.peers = append(p.peers, make([]peer, int(name)+1-len(p.peers))...)
	}
	return &p.peers[name]
}

// works reports whether the process's Serf runs, unless it is paused.
func (p *process) works() bool {
	return p.stage == stageRunning || p.stage == stageDowned || p.stage == stageLeaving
}

// hearAlive is memberlist's aliveNode: a member is alive, under a number that refutes all lower ones.
func (p *process) hearAlive(name int32, who *process, inc uint32) {
	q := p.named(name)
	if name == p.name {
		if who.node == p.node && inc >= q.inc && (who != p || inc > q.inc) && p.stage != stageLeaving {
			p.refute(inc)
		}
		return
	}
	if p.keepsOut(who) {
		return
	}
	moves := q.state != unheard && q.who.node != who.node
	if moves && q.state != departed || q.state != unheard && inc <= q.inc && !moves {
		return
	}
	if q.state == unheard {
		p.enlist(name)
	}
	was := q.state
	q.until, q.inc = 0, inc
	if q.state != alive {
		q.state, q.since = alive, p.w.now
	}
	p.spread(news{kind: newsAlive, name: name, who: who, inc: inc})
	if was != alive && was != suspect || q.who != who {
		p.joined(q, who)
	}
}

// enlist adds a name to memberlist's list, at a random place.
func (p *process) enlist(name int32) {
	p.order = append(p.order, name)
	n := len(p.order) - 1
	at := p.w.rng.IntN(n + 1)
	p.order[at], p.order[n] = p.order[n], p.order[at]
}

// refute answers an accusation, or an earlier process's news, with a higher number.
func (p *process) refute(inc uint32) {
	q := p.named(p.name)
	q.inc = max(q.inc, inc) + 1
	p.adjustAwareness(1)
	p.spread(news{kind: newsAlive, name: p.name, who: p, inc: q.inc})
}

// hearSuspect is memberlist's suspectNode: from suspects a member.
func (p *process) hearSuspect(name int32, inc uint32, from int32) {
	q := p.named(name)
	switch {
	case q.state == unheard || inc < q.inc:
	case q.state == suspect:
		p.confirm(q, name, from)
	case q.state != alive:
	case name == p.name:
		p.refute(inc)
	default:
		p.spread(news{kind: newsSuspect, name: name, from: from, inc: inc})
		q.state, q.since, q.inc = suspect, p.w.now, inc
		q.accusers[0], q.accused = from, 1
		p.lasts(q, name)
	}
}

// hearDead is memberlist's deadNode: from calls a member dead. A member that calls itself dead has left.
func (p *process) hearDead(name int32, inc uint32, from int32) {
	q := p.named(name)
	if q.state == unheard || inc < q.inc || q.state.gone() {
		return
	}
	if name == p.name && p.stage != stageLeaving {
		p.refute(inc)
		return
	}
	p.spread(news{kind: newsDead, name: name, from: from, inc: inc})
	q.state, q.since, q.inc, q.until = dead, p.w.now, inc, 0
	if name == from {
		q.state = departed
	}
	if name != p.name {
		p.lost(q)
	}
}

// confirm takes in another member's suspicion of a member that is suspected already.
func (p *process) confirm(q *peer, name, from int32) {
	if int(q.accused) > p.confirmations() || slices.Contains(q.accusers[:q.accused], from) {
		return
	}
	q.accusers[q.accused] = from
	q.accused++
	p.lasts(q, name)
	p.spread(news{kind: newsSuspect, name: name, from: from, inc: q.inc})
}

// confirmations is how many a suspicion waits for.
func (p *process) confirmations() int {
	if k := p.w.serf.SuspicionMult - 2; len(p.order)-2 >= k {
		return max(k, 0)
	}
	return 0
}

// lasts arranges the end of a suspicion with the confirmations that it has (suspicion.go,
// remainingSuspicionTime).
func (p *process) lasts(q *peer, name int32) {
	m, n, k := &p.w.serf, len(p.order), p.confirmations()
	d := m.SuspicionMin(n)
	if longest := m.SuspicionMax(n); k > 0 {
		d = max(longest-time.Duration(shares[k][q.accused-1]*float64(longest-d)), d)
	}
	q.until = max(q.since+d, p.w.now)
	p.w.schedule(q.until, p, jobSuspect-name)
}

// shares are log(c+1)/log(k+1), by k and c.
var shares = func() (s [maxAccusers][maxAccusers]float64) {
	for k := 1; k < maxAccusers; k++ {
		for c := range k + 1 {
			s[k][c] = math.Log(float64(c+1)) / math.Log(float64(k+1))
		}
	}
	return s
}()

// overdue ends a suspicion that was not refuted.
func (p *process) overdue(name int32) {
	if q := p.named(name); q.state == suspect && q.until <= p.w.now {
		p.hearDead(name, q.inc, p.name)
	}
}

// adjustAwareness changes how much the process doubts its own health (Lifeguard: awareness.go).
func (p *process) adjustAwareness(by int) {
	p.awareness = min(max(p.awareness+by, 0), max(p.w.serf.AwarenessMaxMultiplier, 1)-1)
}
