package scenario

import (
	"fmt"
	"slices"
	"strings"
)

// action is one of the things that a step can do.
type action struct {
	key   string
	check func(path string)
}

// actions lists what the step wants done, in the order of the contract.
func (c *checker) actions(st *Step) (set []action) {
	add := func(on bool, key string, check func(path string)) {
		if on {
			set = append(set, action{key, check})
		}
	}
	node := func(key string, name *string) {
		add(name != nil, key, func(path string) { c.member(path, *name) })
	}
	add(st.Partition != nil, "partition", func(path string) { c.partition(path, *st.Partition) })
	add(st.Cut != nil, "cut", func(path string) { c.pair(path, *st.Cut) })
	add(st.CutOneWay != nil, "cut-one-way", func(path string) { c.pair(path, *st.CutOneWay) })
	node("crash", st.Crash)
	node("restart", st.Restart)
	node("leave", st.Leave)
	add(st.Join != nil, "join", func(path string) { c.name(path, *st.Join) })
	node("pause", st.Pause)
	add(st.LeaseStore != nil, "lease-store", func(path string) { c.storeFault(path, st.LeaseStore) })
	add(st.Clock != nil, "clock", func(path string) { c.clock(path, st.Clock) })
	add(st.Heal != nil, "heal", func(path string) {
		if !*st.Heal {
			c.Add(path, "is false: leave the step out")
		}
	})
	return set
}

func (c *checker) step(path string, st *Step) {
	switch at := st.At; {
	case at == nil:
		c.Add(path, "has no `at`: it must say when")
	case *at < 0:
		c.Add(path+".at", "is %v: that is before the start", *at)
	case *at > c.s.RunFor && c.s.RunFor > 0:
		c.Add(path+".at", "is %v: the run ends at %v (run-for)", *at, c.s.RunFor)
	}
	set := c.actions(st)
	switch {
	case len(set) == 0:
		c.Add(path, "does nothing: it needs one of partition, cut, cut-one-way, crash, restart, leave, join, pause, lease-store, clock, heal")
	case len(set) > 1:
		var keys []string
		for _, a := range set {
			keys = append(keys, a.key)
		}
		c.Add(path, "has %d actions (%s): write a step for each", len(set), strings.Join(keys, ", "))
	}
	for _, a := range set {
		a.check(path + "." + a.key)
	}
	c.belongings(path, st)
}

// belongings checks `for` and `nodes`, which belong to some actions only.
func (c *checker) belongings(path string, st *Step) {
	switch {
	case st.For != nil && st.Pause == nil && st.LeaseStore == nil:
		c.Add(path+".for", "belongs to pause and lease-store only")
	case st.For != nil:
		c.span(path+".for", *st.For, true)
	case st.Pause != nil:
		c.Add(path, "pauses without `for`: it must say how long")
	}
	if st.Nodes == nil {
		return
	}
	if st.LeaseStore == nil {
		c.Add(path+".nodes", "belongs to lease-store only")
	}
	if len(*st.Nodes) == 0 {
		c.Add(path+".nodes", "is empty: leave it out to mean all members")
	}
	c.list(path+".nodes", *st.Nodes, make(map[int]string))
}

// list checks names and zones. seen holds where each node was named before.
func (c *checker) list(path string, list []string, seen map[int]string) {
	for i, name := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		if err := c.names.unknown(name, true); err != nil {
			c.Add(at, "%v", err)
			continue
		}
		for _, n := range c.names.expand([]string{name}) {
			if before, twice := seen[n]; twice {
				c.Add(at, "%s is already in %s", c.names.nodes[n].Name, before)
			} else {
				seen[n] = path
			}
		}
	}
}

func (c *checker) partition(path string, groups [][]string) {
	if len(groups) == 0 {
		c.Add(path, "is empty: it must be a list of groups such as [[n1, n2], [n3]]")
	}
	seen := make(map[int]string)
	for i, g := range groups {
		at := fmt.Sprintf("%s[%d]", path, i)
		if len(g) == 0 {
			c.Add(at, "is an empty group")
		}
		c.list(at, g, seen)
	}
}

func (c *checker) pair(path string, pair []string) {
	if len(pair) != 2 {
		c.Add(path, "names %d members: it must be two, such as [n1, n2]", len(pair))
		return
	}
	for i, name := range pair {
		c.member(fmt.Sprintf("%s[%d]", path, i), name)
	}
	if pair[0] == pair[1] {
		c.Add(path, "names %s twice: a link has two ends", pair[0])
	}
}

func (c *checker) storeFault(path string, f *StoreFault) {
	switch slow := f.Slow.Slow; {
	case slices.Contains(faultKinds, f.Kind):
	case f.Kind != "":
		c.Add(path, "%.40q is unknown; known are %s", f.Kind, f.Expected())
	case slow == nil:
		c.Add(path, "must be %s", f.Expected())
	default:
		c.span(path+".slow", *slow, true)
	}
}

func (c *checker) clock(path string, cl *Clock) {
	c.member(path+".node", cl.Node)
	if cl.Skew == nil && cl.Rate == nil {
		c.Add(path, "does nothing: it needs skew or rate")
	}
	if cl.Skew != nil && (*cl.Skew > maxTime || *cl.Skew < -maxTime) {
		c.Add(path+".skew", "is %v: it must be at most %v either way", *cl.Skew, maxTime)
	}
	if cl.Rate != nil && !validRate(*cl.Rate) {
		c.Add(path+".rate", "is %v: it must be a number from 0.01 to 100", *cl.Rate)
	}
}

// joins checks that whoever joins was not there.
func (c *checker) joins() {
	joined := make(map[string]int)
	for i := range c.s.Steps {
		j := c.s.Steps[i].Join
		if j == nil {
			continue
		}
		at := fmt.Sprintf("steps[%d].join", i)
		if k, known := c.names.index[*j]; known && k < c.names.start {
			c.Add(at, "%s is a member from the start; restart brings it back", *j)
		} else if first, twice := joined[*j]; twice {
			c.Add(at, "%s joins in steps[%d]; restart brings it back", *j, first)
		} else {
			joined[*j] = i
		}
	}
}
