package simulator

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr/timing"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// Random makes up the scenario of a seed: 2 to 9 members under lease-majority with random settings, and
// everything that a scenario file can say happening to them: partitions of all shapes, one after the other
// and healed or not, and around the time of the decisions crashes, restarts under the same name, pauses,
// members that leave and join, faults of the store and clocks that are off; and what operators and platforms
// do: force-leave, sbr down, lists that forget, restarts under other names and without state, rights taken
// away, a store that forgets. The run goes on until everything that is still open must have been decided. It
// expects nothing: the promises are checked in every run, and lease-majority makes all of them. It validates.
//
// What it leaves out are strategies without a lease, which promise less, and heartbeat-timeout: infinite,
// under which a side waits for an operator when the holder has crashed.
func Random(seed uint64) *scenario.Scenario {
	r := diceOf(seed, mainStream)
	b := New(fmt.Sprintf("random %d", seed))
	c := &b.base.Cluster
	c.Nodes.Count = 2 + min(r.IntN(8), r.IntN(8)) // small clusters more often: they are quicker
	r.settings(c)
	r.places(c)
	notice := r.detection(c)
	r.singletons(c)
	diceOf(seed, shardStream).shards(c)
	decision := notice + stableAfter(&b.base)
	b.At(r.span(0, 15*time.Second), r.story(decision))
	diceOf(seed, deedStream).deeds(b, decision)
	s, err := b.Build(seed)
	if err != nil {
		// a mistake of this file
		panic(fmt.Sprintf("simulator: seed %d gives a scenario that does not validate: %v", seed, err))
	}
	s.RunFor = decided(s)
	return s
}

// dice is chance, as this file needs it.
type dice struct {
	*rand.Rand
	zones []string
}

// The streams of chance, apart from those of Build: what operators and platforms do, and shards, leave the
// rest of a seed as it is without them.
const (
	mainStream  = 0x7a6d
	deedStream  = 0xdeed
	shardStream = 0x5a4d
)

func diceOf(seed, stream uint64) *dice { return &dice{Rand: rand.New(rand.NewPCG(seed, stream))} }

func (r *dice) coin(chance float64) bool { return r.Float64() < chance }

// span is a time from low to high, in whole tenths of a second.
func (r *dice) span(low, high time.Duration) time.Duration {
	const grain = 100 * time.Millisecond
	return low + time.Duration(r.Int64N(int64((high-low)/grain)+1))*grain
}

// share is from 0 to high, in hundredths.
func (r *dice) share(high float64) float64 { return math.Round(100*high*r.Float64()) / 100 }

// settings are what the rules and the lease say.
func (r *dice) settings(c *scenario.Cluster) {
	rules, times := &c.SplitBrainResolver, &c.Lease
	rules.StableAfter = strictyaml.AutoDuration(r.span(time.Second, 20*time.Second))
	switch {
	case r.coin(0.5):
		rules.DownAllWhenUnstable = strictyaml.OnOffDuration{}
	case r.coin(0.3):
		rules.DownAllWhenUnstable = strictyaml.OnOffDuration{For: r.span(5*time.Second, 30*time.Second)}
	}
	if r.coin(0.5) {
		rules.DownAllWhenIndirectlyConnected = strictyaml.OnOffFraction(r.share(1))
	}
	if r.coin(0.2) {
		rules.MinMembers = 1 + r.IntN(c.Nodes.Count)
	}
	rules.SettleAfter = r.span(0, 5*time.Second)
	if r.coin(0.5) {
		rules.Probe.Neighbours = r.IntN(2) * (1 + r.IntN(5)) // off, or some
	}
	m := &rules.LeaseMajority
	m.AcquireLeaseDelayForMinority = r.span(0, 6*time.Second)
	m.ReleaseAfter = r.span(time.Second, 40*time.Second)
	if r.coin(0.3) {
		m.WhenLeaseUnknown = "suspend"
	}
	m.SuspendTimeout = r.span(20*time.Second, 2*time.Minute)
	m.Watch = strictyaml.Switch(r.coin(0.6))
	if r.coin(0.6) {
		timeout := strictyaml.Span(r.span(15*time.Second, time.Minute))
		if r.coin(0.05) {
			timeout = strictyaml.Span(lease.DefaultSettings().HeartbeatTimeout)
		}
		interval := r.span(time.Second, 6*time.Second)
		times.HeartbeatTimeout, times.HeartbeatInterval = &timeout, &interval
	}
	if r.coin(0.6) {
		operation := r.span(500*time.Millisecond, 5*time.Second)
		times.LeaseOperationTimeout = &operation
	}
	if r.coin(0.3) {
		r.share(0.4) // of loss, which is not played any more: what a seed draws afterwards stays what it was
	}
	latency, jitter := r.IntN(20), r.IntN(100)*4/5 // serf-local probes for 200 ms
	c.Network = scenario.Network{Latency: time.Duration(latency) * time.Millisecond,
		Jitter: time.Duration(jitter) * time.Millisecond}
}

// places gives members zones and roles.
func (r *dice) places(c *scenario.Cluster) {
	all := slices.Clone(c.Nodes.All())
	said := false
	if r.coin(0.2) {
		for i := range all {
			all[i].Zone, said = fmt.Sprintf("zone-%c", 'a'+i%3), true
		}
		r.zones = []string{"zone-a", "zone-b"} // a cluster of two has no third
	}
	if r.coin(0.2) {
		for i := range all {
			if r.coin(0.7) {
				all[i].Roles, said = []string{"voter"}, true
			}
		}
		c.SplitBrainResolver.LeaseMajority.Role = "voter"
	}
	if said {
		c.Nodes = scenario.Nodes{List: all}
	}
}

// detection says how members notice, and returns about how long most of them need.
func (r *dice) detection(c *scenario.Cluster) time.Duration {
	if r.coin(0.2) {
		c.Detection = scenario.DefaultDetection()
		c.Detection.Profile = "serf-" + []string{"lan", "local"}[r.IntN(2)]
		return 10 * time.Second
	}
	after, spread := r.span(500*time.Millisecond, 5*time.Second), r.span(0, 4*time.Second)
	c.Detection = scenario.Detection{Times: scenario.DetectionTimes{After: after, Spread: spread,
		Heal: r.span(100*time.Millisecond, 2*time.Second)}}
	return after + spread/2
}

// singletons run beside the resolvers in most clusters, with and without a lease.
func (r *dice) singletons(c *scenario.Cluster) {
	for _, name := range []string{"backup", "report"}[:min(r.IntN(4), 2)] {
		s := scenario.Singleton{Name: name, SlotRules: r.slot(c)}
		if r.coin(0.5) {
			s.Role = c.SplitBrainResolver.LeaseMajority.Role
		}
		c.Singletons = append(c.Singletons, s)
	}
}

// shards run in some clusters.
func (r *dice) shards(c *scenario.Cluster) {
	if !r.coin(0.4) {
		return
	}
	x := scenario.Shards{Type: "orders", Count: 1 + r.IntN(8), SlotRules: r.slot(c)}
	if r.coin(0.2) {
		x.ReopenedAfter = r.span(30*time.Second, 5*time.Minute)
	}
	if r.coin(0.5) {
		x.Role = c.SplitBrainResolver.LeaseMajority.Role
	}
	c.Shards = append(c.Shards, x)
}

// slot is what singletons and shards have in common. Without a lease their margin is at least twice what
// members need to notice, as the assumptions of package internal/handover have it.
func (r *dice) slot(c *scenario.Cluster) (s scenario.SlotRules) {
	s.UseLease = strictyaml.Switch(r.coin(0.5))
	if least := 2 * noticed(c); bool(s.UseLease) {
		s.RemovalMargin = r.span(100*time.Millisecond, 20*time.Second)
	} else {
		s.RemovalMargin = r.span(least, least+20*time.Second)
	}
	s.HandOverRetryInterval = r.span(200*time.Millisecond, 3*time.Second)
	s.NumberOfRetries = 1 + r.IntN(20)
	s.LeaseRetryInterval = r.span(time.Second, 10*time.Second)
	s.StopTakes = r.span(100*time.Millisecond, 15*time.Second)
	if r.coin(0.3) {
		s.EndsAfter = r.span(10*time.Second, 4*time.Minute)
	}
	return s
}

// noticed is how long a member needs at most to notice that it is cut off: that it does not reach one of the
// others, any one.
func noticed(c *scenario.Cluster) time.Duration {
	if g, ok := timing.Profile(strings.TrimPrefix(c.Detection.Profile, "serf-")); ok {
		return g.First(1, max(len(c.Nodes.All()), 2)).Worst.Round(100 * time.Millisecond)
	}
	return c.Detection.Times.After + c.Detection.Times.Spread
}

// story is what happens: some partitions, each with faults around the time at which it is decided, and an
// end.
func (r *dice) story(decision time.Duration) Nemesis {
	var all []Nemesis
	if r.coin(0.2) {
		all = append(all, ScrambleClocks(time.Hour, 0.02))
	}
	if r.coin(0.2) {
		all = append(all, r.trouble(decision)) // nothing is cut yet
	}
	for range 1 + r.IntN(3) {
		around := make([]Nemesis, 0, 4)
		around = append(around, r.cut(decision))
		for range r.IntN(4) {
			around = append(around, After(max(decision-r.span(0, 8*time.Second), 0),
				Within(12*time.Second, r.trouble(decision))))
		}
		all = append(all, Together(around...), Wait(r.span(0, 40*time.Second)))
		if r.coin(0.3) {
			all = append(all, Heal(), Wait(r.span(0, 20*time.Second)))
		}
	}
	if r.coin(0.6) {
		all = append(all, Heal())
	}
	if r.coin(0.3) { // downed members come back as new incarnations
		all = append(all, OnRandom(0, func(name string) Nemesis { return Within(10*time.Second, Restart(name)) }))
	}
	return Sequence(all...)
}

// cut is one way to break the network.
func (r *dice) cut(decision time.Duration) Nemesis {
	switch n := r.IntN(10); {
	case n < 3 && r.zones != nil:
		return Choice(Partition(Side(r.zones...)), Partition(Side(r.zones[0]), Side(r.zones[1])))
	case n < 5:
		return Choice(Groups(2), Halves(), LoneNode(), Groups(3)) // clean ones more often, to leave members
	case n < 6:
		return PartitionRandomly()
	case n < 7:
		return Repeat(1+r.IntN(3), 0, RandomLink())
	case n < 8:
		return Swizzle(0, decision/2)
	case n < 9:
		return Flap(1+r.IntN(4), decision, decision/2, PartitionRandomly())
	default:
		// again, before or after the decision
		return Sequence(PartitionRandomly(), Within(2*decision, PartitionRandomly()))
	}
}

// trouble is one fault that is none of the network.
func (r *dice) trouble(decision time.Duration) Nemesis {
	length := r.span(100*time.Millisecond, time.Minute)
	one := func(f func(name string) Nemesis) Nemesis { return OnRandom(1, f) }
	switch n := r.IntN(12); {
	case n < 4:
		return StoreFaults(time.Minute)
	case n < 5:
		return Choice(StoreDown(length), StoreDown(0), OnGroup(0, func(names ...string) Nemesis {
			return StoreDown(0, names...)
		}))
	case n < 6:
		return one(Crash)
	case n < 7:
		return one(func(name string) Nemesis { return CrashAndRestart(name, length) })
	case n < 8:
		return OnRandom(r.IntN(3), func(name string) Nemesis { return Pause(name, length) })
	case n < 9:
		return JoinAnother()
	case n < 10:
		return one(Leave)
	case n < 11:
		return one(Restart)
	default:
		return Choice(RollingUpdate(decision/4, decision/8),
			one(func(name string) Nemesis { return ClockRate(name, 1+r.share(0.04)-0.02) }), Heal())
	}
}

// stableAfter is that of a scenario for all the members that it has at its start.
func stableAfter(s *scenario.Scenario) time.Duration {
	rules := s.Cluster.SplitBrainResolver.Resolver(lease.DefaultSettings())
	return rules.StableIn(len(s.Members()))
}

// decided is when whatever is open at the last step must have been decided.
func decided(s *scenario.Scenario) time.Duration {
	rules := &s.Cluster.SplitBrainResolver
	times := s.Cluster.Lease.Settings(rules.LeaseMajority.LeaseImplementation)
	members := len(s.Members())
	race := stableAfter(s) + 3*times.OperationTimeout // three operations fit into the decision deadline
	end := s.Over() + 3*time.Minute + time.Duration(members+3)*race + 2*times.HeartbeatTimeout +
		2*rules.LeaseMajority.SuspendTimeout
	return end.Round(time.Second)
}

// deeds happen in most clusters, at any time around the decisions.
func (r *dice) deeds(b *Scenario, decision time.Duration) {
	if r.coin(0.25) {
		b.base.Cluster.ReapAfter = r.span(time.Second, 2*time.Minute)
	}
	for range min(r.IntN(4), r.IntN(4)) {
		at := r.span(0, 4*decision+time.Minute)
		b.At(at, r.deed(at, decision))
	}
	if r.coin(0.4) {
		b.At(r.span(0, 4*decision+time.Minute), r.down())
	}
}

// deed is one of them.
func (r *dice) deed(at, decision time.Duration) Nemesis {
	one := func(f func(name string) Nemesis) Nemesis { return OnRandom(1, f) }
	length := r.span(time.Second, 2*decision+time.Second)
	switch n := r.IntN(12); {
	case n < 2:
		return OnGroup(0, ForceLeave)
	case n < 4: // on one member, which tells those that it reaches
		return one(func(on string) Nemesis {
			return OnGroup(0, func(names ...string) Nemesis { return ForceLeaveOn(on, names...) })
		})
	case n < 6: // by cron, on every host
		times := 2 + r.IntN(6)
		return Repeat(times, r.span(time.Second, 10*time.Second), func(p *Plan) {
			p.Play(ForceLeave(p.Members()...))
		})
	case n < 7:
		return one(RestartWithoutState)
	case n < 8:
		return one(func(name string) Nemesis { return RestartAs(name, fmt.Sprintf("m%d", at/time.Millisecond)) })
	case n < 9:
		return OnGroup(0, func(names ...string) Nemesis { return NoRights(length, names...) })
	case n < 10:
		return r.link(decision)
	case n < 11:
		return ForgetLease()
	default:
		return RestoreLease(r.span(0, at))
	}
}

// link cuts one link and mends it, or mends a link that another step has cut.
func (r *dice) link(decision time.Duration) Nemesis {
	wait := r.span(0, 2*decision)
	return func(p *Plan) {
		if pair := p.shuffled(); len(pair) > 1 {
			p.Play(Sequence(Maybe(0.8, Cut(pair[0], pair[1])), Wait(wait), Mend(pair[0], pair[1])))
		}
	}
}

// down lets an operator down a member by asking another member.
func (r *dice) down() Nemesis {
	return func(p *Plan) {
		if pair := p.shuffled(); len(pair) > 1 {
			p.Play(Down(pair[0], pair[1]))
		}
	}
}
