package shrink

import (
	"fmt"
	"maps"
	"slices"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// members leaves out members, together with everything that names them.
func (z *shrinker) members() {
	all := z.best.Members()
	from := z.best
	fewest(len(all), func(keep []int) bool {
		gone := make(map[string]bool)
		for _, name := range all {
			gone[name] = true
		}
		for _, i := range keep {
			delete(gone, all[i])
		}
		return z.try(without(from, gone))
	})
}

// counted writes a list of nodes as a number where that says the same.
func counted(list []scenario.Node) scenario.Nodes {
	for i, n := range list {
		if n.Name != fmt.Sprintf("n%d", i+1) || len(n.Roles) > 0 || n.Zone != "" {
			return scenario.Nodes{List: list}
		}
	}
	return scenario.Nodes{Count: len(list)}
}

// without is s without some members. A zone whose last member is gone is gone as well.
func without(s *scenario.Scenario, gone map[string]bool) *scenario.Scenario {
	c := *s
	left := []scenario.Node{}
	zones := make(map[string]bool)
	for _, n := range s.Cluster.Nodes.All() {
		if !gone[n.Name] {
			left = append(left, n)
			zones[n.Zone] = true
		}
	}
	for _, n := range s.Cluster.Nodes.All() {
		if n.Zone != "" && !zones[n.Zone] {
			gone[n.Zone] = true
		}
	}
	c.Cluster.Nodes = counted(left)
	c.Cluster.Settings = maps.Clone(s.Cluster.Settings)
	maps.DeleteFunc(c.Cluster.Settings, func(name string, _ *config.SplitBrainResolver) bool {
		return gone[name]
	})
	c.Steps = nil
	for _, st := range s.Steps {
		if stepWithout(&st, gone) {
			c.Steps = append(c.Steps, st)
		}
	}
	expectWithout(&c.Expect, gone)
	return &c
}

// names is a list without the members that are gone; nil if none is left.
func names(list []string, gone map[string]bool) (left []string) {
	for _, name := range list {
		if !gone[name] {
			left = append(left, name)
		}
	}
	return left
}

// stepWithout takes the names out of a step, a copy. It reports whether anything is left to do.
func stepWithout(st *scenario.Step, gone map[string]bool) bool {
	for _, one := range []*string{st.Crash, st.Restart, st.Leave, st.Down, st.By, st.Join, st.Pause} {
		if one != nil && gone[*one] {
			return false
		}
	}
	for _, link := range []*[]string{st.Cut, st.CutOneWay, st.Link, st.LinkOneWay} {
		if link != nil && slices.ContainsFunc(*link, func(name string) bool { return gone[name] }) {
			return false
		}
	}
	if st.Clock != nil && gone[st.Clock.Node] {
		return false
	}
	for _, list := range []**[]string{&st.Nodes, &st.ForceLeave, &st.On} {
		if *list == nil {
			continue
		}
		left := names(**list, gone)
		if *list = &left; left == nil {
			return false
		}
	}
	if st.Partition == nil {
		return true
	}
	var groups [][]string
	for _, g := range *st.Partition {
		if left := names(g, gone); left != nil {
			groups = append(groups, left)
		}
	}
	st.Partition = &groups
	return groups != nil
}

// expectWithout takes the names out of what is expected. The number of survivors stays: whether it still fits
// is for fails to say.
func expectWithout(e *scenario.Expect, gone map[string]bool) {
	less := func(set *[]string) *[]string {
		if set == nil {
			return nil
		}
		left := append([]string{}, names(*set, gone)...)
		return &left
	}
	e.Survivors, e.Down = less(e.Survivors), less(e.Down)
	if e.SurvivorsOneOf != nil {
		sets := make([][]string, len(*e.SurvivorsOneOf))
		for i := range sets {
			sets[i] = *less(&(*e.SurvivorsOneOf)[i])
		}
		e.SurvivorsOneOf = &sets
	}
	if e.LeaseHolder != nil && gone[*e.LeaseHolder] {
		e.LeaseHolder = nil
	}
	decisions := make(map[string]string)
	for name, d := range e.Decisions {
		if !gone[name] {
			decisions[name] = d
		}
	}
	e.Decisions = decisions
	singletons := make(map[string]string)
	for name, on := range e.Singletons {
		if !gone[on] {
			singletons[name] = on
		}
	}
	e.Singletons = singletons
	shards := make(map[string][]string)
	for kind, on := range e.Shards {
		shards[kind] = names(on, gone)
	}
	e.Shards = shards
}
