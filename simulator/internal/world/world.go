package world

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sbr/reachability"
)

// Options describe a world. Start from DefaultOptions.
type Options struct {
	// Seed decides everything that is left to chance.
	Seed uint64
	// Nodes is how many nodes exist: n1 to nN in address and age order. All of them start together; see
	// World.Join for more.
	Nodes int
	// Members, when not empty, are the nodes instead, with names and roles of the caller's choice.
	Members []NodeOptions
	// Resolver and Strategy are the rules, the same for all.
	Resolver sbr.Config
	Strategy sbr.Strategy

	Network Network
	// Serf are the settings of the membership. Times, when not nil, are a failure detector instead of Serf's.
	Serf  Memberlist
	Times *Times
	// Probe are the members' own probes. With them members find out about cuts between two of them that
	// others can bridge; without them such cuts stay unseen, as they do in Serf.
	Probe reachability.Settings
	Store StoreOptions
	// Slots are what runs on one member each, beside the resolvers.
	Slots []SlotOptions
	// Shards are types of shards that are spread over the members, beside the resolvers.
	Shards []ShardsOptions

	// ReapAfter is when the membership forgets a member that failed, as Serf does after its reconnect
	// time-out. Zero: never.
	ReapAfter time.Duration
	// Trace records what happens, in words and as values: see World.History. Without it only the hash is
	// kept. HistoryOf are the nodes, by index, whose views of others are part of the history; empty: all,
	// which is a lot in a large cluster.
	Trace     bool
	HistoryOf []int
	// Measure adds up Activity.
	Measure bool
	// Coverage, when not nil, counts the transitions that resolvers take.
	Coverage *Coverage
}

// DefaultOptions is a quick, healthy cluster of five.
func DefaultOptions() Options {
	lan, _ := MemberlistOf("lan")
	return Options{
		Nodes:    5,
		Resolver: sbr.DefaultConfig(),
		Network:  Network{Latency: time.Millisecond, Jitter: time.Millisecond},
		Serf:     lan, Times: &Times{After: 4 * time.Second, Spread: time.Second, Heal: time.Second},
		Store: StoreOptions{
			Latency: 5 * time.Millisecond, Jitter: 5 * time.Millisecond,
			Settings: lease.DefaultSettings(),
		},
	}
}

// World is a cluster in virtual time. It is not safe for concurrent use.
type World struct {
	opts  Options
	rules Rules // of all nodes that have none of their own
	rng   *rand.Rand
	now   time.Duration
	seq   uint64
	queue queue

	nodes  []*Node
	procs  []*process
	byID   map[sbr.ID]*process
	net    network
	store  store
	slots  []*slot // those of Options.Slots, and then those of the coordinators of shards
	shards []*shards

	// names are those under which members list each other.
	names     []string
	nameIndex map[string]int32
	serf      Memberlist
	times     *Times
	serfRests bool // nothing that Serf does changes anything
	packets   []*packet
	nonces    uint64

	trace      trace
	history    *historian
	moved      time.Duration // when a member's view of the cluster, or its part in it, changed last
	checks     []checker
	activity   activity
	violations []Violation
	excepted   []Violation // see World.Excepted
}

// New builds a world in which all nodes have just started and know each other.
func New(o Options) (*World, error) {
	if err := errors.Join(o.Resolver.Validate(), o.Store.validate()); err != nil {
		return nil, fmt.Errorf("world: %w", err)
	}
	members := o.Members
	if len(members) == 0 {
		members = make([]NodeOptions, max(o.Nodes, 0))
	}
	for _, m := range members {
		if own := m.Own; own != nil && own.Strategy == nil {
			return nil, fmt.Errorf("world: %s has rules without a strategy", m.Name)
		} else if own != nil {
			if err := own.Resolver.Validate(); err != nil {
				return nil, fmt.Errorf("world: %s: %w", m.Name, err)
			}
		}
	}
	if len(members) == 0 || o.Strategy == nil {
		return nil, errors.New("world: a world needs nodes and a strategy")
	}
	w := &World{opts: o, rng: rand.New(rand.NewPCG(o.Seed, 0x5bf)),
		byID: make(map[sbr.ID]*process, len(members))}
	w.opts.Members = members
	w.rules = Rules{Resolver: o.Resolver, Strategy: o.Strategy}
	w.serf, w.times, w.serfRests, w.net.every, w.nameIndex = o.Serf, o.Times, true, o.Network,
		make(map[string]int32, len(members))
	if o.Trace {
		w.history = &historian{w: w}
	}
	w.store.w = w
	w.checks = newCheckers()
	if o.Measure {
		w.checks = append(w.checks, measures{})
	}
	if o.Coverage != nil {
		w.checks = append(w.checks, &covered{to: o.Coverage})
	}
	if err := slotsOf(w); err != nil {
		return nil, fmt.Errorf("world: %w", err)
	}
	w.start(members)
	for _, s := range w.slots {
		w.every(s.bound(), s.lives)
	}
	for _, s := range w.shards {
		w.every(s.bound(), s.lives)
	}
	if o.Trace {
		w.history.begin(o.HistoryOf)
	}
	return w, nil
}

// start starts a process on each node, all of which know each other.
func (w *World) start(members []NodeOptions) {
	for _, m := range members {
		w.AddNode(m)
	}
	for _, n := range w.nodes {
		w.newProcess(n, sbr.Record{}).run()
	}
	for _, p := range w.procs {
		p.peers, p.order = make([]peer, len(members)), make([]int32, 0, len(members))
		for _, q := range w.procs {
			p.list(q)
		}
		p.together(func() {
			for _, q := range w.procs {
				if q != p {
					p.meet(q)
				}
			}
		})
	}
	if !w.net.clean(w.serf.ProbeTimeout) {
		w.wakeSerf()
	}
}

// Now returns the virtual time.
func (w *World) Now() time.Duration { return w.now }

// Nodes returns the nodes in the order of their names.
func (w *World) Nodes() []*Node { return w.nodes }

// At calls f when the virtual time has come to t. Steps at the same time run in the order in which they were
// given.
func (w *World) At(t time.Duration, f func()) { w.at(t, nil, f) }

// Run lets time pass until t.
func (w *World) Run(t time.Duration) {
	for len(w.queue.events) > 0 && w.queue.events[0].at <= t {
		e := w.queue.pop()
		w.now = e.at
		w.run(e)
		w.history.settle()
	}
	w.now = max(w.now, t)
}

// between returns a time from low up to low+spread.
func (w *World) between(low, spread time.Duration) time.Duration {
	if spread <= 0 {
		return low
	}
	return low + time.Duration(w.rng.Int64N(int64(spread)+1))
}

// chance reports true with the probability p.
func (w *World) chance(p float64) bool { return p > 0 && w.rng.Float64() < p }
