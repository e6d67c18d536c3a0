package scenario

import (
	"fmt"
	"strings"

	"github.com/serf-sbr/serf-sbr/simulator/internal/world"
)

// maxWatched is the largest cluster in which everybody's view of everybody is recorded, and in a larger one the number of nodes
// whose view of all is.
const maxWatched = 64

// History is what changed in the course of a run, as far as Event does not say it: what the report draws. Times are Go durations.
type History struct {
	// Members are the names of all nodes, those that joined later included, in the order of the file. A node that came back under another
	// name has the last one, here and in Changes; Formerly tells from the name in an Event. Of nodes with one name the second is "n1 (2)";
	// an Event of that name may be of either.
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
	// DoubleActive and NobodyActive are when two sides were at work after a decision, and when nobody was.
	DoubleActive [][2]string `json:"double-active"`
	NobodyActive [][2]string `json:"nobody-active"`
}

// Change is one thing that is so from a moment on: what is not said stays as it was.
type Change struct {
	At string `json:"at"`
	// Node is the member that it is about; empty for Network and Holder.
	Node string `json:"node,omitempty"`
	// State is what the member does; "starting" forgets whom it saw.
	State string `json:"state,omitempty"`
	// Sees is whom the member sees, and As how: alive, failed, missed (alive, but its own probes fail) or unknown.
	Sees string `json:"sees,omitempty"`
	As   string `json:"as,omitempty"`
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
	Groups [][]string `json:"groups,omitempty"`
	// Cut are single links that are cut: from, to.
	Cut [][2]string `json:"cut,omitempty"`
}

// historyOf says what a world has recorded in the words of the file.
func historyOf(h *world.History, a world.Activity) *History {
	nodes := distinct(h.Nodes)
	to := &History{
		Members: nodes, Until: h.End.String(), Truncated: h.Truncated, Changes: []Change{},
		DoubleActive: spanTexts(a.DoubleActive), NobodyActive: spanTexts(a.NobodyActive),
	}
	for former, i := range h.Formerly {
		if to.Formerly == nil {
			to.Formerly = make(map[string]string)
		}
		to.Formerly[former] = nodes[i]
	}
	for i, is := range h.Watched {
		if is {
			to.Watched = append(to.Watched, nodes[i])
		}
	}
	if len(to.Watched) == len(nodes) {
		to.Watched = nil
	}
	name := func(node int) *string {
		n := ""
		if node >= 0 {
			n = nodes[node]
		}
		return &n
	}
	for _, c := range h.Changes {
		is := Change{At: c.At.String()}
		switch x := c.What.(type) {
		case world.Lived:
			is.Node, is.State = nodes[x.Node], x.Life.String()
		case world.Viewed:
			is.Node, is.Sees, is.As = nodes[x.Observer], nodes[x.Subject], x.Sight.String()
		case world.Led:
			is.Node, is.Leader = nodes[x.Node], name(x.Leader)
		case world.Hurt:
			fault := storeFault(x.Fault)
			is.Node, is.Store = nodes[x.Node], &fault
		case world.Held:
			is.Holder = name(x.Node)
		case world.Rewired:
			is.Network = networkOf(nodes, x)
		default:
			continue // it is an Event
		}
		to.Changes = append(to.Changes, is)
	}
	return to
}

// distinct tells nodes of one name apart: a node may have come back under the name of another.
func distinct(names []string) []string {
	all, seen := make([]string, len(names)), make(map[string]int)
	for i, name := range names {
		if all[i] = name; seen[name] > 0 {
			all[i] = fmt.Sprintf("%s (%d)", name, seen[name]+1)
		}
		seen[name]++
	}
	return all
}

func spanTexts(all world.Spans) [][2]string {
	list := [][2]string{}
	for _, s := range all {
		list = append(list, [2]string{s.From.String(), s.To.String()})
	}
	return list
}

func networkOf(names []string, r world.Rewired) *Wiring {
	n := &Wiring{}
	index := make(map[int]int)
	for i, g := range r.Groups {
		at, ok := index[g]
		if !ok {
			at = len(n.Groups)
			index[g], n.Groups = at, append(n.Groups, nil)
		}
		n.Groups[at] = append(n.Groups[at], names[i])
	}
	if len(n.Groups) < 2 {
		n.Groups = nil
	}
	for _, c := range r.Cut {
		n.Cut = append(n.Cut, [2]string{names[c[0]], names[c[1]]})
	}
	return n
}

// storeFault says in a few words what a fault does; nothing of none.
func storeFault(f world.StoreFault) string {
	var parts []string
	share := func(what string, p float64) {
		switch {
		case p >= 1:
			parts = append(parts, what)
		case p > 0:
			parts = append(parts, fmt.Sprintf("%s (%.0f %%)", what, 100*p))
		}
	}
	switch f.Access {
	case world.Silent:
		parts = append(parts, "unreachable")
	case world.Refused:
		parts = append(parts, "refuses")
	}
	share("loses requests", f.LoseRequests)
	share("loses answers", f.LoseAnswers)
	share("conflicts", f.Conflicts)
	share("late writes", f.Late)
	if f.Slow > 0 {
		parts = append(parts, fmt.Sprintf("slow by %v", 2*f.Slow))
	}
	return strings.Join(parts, ", ")
}

// watched are the nodes, by index, whose views are recorded; nil for all.
func (s *Scenario) watched() []int {
	const each = 3 // of a kind: the first two, which lead, and the last
	names := s.names()
	if len(names.nodes) <= maxWatched {
		return nil
	}
	var kinds []string // in order of their first node
	members := make(map[string][]int)
	for i, k := range s.treatment(names) {
		if members[k] == nil {
			kinds = append(kinds, k)
		}
		members[k] = append(members[k], i)
	}
	var watched []int
	for _, k := range kinds {
		of := members[k]
		if len(of) > each {
			of = []int{of[0], of[1], of[len(of)-1]}
		}
		if watched = append(watched, of...); len(watched) >= maxWatched {
			return watched[:maxWatched]
		}
	}
	return watched
}

// treatment says of each node, by index, what the steps do to it; equal texts mean equal treatment.
func (s *Scenario) treatment(names *names) []string {
	marks := make([]strings.Builder, len(names.nodes))
	mark := func(what string, list ...string) {
		for _, i := range names.expand(list) {
			marks[i].WriteString(what)
		}
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		if st.Partition != nil {
			for g, group := range *st.Partition {
				mark(fmt.Sprintf("%d.%d ", i, g), group...)
			}
		}
		if st.Nodes != nil {
			mark(fmt.Sprintf("%d ", i), *st.Nodes...)
		}
		for _, link := range []*[]string{st.Cut, st.CutOneWay, st.Link, st.LinkOneWay} {
			if link != nil {
				mark(fmt.Sprintf("%d.0 ", i), (*link)[0])
				mark(fmt.Sprintf("%d.1 ", i), (*link)[1])
			}
		}
		for _, list := range []*[]string{st.ForceLeave, st.On} {
			if list != nil {
				mark(fmt.Sprintf("%d ", i), *list...)
			}
		}
		for _, name := range []*string{st.Crash, st.Restart, st.Leave, st.Down, st.By, st.Join, st.Pause} {
			if name != nil {
				mark(fmt.Sprintf("%d ", i), *name)
			}
		}
		if st.Clock != nil {
			mark(fmt.Sprintf("%d ", i), st.Clock.Node)
		}
	}
	all := make([]string, len(marks))
	for i := range marks {
		all[i] = marks[i].String()
	}
	return all
}
