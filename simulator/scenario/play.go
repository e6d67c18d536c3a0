package scenario

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr/timing"
	"github.com/serf-sbr/serf-sbr/simulator/world"
)

// options are the simulator's words for the cluster. Seed and what is observed are the caller's.
func (s *Scenario) options() (world.Options, error) {
	cl := &s.Cluster
	r, times := &cl.SplitBrainResolver, s.lease()
	strategy, err := r.Strategy()
	if err != nil {
		return world.Options{}, err
	}
	nodes := cl.Nodes.all()
	o := world.DefaultOptions()
	o.Members = make([]world.NodeOptions, len(nodes))
	for i, n := range nodes {
		o.Members[i] = world.NodeOptions{Name: n.Name, Roles: n.Roles}
	}
	probes := timing.Probes{Interval: r.Probe.Interval, Timeout: r.Probe.Timeout, Tries: r.Probe.Tries, Neighbours: r.Probe.Neighbours}
	o.Resolver, o.Strategy = r.Resolver(times), strategy
	o.Network = world.NetworkOptions{
		Latency: cl.Network.Latency, Jitter: cl.Network.Jitter, Loss: cl.Network.Loss, Probes: probes.On(),
	}
	o.Detection = cl.Detection.options(len(nodes), probes)
	o.Store.TTL, o.Store.Interval, o.Store.Timeout = times.HeartbeatTimeout, times.Interval(), times.OperationTimeout
	if o.Store.TTL == lease.Infinite {
		o.Store.TTL = 100 * maxTime // longer than any run, and sums of it do not overflow
	}
	o.Store.Watch = bool(r.LeaseMajority.Watch)
	o.Slots, o.Shards = s.slots(), s.shards()
	o.Refuse, o.KeepNames = true, true // as package downing does, and as Serf does
	return o, nil
}

// player plays the steps of one run.
type player struct {
	w     *world.World
	names *names
	nodes []*world.Node
	// hurt is the step, counted from 1, whose store fault each node suffers.
	hurt []int
}

// player runs the scenario to its end, under options that observe sets.
func (ready *Prepared) player(seed uint64, observe func(*world.Options)) (*player, error) {
	s, o := ready.s, ready.options
	o.Seed = seed
	observe(&o)
	w, err := world.New(o)
	if err != nil {
		return nil, err
	}
	p := &player{w: w, names: ready.names}
	for _, n := range p.names.nodes[p.names.start:] {
		w.AddNode(world.NodeOptions{Name: n.Name, Roles: n.Roles})
	}
	p.nodes = w.Nodes()
	p.hurt = make([]int, len(p.nodes))
	for i := range s.Steps {
		st := &s.Steps[i]
		w.At(*st.At, func() { p.step(i+1, st) })
	}
	w.Run(s.RunFor)
	return p, nil
}

// sides are the groups of nodes, by index, that the steps set apart from the others; harmed are those that they do something to. Whoever joins
// is not among them: to learn of thousands of members in any order takes a resolver a second.
func (s *Scenario) sides() (sides [][]int, harmed []int) {
	n := s.names()
	if len(n.nodes) <= world.DefaultResolvers {
		return nil, nil // nobody asks
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		for _, name := range []*string{st.Crash, st.Restart, st.Leave, st.Pause} {
			if name != nil {
				harmed = append(harmed, n.index[*name])
			}
		}
		for _, list := range []*[]string{st.Cut, st.CutOneWay, st.Nodes} {
			if list != nil {
				harmed = append(harmed, n.expand(*list)...)
			}
		}
		if st.Clock != nil {
			harmed = append(harmed, n.index[st.Clock.Node])
		}
		if st.Partition != nil {
			sides = append(sides, n.groups(*st.Partition)...)
		}
	}
	return sides, harmed
}

// groups are the groups of a partition, in order; the last one is whoever is not named.
func (n *names) groups(partition [][]string) [][]int {
	groups := make([][]int, len(partition)+1)
	named := make([]bool, len(n.nodes))
	for g, list := range partition {
		groups[g] = n.expand(list)
		slices.Sort(groups[g])
		for _, i := range groups[g] {
			named[i] = true
		}
	}
	for i := range named {
		if !named[i] {
			groups[len(partition)] = append(groups[len(partition)], i)
		}
	}
	return groups
}

func (p *player) node(name string) *world.Node { return p.nodes[p.names.index[name]] }

// step does what one step says; number tells it from others.
func (p *player) step(number int, st *Step) {
	w, index := p.w, p.names.index
	switch {
	case st.Partition != nil:
		groups := make([][]int, len(*st.Partition))
		for i, g := range *st.Partition {
			groups[i] = p.names.expand(g)
		}
		w.Partition(groups...)
	case st.Cut != nil:
		w.Cut(index[(*st.Cut)[0]], index[(*st.Cut)[1]])
	case st.CutOneWay != nil:
		w.CutOneWay(index[(*st.CutOneWay)[0]], index[(*st.CutOneWay)[1]])
	case st.Heal != nil:
		w.Heal()
	case st.Crash != nil:
		p.node(*st.Crash).Crash()
	case st.Restart != nil:
		p.node(*st.Restart).Crash()
		p.node(*st.Restart).Restart()
	case st.Leave != nil:
		p.node(*st.Leave).Leave()
	case st.Join != nil:
		p.node(*st.Join).Restart()
	case st.Pause != nil:
		p.node(*st.Pause).Pause(*st.For)
	case st.LeaseStore != nil:
		p.hurtStore(number, st)
	case st.Clock != nil:
		p.clock(st.Clock)
	}
}

// hurtStore sets a fault and arranges its end. A later fault of the same node outlives the end of an earlier one.
func (p *player) hurtStore(number int, st *Step) {
	hit := make([]int, 0, len(p.nodes))
	if st.Nodes != nil {
		hit = p.names.expand(*st.Nodes)
	} else {
		for i := range p.nodes {
			hit = append(hit, i)
		}
	}
	for _, i := range hit {
		p.hurt[i] = number
	}
	p.w.SetStore(st.LeaseStore.fault(), hit...)
	if st.For == nil {
		return
	}
	p.w.At(p.w.Now()+*st.For, func() {
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

// disturbed is the time of the last step that cut something; without one, of the last that crashed or paused somebody.
func (s *Scenario) disturbed() (at time.Duration, ok bool) {
	last := func(does func(st *Step) bool) {
		for i := range s.Steps {
			if st := &s.Steps[i]; st.At != nil && does(st) && (!ok || *st.At > at) {
				at, ok = *st.At, true
			}
		}
	}
	last(func(st *Step) bool { return st.Partition != nil || st.Cut != nil || st.CutOneWay != nil })
	if !ok {
		last(func(st *Step) bool { return st.Crash != nil || st.Restart != nil || st.Pause != nil })
	}
	return at, ok
}
