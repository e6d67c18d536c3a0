package world

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Options describe a world. Start from DefaultOptions.
type Options struct {
	// Seed decides everything that is left to chance.
	Seed uint64
	// Nodes is how many nodes exist: n1 to nN in address and age order. All of them start together; see World.Join for more.
	Nodes int
	// Members, when not empty, are the nodes instead, with names and roles of the caller's choice.
	Members []NodeOptions
	// Resolver and Strategy are the rules, the same for all.
	Resolver sbr.Config
	Strategy sbr.Strategy

	Network   NetworkOptions
	Detection DetectionOptions
	Store     StoreOptions

	// TellFor bounds how long a member that does not answer is told something, TellEvery is the pause between two tries.
	TellFor, TellEvery time.Duration
	// TellLimit is how many incarnations fit into one message; a longer verdict is told in pieces. Zero: any number.
	TellLimit int
	// Grace bounds how long a downed process goes on telling the others before it stops.
	Grace time.Duration
	// AbruptDown makes a downed process stop without leaving, so that the others see a failure.
	AbruptDown bool
	// Refuse keeps downed incarnations out of the membership, as a merge delegate does; otherwise they come back and are told.
	Refuse bool
	// KeepNames restarts a node under its old name: the others then know one incarnation at a time.
	KeepNames bool
	// Trace records what happens in words. Without it only the hash is kept.
	Trace bool
}

// DefaultOptions is a quick, healthy cluster of five.
func DefaultOptions() Options {
	return Options{
		Nodes:     5,
		Resolver:  sbr.DefaultConfig(),
		Network:   NetworkOptions{Latency: time.Millisecond, Jitter: time.Millisecond},
		Detection: DetectionOptions{After: 4 * time.Second, Spread: time.Second, Heal: time.Second},
		Store: StoreOptions{
			Latency: 5 * time.Millisecond, Jitter: 5 * time.Millisecond,
			TTL: 120 * time.Second, Interval: 12 * time.Second, Timeout: 5 * time.Second,
		},
		TellFor: 10 * time.Second, TellEvery: time.Second, Grace: 5 * time.Second,
	}
}

// World is a cluster in virtual time. It is not safe for concurrent use.
type World struct {
	opts  Options
	rng   *rand.Rand
	now   time.Duration
	seq   uint64
	queue queue

	nodes []*Node
	procs []*process
	byID  map[sbr.ID]*process
	net   network
	// missing are the processes that each one misses and that miss it, by index; see pairUp.
	missing [][]*process
	store   store

	trace      trace
	moved      time.Duration // when somebody's view of the cluster, or somebody's part in it, changed last
	checks     []checker
	violations []Violation
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
	if len(members) == 0 || o.Strategy == nil {
		return nil, errors.New("world: a world needs nodes and a strategy")
	}
	w := &World{opts: o, rng: rand.New(rand.NewPCG(o.Seed, 0x5bf)), byID: make(map[sbr.ID]*process)}
	w.trace.on = o.Trace
	w.store.init(w)
	w.checks = newCheckers()
	for _, m := range members {
		w.AddNode(m)
	}
	for _, n := range w.nodes {
		p := w.newProcess(n, sbr.Record{})
		p.run()
	}
	for _, p := range w.procs {
		for _, q := range w.procs {
			if p != q {
				p.meet(q)
			}
		}
	}
	return w, nil
}

// Now returns the virtual time.
func (w *World) Now() time.Duration { return w.now }

// Nodes returns the nodes in the order of their names.
func (w *World) Nodes() []*Node { return w.nodes }

// At calls f when the virtual time has come to t. Steps at the same time run in the order in which they were given.
func (w *World) At(t time.Duration, f func()) { w.at(t, nil, f) }

// Run lets time pass until t.
func (w *World) Run(t time.Duration) {
	for len(w.queue) > 0 && w.queue[0].at <= t {
		e := w.queue.pop()
		w.now = e.at
		if e.p == nil {
			e.f()
		} else {
			e.p.dispatch(e.f)
		}
	}
	w.now = max(w.now, t)
}

// at schedules f at t. With a process, f waits while that is paused and is dropped once it has stopped.
func (w *World) at(t time.Duration, p *process, f func()) {
	w.seq++
	w.queue.push(event{at: max(t, w.now), seq: w.seq, p: p, f: f})
}

func (w *World) after(d time.Duration, p *process, f func()) { w.at(w.now+d, p, f) }

// between returns a time from low up to low+spread.
func (w *World) between(low, spread time.Duration) time.Duration {
	if spread <= 0 {
		return low
	}
	return low + time.Duration(w.rng.Int64N(int64(spread)+1))
}

// chance reports true with the probability p.
func (w *World) chance(p float64) bool { return p > 0 && w.rng.Float64() < p }

type event struct {
	at  time.Duration
	seq uint64 // the tie-break: first scheduled, first run
	p   *process
	f   func()
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// queue is a binary heap by time.
type queue []event

func (q *queue) push(e event) {
	*q = append(*q, e)
	h := *q
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h[i].before(&h[parent]) {
			return
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

func (q *queue) pop() event {
	h := *q
	top := h[0]
	last := len(h) - 1
	h[0] = h[last]
	h[last] = event{}
	h = h[:last]
	*q = h
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return top
		}
		if child+1 < last && h[child+1].before(&h[child]) {
			child++
		}
		if !h[child].before(&h[i]) {
			return top
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}
