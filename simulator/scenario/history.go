package scenario

import (
	"fmt"
	"strings"
)

// maxWatched is the largest cluster in which every member's view of all is recorded, and in a larger one the
// number of nodes whose view of all is.
const maxWatched = 64

// watched are the nodes, by index, whose views are recorded; nil for all.
func (s *Scenario) watched() []int {
	const each = 3 // of a kind: the first two, which lead, and the last
	names := s.Names()
	if len(names.Nodes) <= maxWatched {
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
func (s *Scenario) treatment(names *Names) []string {
	marks := make([]strings.Builder, len(names.Nodes))
	mark := func(what string, list ...string) {
		for _, i := range names.Expand(list) {
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
