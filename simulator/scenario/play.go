package scenario

import (
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/simulator/internal/world"
)

// options are the simulator's words for the cluster. Seed and what is observed are the caller's.
func (s *Scenario) options() (world.Options, error) {
	cl := &s.Cluster
	r, times := &cl.SplitBrainResolver, s.lease()
	strategy, err := r.Strategy()
	if err != nil {
		return world.Options{}, err
	}
	nodes := cl.Nodes.All()
	o := world.DefaultOptions()
	o.Members = make([]world.NodeOptions, len(nodes))
	for i, n := range nodes {
		if o.Members[i], err = cl.node(n); err != nil {
			return world.Options{}, err
		}
	}
	o.Resolver, o.Strategy = r.Resolver(times), strategy
	o.Network = cl.Network
	o.Serf, o.Times = cl.Detection.options()
	o.Probe = r.Probe
	o.Store.Settings = times
	o.Store.HeartbeatInterval = times.Interval()
	if o.Store.HeartbeatTimeout == lease.Infinite {
		o.Store.HeartbeatTimeout = 100 * maxTime // longer than any run, and sums of it do not overflow
	}
	o.Slots, o.Shards = s.slots(), s.shards()
	o.ReapAfter = cl.ReapAfter
	return o, nil
}

// node are the simulator's words for a node.
func (c *Cluster) node(n Node) (world.NodeOptions, error) {
	own, err := c.rules(n.Name)
	return world.NodeOptions{Name: n.Name, Roles: n.Roles, Own: own}, err
}

// player plays the steps of one run.
type player struct {
	s *Scenario // as this run plays it
	w *world.World
	// observed says what is noted of the run.
	observed world.Options
	names    *Names
	nodes    []*world.Node
	// hurt is the step, counted from 1, whose store fault each node suffers.
	hurt []int
	// backups are what the store held at the times to which it goes back.
	backups map[time.Duration]world.Backup
}

// player runs the scenario, with the times that the seed draws, to its end, under options that observe sets.
func (ready *Prepared) player(seed uint64, observe func(*world.Options)) (*player, error) {
	s, o := ready.s.Drawn(seed), ready.options
	o.Seed = seed
	observe(&o)
	w, err := world.New(o)
	if err != nil {
		return nil, err
	}
	p := &player{s: s, w: w, observed: o, names: ready.names}
	for _, n := range p.names.Nodes[p.names.Start:] {
		node, err := s.Cluster.node(n)
		if err != nil {
			return nil, err
		}
		w.AddNode(node)
	}
	p.nodes = w.Nodes()
	p.hurt = make([]int, len(p.nodes))
	p.backUp(s)
	for i := range s.Steps {
		st := &s.Steps[i]
		w.At(st.At.From, func() { p.step(i+1, st) })
	}
	w.Run(s.RunFor)
	return p, nil
}

// backUp keeps what the store holds at the times to which it goes back, before anything else happens at these
// times.
func (p *player) backUp(s *Scenario) {
	p.backups = make(map[time.Duration]world.Backup)
	for i := range s.Steps {
		if f := s.Steps[i].LeaseStore; f != nil && f.Change.Restore != nil {
			at := *f.Change.Restore
			p.w.At(at, func() { p.backups[at] = p.w.Backup() })
		}
	}
}

func (p *player) node(name string) *world.Node { return p.nodes[p.names.Index[name]] }

// step does what one step says; number tells it from others.
func (p *player) step(number int, st *Step) {
	w, index := p.w, p.names.Index
	switch {
	case st.Partition != nil:
		groups := make([][]int, len(*st.Partition))
		for i, g := range *st.Partition {
			groups[i] = p.names.Expand(g)
		}
		w.Partition(groups...)
	case st.Cut != nil:
		w.Cut(index[(*st.Cut)[0]], index[(*st.Cut)[1]], true)
	case st.CutOneWay != nil:
		w.Cut(index[(*st.CutOneWay)[0]], index[(*st.CutOneWay)[1]], false)
	case st.Heal != nil:
		w.Heal()
	case st.Crash != nil:
		p.node(*st.Crash).Crash()
	case st.Link != nil, st.LinkOneWay != nil:
		p.link(st)
	case st.Restart != nil:
		n := p.node(*st.Restart)
		name := n.Name
		if st.As != nil {
			name = *st.As
		}
		n.Crash()
		n.RestartAs(name, st.State != nil)
	case st.ForceLeave != nil:
		var on []int
		if st.On != nil {
			on = p.names.Expand(*st.On)
		}
		w.ForceLeave(p.names.Expand(*st.ForceLeave), on)
	case st.Down != nil:
		p.node(*st.Down).DownBy(p.node(*st.By))
	case st.Leave != nil:
		p.node(*st.Leave).Leave()
	case st.Join != nil:
		p.node(*st.Join).Restart()
	case st.Pause != nil:
		p.node(*st.Pause).Pause(st.For.From)
	case st.LeaseStore != nil && st.LeaseStore.Kind == faultForget:
		w.Forget()
	case st.LeaseStore != nil && st.LeaseStore.forgets():
		w.Restore(p.backups[*st.LeaseStore.Change.Restore])
	case st.LeaseStore != nil:
		p.hurtStore(number, st, st.LeaseStore.fault())
	case st.Rights != nil:
		p.hurtStore(number, st, world.StoreFault{Access: world.Refused})
	case st.Clock != nil:
		p.clock(st.Clock)
	}
}

// link changes every link between two members or zones. What the step does not say stays as it is.
func (p *player) link(st *Step) {
	ends := st.Link
	if ends == nil {
		ends = st.LinkOneWay
	}
	for _, from := range p.names.Expand((*ends)[:1]) {
		for _, to := range p.names.Expand((*ends)[1:]) {
			switch both := st.Link != nil; {
			case st.healsLink():
				p.w.Mend(from, to, both)
			case st.cutsLink() && st.Latency == nil:
				p.w.Cut(from, to, both)
			default:
				p.change(st, from, to)
				if both {
					p.change(st, to, from)
				}
			}
		}
	}
}

func (p *player) change(st *Step, from, to int) {
	o := p.w.Link(from, to)
	if st.Loss != nil {
		o.Loss = *st.Loss
	}
	if st.Latency != nil {
		o.Latency = *st.Latency
	}
	p.w.SetLink(from, to, o)
}

// hurtStore sets a fault and arranges its end. A later fault of the same node outlives the end of an earlier
// one.
func (p *player) hurtStore(number int, st *Step, fault world.StoreFault) {
	hit := make([]int, 0, len(p.nodes))
	if st.Nodes != nil {
		hit = p.names.Expand(*st.Nodes)
	} else {
		for i := range p.nodes {
			hit = append(hit, i)
		}
	}
	for _, i := range hit {
		p.hurt[i] = number
	}
	p.w.SetStore(fault, hit...)
	if st.For == nil {
		return
	}
	p.w.At(p.w.Now()+st.For.From, func() {
		for _, i := range hit {
			if p.hurt[i] == number {
				p.hurt[i] = 0
				p.w.SetStore(world.StoreFault{}, i)
			}
		}
	})
}

func (p *player) clock(c *Clock) {
	n := p.node(c.Node)
	if c.Skew != nil {
		n.SetSkew(*c.Skew)
	}
	if c.Rate != nil {
		n.SetClock(*c.Rate)
	}
}

// Over is when the last step happens, or is over.
func (s *Scenario) Over() (t time.Duration) {
	for i := range s.Steps {
		st := &s.Steps[i]
		if st.At == nil {
			continue
		}
		end := st.At.Last()
		if st.For != nil {
			end += st.For.Last()
		}
		t = max(t, end)
	}
	return t
}

// Disturbed is the time of the last step that cut something; without one, of the last that crashed, restarted,
// paused or downed a member; without one of these too, of the last that made a link lossy or slow.
// ResolvedWithin counts from it; ok is false if there is no such step. Of a scenario with ranges it needs what
// a run has Drawn.
func (s *Scenario) Disturbed() (at time.Duration, ok bool) {
	for _, does := range []func(st *Step) bool{
		func(st *Step) bool {
			return st.Partition != nil || st.Cut != nil || st.CutOneWay != nil || st.cutsLink()
		},
		func(st *Step) bool { return st.Crash != nil || st.Restart != nil || st.Pause != nil || st.Down != nil },
		func(st *Step) bool { return (st.Link != nil || st.LinkOneWay != nil) && !st.healsLink() },
	} {
		for i := range s.Steps {
			if st := &s.Steps[i]; st.At != nil && does(st) && (!ok || st.At.From > at) {
				at, ok = st.At.From, true
			}
		}
		if ok {
			break
		}
	}
	return at, ok
}
