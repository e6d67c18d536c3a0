package world

import (
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// stage is the place of a process in its life.
type stage uint8

const (
	stageBooting stage = iota // reads the store, looks for somebody to join
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
	paused     bool
	pausedAt   time.Duration
	backlog    []func()
	downReason string
	downAt     time.Duration
	left       bool // everybody who could hear it was told that it left

	timer  uint64 // the generation of the pending tick
	spins  int    // ticks in a row that did not let time pass
	client client
	tells  []*telling
	peers  []peer // by the index of their process
	asked  bool   // a decision was explained since the last race ended
	seen   []sbr.Report
	watch  watch
}

func (w *World) newProcess(n *Node, rec sbr.Record) *process {
	n.lives++
	p := &process{w: w, node: n, index: len(w.procs), id: sbr.ID(fmt.Sprintf("%s#%d", n.Name, n.lives)), since: w.now, rate: n.rate}
	p.self = sbr.Member{
		ID: p.id, Name: n.Name, Addr: address(n.index + 1), Roles: n.Roles,
		Born: int64((w.now+n.skew)/time.Millisecond)*1000 + int64(n.index) + 1, Seen: rec.Token, Status: sbr.Up,
	}
	p.client = client{w: w, p: p}
	p.watch.harmed = n.fault != StoreFault{}
	n.proc = p
	w.procs = append(w.procs, p)
	w.byID[p.id] = p
	return p
}

// clock is the process's own monotonic clock.
func (p *process) clock() time.Duration {
	return p.shown + time.Duration(float64(p.w.now-p.since)*p.rate)
}

// wall is the first moment of the world at which the process's clock shows t or later.
func (p *process) wall(t time.Duration) time.Duration {
	at := p.since + time.Duration(float64(t-p.shown)/p.rate)
	for p.shown+time.Duration(float64(at-p.since)*p.rate) < t {
		at++
	}
	return at
}

// setRate changes the rate of the clock, and the moment at which the next deadline comes with it.
func (p *process) setRate(rate float64) {
	p.shown, p.since, p.rate = p.clock(), p.w.now, rate
	if p.stage == stageRunning {
		p.settle(nil)
	}
}

// address is that of the n-th node, counted from 1. Hosts are ordered as text, so that within a block all have the same length.
func address(n int) string {
	const block, blocks = 156, 8 // last number 100 to 255, the one before 2 to 9
	switch {
	case n < 10:
		return fmt.Sprintf("10.0.0.%d:7946", n)
	case n < 100:
		return fmt.Sprintf("10.0.1.%d:7946", n)
	default:
		k := n - 100
		return fmt.Sprintf("10.%d.%d.%d:7946", k/(block*blocks), 2+k/block%blocks, 100+k%block)
	}
}

// runs reports whether the process takes part, or would if it were not paused.
func (p *process) runs() bool { return p.stage == stageRunning }

// alive reports whether others can notice the process.
func (p *process) alive() bool {
	return !p.paused && (p.stage == stageRunning || p.stage == stageDowned || p.stage == stageLeaving)
}

// dispatch runs an event of the process now, later if it is paused, never if it has stopped.
func (p *process) dispatch(f func()) {
	switch {
	case p.stage == stageStopped:
	case p.paused:
		p.backlog = append(p.backlog, f)
	default:
		f()
	}
}

// boot reads the store until it answers, then joins.
func (p *process) boot() {
	var s state
	c := &p.client
	c.call(false, func() { s = p.w.store.state }, func(ok bool) {
		if !ok {
			p.w.after(time.Second, p, p.boot)
			return
		}
		c.learn(s)
		p.self.Seen = s.record.Token
		p.join(s)
	})
}

// join looks for a member that the last verdict does not leave out; without one it does not start.
func (p *process) join(s state) {
	for _, i := range p.w.rng.Perm(len(p.w.procs)) {
		q := p.w.procs[i]
		if q == p || !q.runs() || q.paused || !p.w.net.direct(p.node.index, q.node.index) {
			continue
		}
		if s.record.Verdict.Standing(q.id, q.self.Seen) == sbr.Out {
			continue
		}
		p.run()
		p.step(sbr.LeaseObserved{Record: recordOf(s)})
		p.meet(q)
		for _, x := range p.w.procs {
			if q.knows(x) && !q.peers[x.index].failed {
				p.meet(x) // whom it believes to be alive, whether or not that is still true
			}
		}
		q.meet(p)
		p.w.rewired()
		return
	}
	p.w.after(time.Second, p, p.boot)
}

// run starts the resolver.
func (p *process) run() {
	r, err := sbr.New(p.w.opts.Resolver, p.w.opts.Strategy, p.self, 0)
	if err != nil {
		panic(err) // the options were validated
	}
	p.since, p.shown, p.r, p.stage = p.w.now, 0, r, stageRunning
	p.w.note(p, "start", "has read token %d", p.self.Seen)
	p.settle(nil)
	p.client.wake()
}

// step hands an event to the resolver and carries out what it wants.
func (p *process) step(e sbr.Event) {
	if p.stage == stageRunning {
		p.w.eachCheck(func(c checker) { c.took(p.w, p, e) })
		p.settle(p.r.Step(p.clock(), e))
	}
}

// maxSpins is how many ticks in a row may pass without the deadline moving on.
const maxSpins = 50

// settle carries out effects and arranges the next tick.
func (p *process) settle(effects []sbr.Effect) {
	p.w.eachCheck(func(c checker) { c.stepped(p.w, p, effects) })
	for _, e := range effects {
		p.carry(e)
	}
	if p.stage != stageRunning {
		return
	}
	p.timer++
	at, ok := p.r.NextDeadline()
	if !ok {
		return
	}
	if at <= p.clock() {
		if p.spins++; p.spins > maxSpins {
			p.w.violate("liveness", "%s: the deadline %v does not move at %v", p.id, at, p.clock())
			return
		}
	} else {
		p.spins = 0
	}
	timer := p.timer
	p.w.at(p.wall(at), p, func() {
		if p.timer == timer && p.stage == stageRunning {
			p.settle(p.r.Tick(p.clock()))
		}
	})
}

// resume ends a pause: the first thing the process learns is that it did not run.
func (p *process) resume() {
	if p.stage == stageStopped || !p.paused {
		return
	}
	gap := p.w.now - p.pausedAt
	p.paused = false
	p.w.note(p, "resume", "after %v", gap)
	backlog := p.backlog
	p.backlog = nil
	for i := range p.peers {
		p.peers[i].forgetPending()
	}
	p.step(sbr.Resumed{Gap: gap})
	for _, f := range backlog {
		p.dispatch(f)
	}
	p.w.rewired()
}

// stop ends the process.
func (p *process) stop() {
	p.stage, p.paused, p.backlog, p.tells = stageStopped, false, nil, nil
	p.w.rewired()
}
