package world

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Event is one thing that happened in a run.
type Event struct {
	// At is when, as Go writes durations.
	At string `json:"at"`
	// Node is where; empty for what happened to the world.
	Node   string `json:"node"`
	Kind   string `json:"kind"`
	Detail string `json:"detail"`
}

// History is what changed in the course of a run, as far as Event does not say it: what the report draws.
// Times are Go durations.
type History struct {
	// Members are the names of all nodes, those that joined later included, in the order of the file. A node
	// that came back under another name has the last one, here and in Changes; Formerly tells from the name
	// in an Event. Of nodes with one name the second is "n1 (2)"; an Event of that name may be of either.
	Members  []string          `json:"members"`
	Formerly map[string]string `json:"formerly,omitempty"`
	// Watched are the members whose views were recorded; absent: all.
	Watched []string `json:"watched,omitempty"`
	// Until is how much time passed in all.
	Until string `json:"until"`
	// Truncated says that later changes are missing: the run had too many.
	Truncated bool `json:"truncated,omitempty"`
	// Changes are in order. At the start all members that run see each other as alive.
	Changes []Change `json:"changes"`
	// DoubleActive and NobodyActive are when two sides were at work after a decision, and when none was.
	DoubleActive [][2]string `json:"double-active"`
	NobodyActive [][2]string `json:"nobody-active"`
}

// Change is one thing that is so from a moment on: what is not said stays as it was. All changes share the
// names of the members, for some get their last name later.
type Change struct {
	At string `json:"at"`
	// Node is the member that it is about; nil for Network and Holder.
	Node *string `json:"node,omitempty"`
	// State is what the member does; "starting" forgets what it saw.
	State string `json:"state,omitempty"`
	// Sees is whom the member sees, and As how: alive, failed, missed (alive, but its own probes fail) or
	// unknown.
	Sees *string `json:"sees,omitempty"`
	As   string  `json:"as,omitempty"`
	// Leader leads in the eyes of the member; empty: nobody.
	Leader *string `json:"leader,omitempty"`
	// Store says what keeps the member from the lease store; empty: nothing.
	Store *string `json:"store,omitempty"`
	// Holder holds the lease; empty: nobody.
	Holder  *string `json:"holder,omitempty"`
	Network *Wiring `json:"network,omitempty"`
}

// Wiring is a network that is cut, or whole again.
type Wiring struct {
	// Groups of members cannot reach each other; absent: all are in one.
	Groups [][]*string `json:"groups,omitempty"`
	// Cut are single links that are cut: from, to.
	Cut [][2]*string `json:"cut,omitempty"`
}

// What a member sees another one as. A missed member is alive, as far as the membership knows, but the
// observer's own probes fail.
const (
	seesUnknown = "unknown"
	seesAlive   = "alive"
	seesMissed  = "missed"
	seesFailed  = "failed"
)

// stateStarting is the state of a process that looks for a member to join.
const stateStarting = "starting"

// maxHistory bounds what a history holds, in changes and in the lists inside them.
const maxHistory = 2_000_000

// maxLeaders is the largest cluster in which the leader is looked up after every step, which costs one look
// at each member.
const maxLeaders = 100

// historian writes the record of a run: its trace are the events. It only looks: nothing in a run depends on
// it. What a process does is looked at when the next thing happens, or the event is over, because a note may
// come before the change that it speaks of.
type historian struct {
	unchecked
	w       *World
	h       History
	events  []Event
	names   []*string // by node: what the changes call it
	former  map[string]int
	watched []bool // by node
	size    int
	begun   bool

	stale      []int // nodes to look at again
	staleWorld bool
	since      time.Duration // when they became stale

	states  []string
	leaders []int
	sights  map[[2]int]string // by observer and subject, what differs from alive
	missed  map[[2]int]bool
	faults  []StoreFault
	groups  []int
	cut     [][2]int
	holder  int
}

// begin begins to look, at a world whose nodes have started. What they said until then has been heard.
func (r *historian) begin(of []int) {
	r.begun, r.holder = true, -1
	r.h.Changes, r.former = []Change{}, make(map[string]int)
	r.sights, r.missed = make(map[[2]int]string), make(map[[2]int]bool)
	r.grow()
	for i := range r.watched {
		r.watched[i] = len(of) == 0 || slices.Contains(of, i)
	}
	r.w.checks = append(r.w.checks, r)
	r.rewired(nil)
	for i := range r.w.nodes {
		r.look(i)
	}
}

// History returns what has changed so far; nil without Options.Trace.
func (w *World) History() *History {
	r := w.history
	if r == nil {
		return nil
	}
	r.settle()
	h, a := r.h, w.Activity()
	h.Until, h.DoubleActive, h.NobodyActive = w.now.String(), a.DoubleActive.texts(), a.NobodyActive.texts()
	seen := make(map[string]int)
	for i, n := range w.nodes {
		*r.names[i] = n.Name
		if seen[n.Name] > 0 { // it may have come back under the name of another
			*r.names[i] = fmt.Sprintf("%s (%d)", n.Name, seen[n.Name]+1)
		}
		seen[n.Name]++
		h.Members = append(h.Members, *r.names[i])
		if r.watched[i] {
			h.Watched = append(h.Watched, *r.names[i])
		}
	}
	if len(h.Watched) == len(h.Members) {
		h.Watched = nil
	}
	h.Formerly = make(map[string]string)
	for name, i := range r.former {
		h.Formerly[name] = *r.names[i]
	}
	return &h
}

// Events are what has happened so far, in order; none without Options.Trace.
func (w *World) Events() []Event {
	if w.history == nil {
		return nil
	}
	return w.history.events
}

// texts are the stretches as Go writes durations.
func (s Spans) texts() [][2]string {
	all := make([][2]string, len(s))
	for i, x := range s {
		all[i] = [2]string{x.From.String(), x.To.String()}
	}
	return all
}

// grow takes in nodes that were added.
func (r *historian) grow() {
	for i := len(r.names); i < len(r.w.nodes); i++ {
		name := r.w.nodes[i].Name
		r.names = append(r.names, &name)
		r.watched = append(r.watched, true)
		r.states = append(r.states, "")
		r.leaders = append(r.leaders, -1)
		r.faults = append(r.faults, StoreFault{})
		r.groups = append(r.groups, 0)
		if i < len(r.w.opts.Members) {
			continue // these know each other, and would be a pair with each other one
		}
		r.blind(i)
		for j := range i {
			r.sights[[2]int{j, i}] = seesUnknown
		}
	}
}

// blind makes a node see no other, without a change: that a node starts says it.
func (r *historian) blind(i int) {
	for j := range r.w.nodes {
		if i != j && r.watched[i] {
			r.sights[[2]int{i, j}] = seesUnknown
		}
	}
}

func (r *historian) add(c Change) {
	if c.Network != nil {
		r.size += len(r.groups) + len(r.cut)
	}
	if r.size++; r.size > maxHistory {
		r.h.Truncated = true
		return
	}
	c.At = r.since.String()
	r.h.Changes = append(r.h.Changes, c)
}

// name is that of a node, empty for none.
func (r *historian) name(i int) *string {
	if i < 0 {
		return new(string)
	}
	return r.names[i]
}

// heard follows each note; p is nil if it is about the world.
func (r *historian) heard(p *process, kind, text string) {
	r.settle()
	said := Event{At: r.since.String(), Kind: kind, Detail: text}
	if p == nil {
		r.staleWorld = true
	} else {
		said.Node, _, _ = strings.Cut(string(p.id), "#") // the incarnation is said where it matters
		r.stale = append(r.stale, p.node.index)
	}
	r.events = append(r.events, said)
}

// settle looks at everything that may have changed since the last time it was looked at. It follows each
// event.
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

// look records what a node does, and its leader.
func (r *historian) look(i int) {
	n := r.w.nodes[i]
	state, works := n.state()
	if state != r.states[i] {
		r.states[i] = state
		r.add(Change{Node: r.names[i], State: state})
		if state == stateStarting {
			if *r.names[i] != n.Name {
				r.former[*r.names[i]], *r.names[i] = i, n.Name
			}
			r.blind(i)
		}
	} else if len(r.w.nodes) > maxLeaders {
		return
	}
	leader := -1
	if r.watched[i] && works {
		if l := r.w.byID[n.proc.r.Snapshot().Leader]; l != nil {
			leader = l.node.index
		}
	}
	if leader != r.leaders[i] {
		r.leaders[i] = leader
		r.add(Change{Node: r.names[i], Leader: r.name(leader)})
	}
}

// state is what the node does at this moment, empty where no process has started on it yet. It works where it
// takes part in the cluster's work, or may: a suspended process was only asked to stop.
func (n *Node) state() (state string, works bool) {
	p := n.proc
	switch {
	case p == nil:
		return "", false
	case p.downReason != "":
		return "down", false
	case p.left || p.stage == stageLeaving:
		return "left", false
	case p.stage == stageStopped:
		return "crashed", false
	case p.paused:
		return "paused", false
	case p.stage == stageBooting:
		return stateStarting, false
	case p.r.State() == sbr.StateWaiting:
		return "waiting for the lease", true
	default:
		return string(p.r.State()), p.r.State() != sbr.StateDown
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
		r.rewired(cut)
	}
	r.held(sbr.ID(r.w.store.record.Holder)) // the store may have forgotten it
	for i, n := range r.w.nodes {
		if n.fault != r.faults[i] {
			r.faults[i] = n.fault
			text := n.fault.words()
			r.add(Change{Node: r.names[i], Store: &text})
		}
	}
}

// rewired records the whole network.
func (r *historian) rewired(cut [][2]int) {
	r.cut, r.groups = cut, slices.Clone(r.w.net.group)
	to, index := &Wiring{}, make(map[int]int)
	for i, g := range r.groups {
		at, known := index[g]
		if !known {
			at = len(to.Groups)
			index[g], to.Groups = at, append(to.Groups, nil)
		}
		to.Groups[at] = append(to.Groups[at], r.names[i])
	}
	if len(to.Groups) < 2 {
		to.Groups = nil
	}
	for _, c := range cut {
		to.Cut = append(to.Cut, [2]*string{r.names[c[0]], r.names[c[1]]})
	}
	r.add(Change{Network: to})
}

// took records what an event changes in the view of a process; a checker sees every event first.
func (r *historian) took(_ *World, p *process, e sbr.Event) {
	r.settle()
	r.stale = append(r.stale, p.node.index)
	if !r.watched[p.node.index] {
		return
	}
	switch e := e.(type) {
	case sbr.MemberSeen:
		if e.Member.Status <= sbr.Up {
			r.see(p, e.Member.ID, seesAlive)
		}
	case sbr.MemberGone:
		r.see(p, e.ID, seesUnknown)
	case sbr.Reachability:
		r.see(p, e.ID, either(e.Unreachable, seesFailed, seesAlive))
	case sbr.Observations:
		r.probed(p, e.Reports)
	}
}

// stepped has the process looked at again, after whatever the step leads to.
func (r *historian) stepped(_ *World, p *process, _ []sbr.Effect) {
	r.settle()
	r.stale = append(r.stale, p.node.index)
}

// committed records the holder of the lease.
func (r *historian) committed(_ *World, _ *process, _, after *lease.Record) {
	r.settle()
	r.held(sbr.ID(after.Holder))
}

// held records the holder of the lease.
func (r *historian) held(id sbr.ID) {
	holder := -1
	if p := r.w.byID[id]; p != nil {
		holder = p.node.index
	}
	if holder != r.holder {
		r.holder = holder
		r.add(Change{Holder: r.name(holder)})
	}
}

// see records what p thinks of an incarnation. What it thinks of an old one of a node counts only until it
// knows the present one.
func (r *historian) see(p *process, id sbr.ID, sight string) {
	s := r.w.byID[id]
	if s == nil || s.node == p.node || s != s.node.proc && p.knows(s.node.proc) {
		return
	}
	pair := [2]int{p.node.index, s.node.index}
	if sight == seesAlive && r.missed[pair] {
		sight = seesMissed
	}
	r.set(pair, sight)
}

func (r *historian) set(pair [2]int, sight string) {
	old, differs := r.sights[pair]
	if !differs {
		old = seesAlive
	}
	if old == sight {
		return
	}
	if sight == seesAlive {
		delete(r.sights, pair)
	} else {
		r.sights[pair] = sight
	}
	r.add(Change{Node: r.names[pair[0]], Sees: r.names[pair[1]], As: sight})
}

// probed records the members that p's own probes miss.
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
			r.set(pair, seesMissed)
		case !now[i] && old == seesMissed:
			r.set(pair, seesAlive)
		}
	}
}
