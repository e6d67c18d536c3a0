package coordinator_test

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/shards/coordinator"
	"github.com/serf-sbr/serf-sbr/internal/shards/host"
	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding/allocation"
)

// The times of the worlds in these tests: the resolver removes who is cut off after detection and stableAfter.
const (
	detection   = 500 * time.Millisecond
	stableAfter = 4 * time.Second
	margin      = 4 * time.Second
	trust       = (stableAfter + margin/2) / 8 * 7
	interval    = 500 * time.Millisecond
	retries     = 6
)

// world is a cluster of hosts with a network in virtual time. Whoever is the oldest coordinates: as the singleton would have it.
type world struct {
	t        require.TestingT
	rng      *rand.Rand
	now      time.Duration
	queue    events
	seq      int
	shards   int
	useLease bool
	limits   allocation.Config

	nodes []*node // by age
	term  uint64
	chief *node // where the coordinator runs, or did until it was lost

	// The network: how likely a message is lost or comes twice, how long it takes, and who is filtered.
	loss, dup  float64
	delay      time.Duration
	jitter     time.Duration
	filter     func(from, to sbr.ID, m *message.Message) bool // true: lost
	questions  map[uint64]question
	asked      uint64
	leases     map[int]*leaseState
	tokens     map[int]uint64 // the largest by shard
	owners     map[int]sbr.ID // whose run that was
	starts     map[int]int    // runs by shard
	stopTakes  func() time.Duration
	trace      func(format string, args ...any)
	sent       map[message.Kind]int
	forbidDual bool
}

type question struct {
	from    sbr.ID
	chief   bool // the coordinator asks
	message message.Message
}

type leaseState struct {
	token   uint64
	holder  sbr.ID
	attempt uint64
	foreign bool // held by somebody out of this world
}

// node is one member: its host, perhaps the coordinator, its runs, and how it sees the others.
type node struct {
	w       *world
	id      sbr.ID
	name    string
	host    *host.Machine
	coord   *coordinator.Machine
	crashed bool
	paused  bool
	stood   bool // was paused once
	cut     bool // from everybody else
	leaving bool
	gone    bool // has left, or crashed and was removed: nobody sees it
	verdict bool // the others were told that it is down
	downed  bool // it knows
	closed  bool
	sureAt  time.Duration // stands still where stale
	stale   bool
	seen    map[sbr.ID]bool // unreachable from here
	runs    map[int]*run
	granted map[int]uint64 // the attempts that got leases
	refused map[int]uint64 // runs that were not started: too late
	backlog []func()
	renewed time.Duration // when its leases were renewed for the last time, while it is silent
	behind  bool          // it goes on after a pause, and has not heard yet what has become of its leases
}

type run struct {
	number, token uint64
	stopping      bool
}

type event struct {
	at  time.Duration
	seq int
	do  func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[i].at, q[j].at), cmp.Compare(q[i].seq, q[j].seq)) < 0
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}

func newWorld(t require.TestingT, seed uint64, shards int, useLease bool) *world {
	return &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), shards: shards, useLease: useLease, delay: 5 * time.Millisecond, limits: allocation.DefaultConfig(),
		questions: make(map[uint64]question), leases: make(map[int]*leaseState), tokens: make(map[int]uint64), owners: make(map[int]sbr.ID),
		starts: make(map[int]int), sent: make(map[message.Kind]int), stopTakes: func() time.Duration { return 10 * time.Millisecond },
		trace: func(string, ...any) {}, forbidDual: true,
	}
}

func (w *world) after(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.queue, event{w.now + d, w.seq, do})
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	end := w.now + d
	for len(w.queue) > 0 && w.queue[0].at <= end {
		e := heap.Pop(&w.queue).(event)
		w.now = max(w.now, e.at)
		e.do()
	}
	w.now = end
}

func (w *world) names() []string {
	names := make([]string, w.shards)
	for i := range names {
		names[i] = fmt.Sprintf("s%04d", i)
	}
	return names
}

func (w *world) digest() uint64 { return message.Digest("orders", w.names(), w.useLease) }

// join adds a member that begins now.
func (w *world) join(id sbr.ID) *node {
	name, _, _ := strings.Cut(string(id), "#")
	n := &node{w: w, id: id, name: name, seen: make(map[sbr.ID]bool), runs: make(map[int]*run), granted: make(map[int]uint64), refused: make(map[int]uint64), sureAt: w.now}
	n.open(host.Known{})
	w.nodes = append(w.nodes, n)
	w.look()
	w.beat(n)
	return n
}

func (n *node) open(known host.Known) {
	cfg := host.DefaultConfig()
	cfg.Self, cfg.Shards, cfg.Digest, cfg.Known = n.id, n.w.shards, n.w.digest(), known
	cfg.HandOverRetryInterval, cfg.NumberOfRetries, cfg.Margin, cfg.Trust = interval, retries, margin, trust
	cfg.UseLease, cfg.LeaseRetryInterval = n.w.useLease, 2*interval
	h, err := host.New(cfg, n.w.now)
	require.NoError(n.w.t, err)
	n.host, n.closed = h, false
}

// beat lets a member look around, several times a second.
func (w *world) beat(n *node) {
	w.after(100*time.Millisecond, func() {
		if n.crashed {
			return
		}
		if !n.paused {
			n.look()
			n.tick()
		}
		w.beat(n)
	})
}

func (w *world) look() {
	for _, n := range w.nodes {
		if !n.crashed && !n.paused {
			n.look()
		}
	}
	w.elect()
}

// view is how a member sees the others.
func (n *node) view() slot.View {
	stale := n.stale || n.downed
	for id, unreachable := range n.seen {
		if o := n.w.node(id); unreachable && !o.verdict && !o.gone {
			stale = true
		}
	}
	if !stale {
		n.sureAt = n.w.now
	}
	v := slot.View{Armed: true, Sure: n.sureAt}
	for _, o := range n.w.nodes {
		if o.gone {
			continue
		}
		v.Peers = append(v.Peers, slot.Peer{ID: o.id, Name: o.name, Candidate: !o.closed, Leaving: o.leaving,
			Down: o.verdict && (o != n || n.downed) && !n.cut, Unreachable: n.seen[o.id]})
	}
	return v
}

func (n *node) look() {
	v := n.view()
	n.toHost(slot.Viewed{View: v})
	if n.coord != nil {
		n.toCoordinator(slot.Viewed{View: v})
	}
	if n.coord != nil && n.w.now >= n.sureAt+trust {
		n.coord = nil // as its singleton's run would be stopped
	}
	if n.w.chief == n && n.coord == nil && n.sureAt == n.w.now && !n.leaving && !n.verdict {
		n.w.appoint(n)
	}
}

func (n *node) tick() {
	if at, ok := n.host.NextDeadline(); ok && at <= n.w.now {
		n.hostEffects(slices.Clone(n.host.Tick(n.w.now)))
	}
	if n.coord != nil {
		if at, ok := n.coord.NextDeadline(); ok && at <= n.w.now {
			n.coordEffects(slices.Clone(n.coord.Tick(n.w.now)))
		}
	}
}

// alarm has a member called at the next deadlines of its machines.
func (n *node) alarm() {
	if at, ok := n.host.NextDeadline(); ok {
		n.w.after(max(at-n.w.now, 0), n.wake)
	}
	if n.coord != nil {
		if at, ok := n.coord.NextDeadline(); ok {
			n.w.after(max(at-n.w.now, 0), n.wake)
		}
	}
}

func (n *node) wake() {
	if !n.crashed && !n.paused {
		n.tick()
	}
}

func (n *node) toHost(e slot.Event) {
	if n.closed {
		return
	}
	n.hostEffects(slices.Clone(n.host.Step(n.w.now, e)))
}

func (n *node) toCoordinator(e slot.Event) {
	if n.coord == nil {
		return
	}
	n.coordEffects(slices.Clone(n.coord.Step(n.w.now, e)))
}

func (w *world) node(id sbr.ID) *node {
	for _, n := range w.nodes {
		if n.id == id {
			return n
		}
	}
	return nil
}

// elect has the oldest member coordinate. One that was lost is waited for as long as its margin is.
func (w *world) elect() {
	if w.chief != nil && !w.chief.gone && !w.chief.verdict && !w.chief.leaving && !w.chief.crashed {
		return
	}
	if c := w.chief; c != nil && !c.leaving {
		if !c.verdict && !c.gone || c.coord != nil && !c.crashed && !c.cut && !c.paused {
			return
		}
		return // appoint is called once its margin is over
	}
	w.appoint(nil)
}

// appoint begins a new term, at the oldest member or the given one.
func (w *world) appoint(n *node) {
	if w.chief != nil {
		w.chief.coord = nil
	}
	for _, o := range w.nodes {
		if n == nil && !o.crashed && !o.gone && !o.verdict && !o.leaving && !o.paused && !o.cut {
			n = o
		}
	}
	w.chief = n
	if n == nil {
		return
	}
	w.term++
	alloc, err := allocation.New("orders", w.names(), w.limits)
	require.NoError(w.t, err)
	cfg := coordinator.DefaultConfig()
	cfg.Self, cfg.Term, cfg.Allocator, cfg.Digest, cfg.UseLease = n.id, w.term, alloc, w.digest(), w.useLease
	cfg.HandOverRetryInterval, cfg.NumberOfRetries, cfg.Margin, cfg.AuditInterval = interval, retries, margin, 20*time.Second
	n.coord, err = coordinator.New(cfg, w.now)
	require.NoError(w.t, err)
	w.trace("%s coordinates, term %d", n.name, w.term)
	n.toCoordinator(slot.Viewed{View: n.view()})
}

// running counts the shards that run.
func (w *world) running() (count int) {
	for s := range w.shards {
		for _, n := range w.nodes {
			if r := n.runs[s]; r != nil && !n.crashed && !r.stopping {
				count++
			}
		}
	}
	return count
}

func number(token uint64) string {
	if token > message.MaxCounter {
		return fmt.Sprintf("%d.%d", message.TermOf(token), token&message.MaxCounter)
	}
	return strconv.FormatUint(token, 10)
}
