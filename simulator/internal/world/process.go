package world

import (
	"strconv"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sbr/reachability"
)

// stage is the place of a process in its life.
type stage uint8

const (
	stageBooting stage = iota // reads the store, looks for a process to join
	stageRunning
	stageDowned  // was downed; tells the others, answers nobody
	stageLeaving // leaves of its own will
	stageStopped
)

// process is one incarnation: a resolver and everything that drives it.
type process struct {
	w     *World
	node  *Node
	index int
	id    sbr.ID
	self  sbr.Member
	r     *sbr.Resolver

	// The monotonic clock: at the moment since of the world it showed shown, and runs at rate.
	since, shown time.Duration
	rate         float64

	stage      stage
	state      sbr.State // of its resolver, as it was shown last
	paused     bool
	pausedAt   time.Duration
	backlog    []action
	began      time.Duration // when its resolver started
	downReason string
	downAt     time.Duration
	left       bool // all that could hear it were told that it left

	// prev is the incarnation that ran on the node before. stateLost says that this one started without its
	// state folder: it knows nothing of prev, and cannot prove that it ended. suspects are those that prev
	// could not reach and that were not decided about.
	prev      *process
	stateLost bool
	suspects  []sbr.Member
	// members are the others in prev's last view that counted, token is the verdict that it knew then,
	// hasLeft says that it left them in peace; see start.go.
	members []sbr.Member
	token   uint64
	hasLeft bool
	// found says that it has found its cluster, and waits for the answers of all; answeredBy, by index, are
	// the members that have answered.
	found      bool
	answeredBy set

	due    time.Duration // when the resolver wants to be called, by the world's clock; never if it does not
	tickAt time.Duration // when the event comes that stands for it; it may be too early
	ticker uint64        // that event; zero: none
	replan bool          // due is out of date, and not before tickAt
	held   bool          // nothing is arranged, because more steps follow at once
	spins  int           // ticks in a row that did not let time pass

	client *client
	// takesOver are the holders that its resolver's last attempt may replace although they are not silent.
	takesOver []sbr.ID
	// heardOf is the record that the watch has told its resolver of last; nil: of none.
	heardOf *lease.Record
	tells   []*telling

	// Its Serf: what it keeps of each name, by the number of the name; the order in which it probes them, and
	// whose turn it is; how much it doubts itself; when its probes tick; what it has arranged to do; what it
	// still spreads; and its Lamport clock.
	name                int32
	peers               []peer
	order               []int32
	turn, awareness     int
	ticks               time.Duration
	does                uint8
	broadcasts, intents broadcasts
	lamport             uint32
	picked              []int32
	here                int
	met                 set           // by index: the processes that it has ever listed
	nextJoin            time.Duration // when it may reconnect to a failed member by itself

	tracker   *reachability.Tracker
	phase     time.Duration // of its rounds of probes
	rounder   uint64        // the event of the next round; zero: none
	rounds    int
	observing bool // an opinion is formed soon

	asked    bool // a decision was explained since the last race ended
	believed belief
	watch    watch
	// refused says when each downed incarnation that it keeps out was refused first.
	refused map[*process]time.Duration
	// request is the member that an operator asked it to down, until the resolver has answered; empty: none.
	request sbr.ID

	news sbr.Event // what others are told of it

	// drivers are its parts in the slots, and then in the shards of each type; see startSlots.
	drivers  []*driver
	sure     time.Duration // the last moment, by its clock, at which nothing was amiss; negative: there was none
	certain  bool          // nothing is amiss now
	noticing bool          // they look around soon
	resigned bool          // it leaves once they have handed over
	wokeAt   time.Duration // the end of its last pause, by the world's clock
}

func (w *World) newProcess(n *Node, rec sbr.Record) *process {
	p := &process{
		w: w, node: n, index: len(w.procs), id: n.nextID(), since: w.now, rate: n.rate,
		prev: n.proc, due: never, state: sbr.StateArming,
	}
	p.self = sbr.Member{
		ID: p.id, Name: n.Name, Addr: address(n.index + 1), Roles: n.Roles,
		Born: int64((w.now+n.skew)/time.Millisecond)*1000 + int64(n.index) + 1, Seen: rec.Token, Status: sbr.Up,
	}
	p.name = w.nameOf(p)
	p.openLease()
	p.watch.harmed, p.watch.late = n.fault != StoreFault{} || w.store.wentBack, w.now > 0
	n.proc = p
	w.procs = append(w.procs, p)
	w.byID[p.id] = p
	return p
}

// nextID names the next incarnation on the node.
func (n *Node) nextID() sbr.ID {
	for {
		n.lives++
		if id := sbr.ID(n.Name + "#" + strconv.Itoa(n.lives)); n.w.byID[id] == nil {
			return id
		}
	}
}

// address is that of the n-th node, counted from 1. Hosts are ordered as text, so that within a block all
// have the same length.
func address(n int) string {
	const block, blocks = 156, 8 // last number 100 to 255, the one before 2 to 9
	switch {
	case n < 10:
		return "10.0.0." + strconv.Itoa(n) + ":7946"
	case n < 100:
		return "10.0.1." + strconv.Itoa(n) + ":7946"
	default:
		k := n - 100
		return "10." + strconv.Itoa(k/(block*blocks)) + "." + strconv.Itoa(2+k/block%blocks) +
			"." + strconv.Itoa(100+k%block) + ":7946"
	}
}

// String is for traces.
func (p *process) String() string { return string(p.id) }

// runs reports whether the process takes part, or would if it were not paused.
func (p *process) runs() bool { return p.stage == stageRunning }

// alive reports whether others can notice the process.
func (p *process) alive() bool {
	return !p.paused && (p.stage == stageRunning || p.stage == stageDowned || p.stage == stageLeaving)
}

// attends reports whether the process notices what happens around it.
func (p *process) attends() bool { return p.stage == stageRunning && !p.paused }

// nameOf returns the number of the name under which the others list the process.
func (w *World) nameOf(p *process) int32 {
	name := p.self.Name
	i, known := w.nameIndex[name]
	if !known {
		i = int32(len(w.names))
		w.names, w.nameIndex[name] = append(w.names, name), i
	}
	return i
}

// dispatch runs an event of the process now, later if it is paused, never if it has stopped.
func (p *process) dispatch(a action) {
	switch {
	case p.stage == stageStopped:
	case p.paused:
		p.backlog = append(p.backlog, a)
	default:
		a.act()
	}
}

// boot reads the store until it answers, then joins.
func (p *process) boot() {
	p.client.begin(lease.ReadOp{}, func(f lease.Finished) {
		if f.Err != nil {
			p.w.after(time.Second, p, p.boot)
			return
		}
		p.self.Seen = f.Snapshot.Record.Token
		p.join(recordOf(f.Snapshot.Record))
	})
}

// list puts s into the list of p, which starts.
func (p *process) list(s *process) {
	q := p.named(s.name)
	q.who, q.state, q.inc, q.status, q.ltime, q.since = s, alive, 1, present, 1, p.w.now
	p.order, p.lamport = append(p.order, s.name), 2
}

// lists reports whether p lists a member of the name of s that runs on another node. Serf takes no second one
// under a name: not while the first is alive, and not while it is listed as failed.
func (p *process) lists(s *process) bool {
	q := p.peer(s)
	return q.listed() && q.who.node != s.node
}

// join looks for a member that the last verdict does not leave out. Without one it starts by itself, if it
// may.
func (p *process) join(rec sbr.Record) {
	for _, i := range p.w.rng.Perm(len(p.w.procs)) {
		q := p.w.procs[i]
		if q == p || !q.runs() || q.paused || !p.w.net.direct(p.node.index, q.node.index) {
			continue
		}
		if rec.Verdict.Standing(q.id, q.self.Seen) == sbr.Out || q.lists(p) {
			continue
		}
		if !p.haveAnswered(q, rec.Verdict) {
			break
		}
		p.run()
		p.step(sbr.LeaseObserved{Record: rec})
		p.recall(q, rec)
		p.w.look()
		q.merge(p)
		p.merge(q)
		p.sayJoined()
		p.learnLeft(q)
		p.w.look()
		p.w.account()
		return
	}
	if !p.found && p.startsAlone(rec) {
		p.startAlone(rec)
		return
	}
	p.w.after(time.Second, p, p.boot)
}

// run starts the resolver.
func (p *process) run() {
	r, err := sbr.New(p.node.rules.Resolver, p.node.rules.Strategy, p.self, 0)
	if err != nil {
		panic(err) // the options were validated
	}
	p.client.origin = p.client.now()
	p.began, p.since, p.shown, p.r, p.news = p.w.now, p.w.now, 0, r, sbr.MemberSeen{Member: p.self}
	probe := p.w.opts.Probe
	probe.AllHeard = sbr.KeepsLargestGroup(p.node.rules.Strategy)
	p.tracker, p.phase = reachability.New(probe, p.id), p.w.between(0, probe.Interval-1)
	p.stage = stageRunning
	if p.w.now > 0 {
		p.list(p)
		p.spread(news{kind: newsAlive, name: p.name, who: p, inc: 1})
		p.startTicks()
	}
	p.w.account()
	p.w.note(p, "start", "has read token %d", p.self.Seen)
	p.settle(nil)
	p.startSlots()
	p.client.wake()
}

// step hands an event to the resolver and carries out what it wants.
func (p *process) step(e sbr.Event) {
	if p.stage != stageRunning {
		return
	}
	quiet := p.take(e, p.clock())
	if _, ok := e.(sbr.Reachability); ok && quiet && p.ticksSoon() {
		p.replan = true
		return
	}
	p.plan()
}

// take hands an event to the resolver at the moment now, and arranges nothing. It is quiet if nothing
// follows.
func (p *process) take(e sbr.Event, now time.Duration) (quiet bool) {
	if p.stage != stageRunning {
		return false
	}
	for _, c := range p.w.checks {
		c.took(p.w, p, e)
	}
	p.assure()
	effects := p.r.Step(now, e)
	quiet = len(effects) == 0
	p.carryOut(effects)
	return quiet
}

// carryOut carries out effects.
func (p *process) carryOut(effects []sbr.Effect) {
	p.shows(p.r.State())
	p.weigh()
	for _, c := range p.w.checks {
		c.stepped(p.w, p, effects)
	}
	for _, e := range effects {
		p.carry(e)
	}
}

// settle carries out effects and arranges the next tick.
func (p *process) settle(effects []sbr.Effect) {
	p.carryOut(effects)
	p.plan()
}

// pause stops the process without ending it.
func (p *process) pause() {
	p.assure()
	p.eachExecutor((*executor).sleeps)
	p.certain = false
	p.paused, p.pausedAt = true, p.w.now
	p.w.look()
}

// resume ends a pause: the first thing the process learns is that it did not run.
func (p *process) resume() {
	if p.stage == stageStopped || !p.paused {
		return
	}
	gap := p.w.now - p.pausedAt
	p.paused, p.wokeAt = false, p.w.now
	p.w.note(p, "resume", "after %v", gap)
	p.w.disturb()
	p.eachExecutor((*executor).wakes)
	backlog := p.backlog
	p.backlog = nil
	p.step(sbr.Resumed{Gap: gap})
	for _, a := range backlog {
		p.dispatch(a)
	}
	p.arouse()
	p.w.look()
	p.w.account()
}

// stop ends the process.
func (p *process) stop() {
	p.eachExecutor((*executor).vanish)
	p.stage = stageStopped
	p.paused, p.backlog, p.tells = false, nil, nil
	p.w.look()
	p.w.account()
}
