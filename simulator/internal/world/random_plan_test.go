package world

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sbr/reachability"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// plan is one random run: what the cluster is like, and what happens to it.
type plan struct {
	seed    uint64
	options Options
	// perfect are nodes that nothing happens to: always running, with unhurt access to the store.
	perfect map[int]bool
	groups  [][]int
	// live says that the faults are such that exactly one side must survive (promise L1).
	live  bool
	alone bool          // only what each step must keep is checked, not the end
	rest  time.Duration // when the faults are over
	end   time.Duration
	play  func(w *World)
}

type planner struct {
	*rand.Rand
	plan
	steps []func(w *World)
}

func (p *planner) coin(chance float64) bool { return p.Float64() < chance }

func (p *planner) span(low, high time.Duration) time.Duration {
	return low + time.Duration(p.Int64N(int64(high-low)+1))
}

func (p *planner) at(t time.Duration, f func(w *World)) {
	p.steps = append(p.steps, func(w *World) { w.At(t, func() { f(w) }) })
}

func newPlanner(seed uint64) *planner {
	p := &planner{Rand: rand.New(rand.NewPCG(seed, 77)), plan: plan{seed: seed, perfect: make(map[int]bool)}}
	o := DefaultOptions()
	o.Seed = seed
	o.Nodes = 2 + p.IntN(6)
	majority := strategies.LeaseMajority{AcquireLeaseDelayForMinority: p.span(0, 3*time.Second)}
	if p.coin(0.75) {
		majority.IndirectlyConnected = strategies.KeepLargestGroup
	}
	o.Strategy = majority
	c := &o.Resolver
	c.StableAfter = p.span(2*time.Second, 20*time.Second)
	if p.coin(0.7) {
		c.DownAllWhenUnstable = 0
	} else {
		c.DownAllWhenUnstable = sbr.UnstableAfter(c.StableAfter)
	}
	if p.coin(0.5) {
		c.DownAllWhenIndirectlyConnected = sbr.Off
	}
	c.SettleAfter = p.span(0, 5*time.Second)
	c.ReleaseAfter = p.span(time.Second, 40*time.Second)
	c.LeaseTimeout = p.span(time.Second, 5*time.Second)
	c.LeaseDeadline = 2*c.LeaseTimeout + p.span(time.Second, 10*time.Second)
	c.SuspendTimeout = p.span(20*time.Second, 2*time.Minute)
	if p.coin(0.3) {
		c.WhenLeaseUnknown = sbr.UnknownSuspend
	}
	s := &o.Store
	s.OperationTimeout = c.LeaseTimeout
	s.HeartbeatTimeout = p.span(20*time.Second, time.Minute)
	s.HeartbeatInterval = s.HeartbeatTimeout / 10
	c.Watched = p.coin(0.5)
	c.HolderRetry = s.HeartbeatInterval
	d := o.Times
	d.After, d.Spread, d.Heal = p.span(time.Second, 5*time.Second), p.span(0, 3*time.Second),
		p.span(100*time.Millisecond, 2*time.Second)
	if p.coin(0.2) {
		o.Probe = reachability.DefaultSettings()
	}
	if p.coin(0.3) {
		o.Network.Loss = 0.4 * p.Float64()
	}
	p.options = o
	return p
}

// split returns the nodes in two or three groups, none of them empty.
func (p *planner) split(n int) [][]int {
	groups := make([][]int, min(2+p.IntN(4)/3, n))
	for i, x := range p.Perm(n) {
		g := i
		if i >= len(groups) {
			g = p.IntN(len(groups))
		}
		groups[g] = append(groups[g], x)
	}
	return groups
}

func (p *planner) fault() StoreFault {
	switch p.IntN(5) {
	case 0:
		return StoreFault{Access: Silent}
	case 1:
		return StoreFault{Access: Refused}
	case 2:
		return StoreFault{LoseRequests: p.Float64()}
	case 3:
		return StoreFault{LoseAnswers: p.Float64()}
	default:
		return StoreFault{Late: p.Float64(), LateBy: p.span(time.Second, 40*time.Second),
			Slow: p.span(0, 500*time.Millisecond)}
	}
}

// randomPlan lets anything happen. Only safety is expected.
func randomPlan(seed uint64) plan {
	p := newPlanner(seed)
	if p.coin(0.5) {
		p.options.Times = nil
	}
	n := p.options.Nodes
	from, to := 5*time.Second, p.span(20*time.Second, 3*time.Minute)
	for range 1 + p.IntN(8) {
		p.anything(p.span(from, to))
	}
	p.options.Resolver.LeaseRetry = p.span(100*time.Millisecond, 2*time.Second)
	p.rest = to + 5*time.Second
	p.at(p.rest, func(w *World) { w.SetLoss(0) })
	heal := p.coin(0.5)
	open := p.coin(0.7)
	again := p.coin(0.3)
	p.at(p.rest, func(w *World) {
		for i := range w.Nodes() {
			f := w.Nodes()[i].fault
			if open || f.Access == Open {
				w.SetStore(StoreFault{}, i)
			}
		}
		if heal {
			w.Heal()
		}
		for _, n := range w.Nodes() {
			if again {
				n.Restart()
			}
		}
	})
	c := &p.options.Resolver
	p.end = p.rest + 5*time.Minute + time.Duration(n+3)*(c.LeaseDeadline+c.StableAfter) + 2*c.SuspendTimeout +
		2*p.options.Store.HeartbeatTimeout
	return p.done()
}

func (p *planner) done() plan {
	steps := p.steps
	p.play = func(w *World) {
		for _, s := range steps {
			s(w)
		}
	}
	return p.plan
}

// anything plans one random step.
func (p *planner) anything(t time.Duration) {
	n := p.options.Nodes
	node := p.IntN(n)
	switch p.IntN(13) {
	case 12:
		p.at(t, func(w *World) { repeat(w) })
	case 0, 1, 2:
		g := p.split(n)
		p.at(t, func(w *World) { w.Partition(g...) })
	case 3:
		p.at(t, func(w *World) { w.Heal() })
	case 4:
		p.at(t, func(w *World) { w.Nodes()[node].Crash() })
		if p.coin(0.5) {
			d := p.span(0, 40*time.Second)
			p.at(t+d, func(w *World) { w.Nodes()[node].Restart() })
		}
	case 5:
		d := p.span(time.Second, 2*time.Minute)
		p.at(t, func(w *World) { w.Nodes()[node].Pause(d) })
	case 6, 7, 8:
		f, d := p.fault(), p.span(time.Second, time.Minute)
		nodes := p.some(n)
		p.at(t, func(w *World) { w.SetStore(f, nodes...) })
		if p.coin(0.6) {
			p.at(t+d, func(w *World) { w.SetStore(StoreFault{}, nodes...) })
		}
	case 9:
		p.at(t, func(w *World) { w.Join() })
	case 10:
		p.at(t, func(w *World) { w.Nodes()[node].Leave() })
	default:
		other := (node + 1 + p.IntN(n-1)) % n
		if p.coin(0.5) {
			p.at(t, func(w *World) { w.Cut(node, other, true) })
		} else {
			p.at(t, func(w *World) { w.Cut(node, other, false) })
		}
	}
}

// repeat tells all members things again that they were told before: facts, old verdicts and old records.
func repeat(w *World) {
	for _, p := range w.procs {
		if !p.runs() {
			continue
		}
		for _, q := range w.procs {
			if !p.knows(q) {
				continue
			}
			p.w.after(w.between(0, time.Second), p, func() {
				if !p.knows(q) {
					return
				}
				m, _ := p.r.Member(q.id) // before it is seen anew
				p.step(sbr.MemberSeen{Member: q.self})
				p.step(sbr.Reachability{ID: q.id, Unreachable: m.Unreachable})
				if n := len(w.store.chain); n > 0 {
					old := w.store.chain[w.rng.IntN(n)].Clone()
					if old.Token <= q.r.Verdict().Token {
						p.step(sbr.Told{From: q.id, Verdict: *old})
					}
					if old = w.store.chain[w.rng.IntN(n)].Clone(); old.Token <= p.r.Verdict().Token {
						p.step(sbr.LeaseObserved{Record: sbr.Record{Holder: old.DecidedBy, Token: old.Token, Verdict: old}})
					}
				}
			})
		}
	}
}

func (p *planner) some(n int) []int {
	x := p.Perm(n)
	return x[:1+p.IntN(n)]
}

// livePlan is one clean partition, with faults of the store that leave at least one member whole. Exactly one
// side must survive.
func livePlan(seed uint64) plan {
	p := newPlanner(seed)
	p.live = true
	o := &p.options
	o.Probe = reachability.Settings{}
	o.Resolver.DownAllWhenUnstable = 0
	o.Times.Spread = min(o.Times.Spread, o.Resolver.StableAfter/2) // nobody decides about half of a cut
	n := o.Nodes
	p.groups = p.split(n)
	cut := p.span(6*time.Second, 10*time.Second)
	p.at(cut, func(w *World) { w.Partition(p.groups...) })
	each := p.coin(0.5)
	p.harmStore(each)
	if p.coin(0.3) {
		p.at(p.span(0, cut), func(w *World) { w.Join() })
	}
	p.rest = cut
	if each && p.coin(0.5) {
		p.harmNodes(cut)
	}
	c := &o.Resolver
	p.end = p.rest + 3*time.Minute + time.Duration(n+3)*(c.LeaseDeadline+c.StableAfter) + 2*c.SuspendTimeout +
		2*o.Store.HeartbeatTimeout
	return p.done()
}

// harmNodes crashes or pauses some of the nodes that are not perfect. Each side has a perfect one.
func (p *planner) harmNodes(cut time.Duration) {
	for i := range p.options.Nodes {
		at := p.span(cut-3*time.Second, cut+40*time.Second)
		p.rest = max(p.rest, at+time.Minute)
		switch d := p.span(time.Second, time.Minute); {
		case p.perfect[i] || p.coin(0.4):
		case p.coin(0.5):
			p.at(at, func(w *World) { w.Nodes()[i].Crash() })
		default:
			p.at(at, func(w *World) { w.Nodes()[i].Pause(d) })
		}
	}
}

// harmStore leaves at least one node with perfect access. Where answers may get lost, or writes come late,
// each side has such a node: a side of which nobody ever hears that it won cannot survive.
func (p *planner) harmStore(soft bool) {
	lucky := p.IntN(len(p.groups))
	for g, nodes := range p.groups {
		whole := -1
		if soft || g == lucky {
			whole = nodes[p.IntN(len(nodes))]
		}
		for _, i := range nodes {
			switch {
			case i == whole || p.coin(0.3):
				p.perfect[i] = true
			case soft:
				f := p.fault()
				p.at(0, func(w *World) { w.SetStore(f, i) })
			default:
				f := StoreFault{Access: Silent + Access(p.IntN(2))}
				p.at(0, func(w *World) { w.SetStore(f, i) })
			}
		}
	}
}

func (p *plan) String() string {
	o := &p.options
	return fmt.Sprintf("seed %d: %d nodes, live %v, groups %v, perfect %v\n resolver %+v\n strategy %+v\n network %+v\n times %+v\n store %+v",
		p.seed, o.Nodes, p.live, p.groups, p.perfect, o.Resolver, o.Strategy, o.Network, o.Times, o.Store)
}
