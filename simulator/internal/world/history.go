package world

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// History is what changed in a run, as values, for reports. It starts with the Life of every node and the network at the start.
type History struct {
	// Nodes are the names, the last ones where that changed; everything else speaks of nodes by their index.
	Nodes []string
	// Formerly are the nodes that have had other names before.
	Formerly map[string]int
	// Watched says of each node whether its views were recorded; see Options.HistoryOf.
	Watched []bool
	// Changes are in the order in which they happened.
	Changes []Change
	// Truncated says that the run changed more than a history holds; the later changes but for what was Said are missing.
	Truncated bool
	// End is how much time passed in all.
	End time.Duration
}

// Change is one thing that changed.
type Change struct {
	At time.Duration
	What
}

// What changed: one of the types below.
type What interface{ what() }

// The changes. At the start every node that runs sees every other one that runs as alive. Whoever starts later (Booting) sees
// nobody; until it has started once, nobody sees it.
type (
	// Lived says what a node does from now on.
	Lived struct {
		Node int
		Life Life
	}
	// Viewed says what a watched node thinks of another one from now on, or of an earlier incarnation of it (Former).
	Viewed struct {
		Observer, Subject int
		Sight             Sight
		Former            bool
	}
	// Led says who leads in the eyes of a watched node; Leader is -1 if nobody does.
	Led struct{ Node, Leader int }
	// Rewired is the whole network: nodes of different Groups cannot reach each other, and single links are Cut, from and to. Both
	// are shared by nobody.
	Rewired struct {
		Groups []int
		Cut    [][2]int
	}
	// Hurt is what happens to a node's requests to the lease store from now on.
	Hurt struct {
		Node  int
		Fault StoreFault
	}
	// Held says which node holds the lease; -1 for none.
	Held struct{ Node int }
	// Said is what a node, or the world (-1), has to say, in words: an entry of the trace. By is the incarnation.
	Said struct {
		Node       int
		By         sbr.ID
		Kind, Text string
	}
)

func (Lived) what()   {}
func (Viewed) what()  {}
func (Led) what()     {}
func (Rewired) what() {}
func (Hurt) what()    {}
func (Held) what()    {}
func (Said) what()    {}

// Life is what a node does.
type Life uint8

// What a node does. Absent: no process has started on it yet.
const (
	Absent Life = iota
	Booting
	Arming
	Up
	Suspended
	Waiting
	Paused
	Downed
	Gone
	Crashed
)

var lifeNames = [...]string{
	"absent", "starting", "arming", "up", "suspended", "waiting for the lease", "paused", "down", "left", "crashed",
}

// String is for people.
func (l Life) String() string { return lifeNames[l] }

// Works reports whether a node that does this takes part in the cluster's work, or may: one that is suspended was only asked to stop.
func (l Life) Works() bool { return l >= Arming && l <= Waiting }

// Sight is what one node thinks of another.
type Sight uint8

// The sights. Missed: it is alive, as far as the membership knows, but the observer's own probes fail.
const (
	Unknown Sight = iota
	Alive
	Missed
	Failed
)

var sightNames = [...]string{"unknown", "alive", "missed", "failed"}

// String is for people.
func (s Sight) String() string { return sightNames[s] }

// maxHistory bounds what a history holds, in changes and in the lists inside them.
const maxHistory = 2_000_000

// maxLeaders is the largest cluster in which the leader is looked up after every step, which costs one look at each member.
const maxLeaders = 100

// historian writes a history, the one record of a run: its trace is what was Said. It only looks: nothing in a run depends on it. What a process does is looked at when the next thing
// happens, or the event is over, because a note may come before the change that it speaks of.
type historian struct {
	unchecked
	w     *World
	h     History
	size  int
	begun bool

	stale      []int // nodes to look at again
	staleWorld bool
	since      time.Duration // when they became stale

	lives   []Life
	leaders []int
	sights  map[[2]int]Sight // by observer and subject, what differs from Alive
	missed  map[[2]int]bool
	faults  []StoreFault
	groups  []int
	cut     [][2]int
	holder  int
}

// begin begins to look, at a world whose nodes have started. What they said until then has been heard.
func (r *historian) begin(of []int) {
	r.begun, r.holder = true, -1
	r.sights, r.missed = make(map[[2]int]Sight), make(map[[2]int]bool)
	r.grow()
	for i := range r.h.Watched {
		r.h.Watched[i] = len(of) == 0 || slices.Contains(of, i)
	}
	r.w.checks = append(r.w.checks, r)
	r.add(Rewired{Groups: slices.Clone(r.w.net.group)})
	r.groups = slices.Clone(r.w.net.group)
	for i := range r.w.nodes {
		r.look(i)
	}
}

// History returns what has changed so far; nil without Options.Trace.
func (w *World) History() *History {
	if w.history == nil {
		return nil
	}
	w.history.settle()
	h := w.history.h
	h.End = w.now
	return &h
}

// grow takes in nodes that were added.
func (r *historian) grow() {
	for i := len(r.h.Nodes); i < len(r.w.nodes); i++ {
		r.h.Nodes = append(r.h.Nodes, r.w.nodes[i].Name)
		r.h.Watched = append(r.h.Watched, true)
		r.lives = append(r.lives, Absent)
		r.leaders = append(r.leaders, -1)
		r.faults = append(r.faults, StoreFault{})
		r.groups = append(r.groups, 0)
		if i < len(r.w.opts.Members) {
			continue // these know each other, and would be a pair with each other one
		}
		r.blind(i)
		for j := range i {
			r.sights[[2]int{j, i}] = Unknown
		}
	}
}

// blind makes a node see nobody, without a change: that a node starts says it.
func (r *historian) blind(i int) {
	for j := range r.w.nodes {
		if i != j && r.h.Watched[i] {
			r.sights[[2]int{i, j}] = Unknown
		}
	}
}

func (r *historian) add(c What) {
	switch x := c.(type) {
	case Said:
		r.h.Changes = append(r.h.Changes, Change{r.since, c})
		return
	case Rewired:
		r.size += len(x.Groups) + len(x.Cut)
	}
	if r.size++; r.size > maxHistory {
		r.h.Truncated = true
		return
	}
	r.h.Changes = append(r.h.Changes, Change{r.since, c})
}

// heard follows each note; p is nil if it is about the world.
func (r *historian) heard(p *process, kind, text string) {
	r.settle()
	said := Said{Node: -1, Kind: kind, Text: text}
	if p == nil {
		r.staleWorld = true
	} else {
		said.Node, said.By = p.node.index, p.id
		r.stale = append(r.stale, said.Node)
	}
	r.add(said)
}

// settle looks at everything that may have changed since the last time it was looked at. It follows each event.
func (r *historian) settle() {
	if r == nil || !r.begun {
		return
	}
	r.grow()
	for _, i := range r.stale {
		r.look(i)
	}
	r.stale = r.stale[:0]
	if r.staleWorld {
		r.staleWorld = false
		r.lookAround()
	}
	r.since = r.w.now
}

// look records what a node does, and whom it follows.
func (r *historian) look(i int) {
	n := r.w.nodes[i]
	life := n.life()
	if life != r.lives[i] {
		r.lives[i] = life
		r.add(Lived{i, life})
		if life == Booting {
			r.rename(i, n.Name)
			r.blind(i)
		}
	} else if len(r.w.nodes) > maxLeaders {
		return
	}
	leader := -1
	if r.h.Watched[i] && life.Works() {
		if l := r.w.byID[n.proc.r.Snapshot().Leader]; l != nil {
			leader = l.node.index
		}
	}
	if leader != r.leaders[i] {
		r.leaders[i] = leader
		r.add(Led{i, leader})
	}
}

// rename follows a node that comes back under another name.
func (r *historian) rename(i int, name string) {
	if old := r.h.Nodes[i]; old != name {
		if r.h.Formerly == nil {
			r.h.Formerly = make(map[string]int)
		}
		r.h.Formerly[old], r.h.Nodes[i] = i, name
	}
}

// life is what the node does at this moment.
func (n *Node) life() Life {
	p := n.proc
	switch {
	case p == nil:
		return Absent
	case p.downReason != "":
		return Downed
	case p.left || p.stage == stageLeaving:
		return Gone
	case p.stage == stageStopped:
		return Crashed
	case p.paused:
		return Paused
	case p.stage == stageBooting:
		return Booting
	}
	switch p.r.State() {
	case sbr.StateArming:
		return Arming
	case sbr.StateSuspended:
		return Suspended
	case sbr.StateWaiting:
		return Waiting
	case sbr.StateDown:
		return Downed
	default:
		return Up
	}
}

// lookAround records what changed in the network, in the store and on the way to it.
func (r *historian) lookAround() {
	cut := make([][2]int, 0, len(r.w.net.cut))
	for link, is := range r.w.net.cut {
		if is {
			cut = append(cut, link)
		}
	}
	slices.SortFunc(cut, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	if !slices.Equal(cut, r.cut) || !slices.Equal(r.w.net.group, r.groups) {
		r.cut, r.groups = cut, slices.Clone(r.w.net.group)
		r.add(Rewired{Groups: slices.Clone(r.groups), Cut: slices.Clone(cut)})
	}
	r.held(sbr.ID(r.w.store.record.Holder)) // the store may have forgotten it
	for i, n := range r.w.nodes {
		if n.fault != r.faults[i] {
			r.faults[i] = n.fault
			r.add(Hurt{i, n.fault})
		}
	}
}

// took records what an event changes in the view of a process; a checker sees every event first.
func (r *historian) took(_ *World, p *process, e sbr.Event) {
	r.settle()
	r.stale = append(r.stale, p.node.index)
	if !r.h.Watched[p.node.index] {
		return
	}
	switch e := e.(type) {
	case sbr.MemberSeen:
		if e.Member.Status <= sbr.Up {
			r.see(p, e.Member.ID, Alive)
		}
	case sbr.MemberGone:
		r.see(p, e.ID, Unknown)
	case sbr.Reachability:
		sight := Alive
		if e.Unreachable {
			sight = Failed
		}
		r.see(p, e.ID, sight)
	case sbr.Observations:
		r.probed(p, e.Reports)
	}
}

// stepped has the process looked at again, after whatever the step leads to.
func (r *historian) stepped(_ *World, p *process, _ []sbr.Effect) {
	r.settle()
	r.stale = append(r.stale, p.node.index)
}

// committed records who holds the lease.
func (r *historian) committed(_ *World, _ *process, _, after *lease.Record) {
	r.settle()
	r.held(sbr.ID(after.Holder))
}

// held records who holds the lease.
func (r *historian) held(id sbr.ID) {
	holder := -1
	if p := r.w.byID[id]; p != nil {
		holder = p.node.index
	}
	if holder != r.holder {
		r.holder = holder
		r.add(Held{holder})
	}
}

// see records what p thinks of an incarnation. What it thinks of an old one of a node counts only until it knows the present one.
func (r *historian) see(p *process, id sbr.ID, sight Sight) {
	s := r.w.byID[id]
	if s == nil || s.node == p.node || s != s.node.proc && p.knows(s.node.proc) {
		return
	}
	pair := [2]int{p.node.index, s.node.index}
	if sight == Alive && r.missed[pair] {
		sight = Missed
	}
	r.set(pair, sight, s != s.node.proc)
}

func (r *historian) set(pair [2]int, sight Sight, former bool) {
	old, differs := r.sights[pair]
	if !differs {
		old = Alive
	}
	if old == sight {
		return
	}
	if sight == Alive {
		delete(r.sights, pair)
	} else {
		r.sights[pair] = sight
	}
	r.add(Viewed{pair[0], pair[1], sight, former})
}

// probed records whom p's own probes miss.
func (r *historian) probed(p *process, reports []sbr.Report) {
	now := make(map[int]bool)
	for _, rep := range reports {
		if s := r.w.byID[rep.Subject]; rep.Observer == p.id && s != nil {
			now[s.node.index] = true
		}
	}
	for i := range r.w.nodes { // in order: a map has none
		pair := [2]int{p.node.index, i}
		if now[i] == r.missed[pair] {
			continue
		}
		r.missed[pair] = now[i]
		switch old, differs := r.sights[pair]; {
		case now[i] && !differs:
			r.set(pair, Missed, false)
		case !now[i] && old == Missed:
			r.set(pair, Alive, false)
		}
	}
}
