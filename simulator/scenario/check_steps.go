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
	add(st.Link != nil, "link", func(path string) { c.link(path, *st.Link, st) })
	add(st.LinkOneWay != nil, "link-one-way", func(path string) { c.link(path, *st.LinkOneWay, st) })
	node("crash", st.Crash)
	node("restart", st.Restart)
	node("leave", st.Leave)
	add(st.ForceLeave != nil, "force-leave", func(path string) { c.nonempty(path, *st.ForceLeave) })
	node("down", st.Down)
	add(st.Join != nil, "join", func(path string) { c.name(path, *st.Join) })
	node("pause", st.Pause)
	add(st.LeaseStore != nil, "lease-store", func(path string) { c.storeFault(path, st.At, st.LeaseStore) })
	add(st.Rights != nil, "rights", func(path string) {
		if *st.Rights != none {
			c.Add(path, "is %.40q: it must be none", *st.Rights)
		}
	})
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
	case at.From < 0:
		c.Add(path+".at", "is %v: that is before the start", *at)
	case at.Spread < 0 || at.Spread > maxTime:
		c.Add(path+".at", "is %v: a range must end after it begins, and be at most %v long", *at, maxTime)
	case at.Last() > c.s.RunFor && c.s.RunFor > 0:
		c.Add(path+".at", "is %v: the run ends at %v (run-for)", *at, c.s.RunFor)
	}
	set := c.actions(st)
	switch {
	case len(set) == 0:
		c.Add(path, "does nothing: it needs one of partition, cut, cut-one-way, link, link-one-way, heal, crash, restart, leave, force-leave, down, join, "+
			"pause, lease-store, rights, clock")
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

// belongings checks what belongs to some actions only.
func (c *checker) belongings(path string, st *Step) {
	hurts := st.LeaseStore != nil && !st.LeaseStore.forgets() || st.Rights != nil
	switch {
	case st.For != nil && st.Pause == nil && !hurts:
		c.Add(path+".for", "belongs to pause, rights and a fault of the way to the lease store only")
	case st.For != nil:
		c.lasting(path+".for", *st.For)
	case st.Pause != nil:
		c.Add(path, "pauses without `for`: it must say how long")
	}
	if st.Nodes != nil {
		if !hurts {
			c.Add(path+".nodes", "belongs to rights and to a fault of the way to the lease store only")
		}
		c.nonempty(path+".nodes", *st.Nodes)
	}
	if st.On != nil {
		if st.ForceLeave == nil {
			c.Add(path+".on", "belongs to force-leave only")
		}
		c.nonempty(path+".on", *st.On)
	}
	switch {
	case st.By != nil && st.Down == nil:
		c.Add(path+".by", "belongs to down only")
	case st.By != nil:
		c.member(path+".by", *st.By)
		if *st.By == *st.Down {
			c.Add(path+".by", "%s cannot be asked to down itself: ask another member", *st.By)
		}
	case st.Down != nil:
		c.Add(path, "downs %s without `by`: it must say which member the operator asks", *st.Down)
	}
	if (st.As != nil || st.State != nil) && st.Restart == nil {
		c.Add(path, "has `as` or `state`, which belong to restart only")
	}
	if st.As != nil {
		c.name(path+".as", *st.As)
		if st.Restart != nil && *st.As == *st.Restart {
			c.Add(path+".as", "%s is what it is called already: leave it out", *st.As)
		}
	}
	if st.State != nil && *st.State != stateLost {
		c.Add(path+".state", "is %.40q: it must be lost; a node that keeps its state folder says nothing",
			*st.State)
	}
	if (st.Loss != nil || st.Latency != nil) && st.Link == nil && st.LinkOneWay == nil {
		c.Add(path, "has `loss` or `latency`, which belong to link and link-one-way only")
	}
}

// lasting checks how long something lasts.
func (c *checker) lasting(path string, t Time) {
	if t.Spread < 0 {
		c.Add(path, "is %v: a range must end after it begins", t)
		return
	}
	c.span(path, t.From, true)
	if t.Spread > 0 && t.From <= maxTime && t.Last() > maxTime {
		c.Add(path, "is %v: it must be at most %v", t, maxTime)
	}
}

// nonempty checks a list of names and zones that must name at least one node.
func (c *checker) nonempty(path string, list []string) {
	if len(list) == 0 {
		c.Add(path, "is empty: leave it out, or name somebody")
	}
	c.list(path, list, make(map[int]string))
}

// link checks a change of the links between two members or zones.
func (c *checker) link(path string, ends []string, st *Step) {
	if len(ends) != 2 {
		c.Add(path, "names %d ends: it must be two members or zones, such as [n1, n4]", len(ends))
		return
	}
	c.list(path, ends, make(map[int]string))
	at := strings.TrimSuffix(path, ".link")
	at = strings.TrimSuffix(at, ".link-one-way")
	if st.Loss == nil && st.Latency == nil {
		c.Add(path, "changes nothing: it needs loss, latency or both")
	}
	if st.Loss != nil {
		c.share(at+".loss", *st.Loss)
	}
	if st.Latency != nil {
		c.span(at+".latency", *st.Latency, false)
	}
}

// stateLost is what a restart says that has no state folder.
const stateLost = "lost"

// cutsLink reports whether a link is cut, healsLink whether it becomes what every other one is.
func (st *Step) cutsLink() bool { return st.Loss != nil && *st.Loss == 1 }

func (st *Step) healsLink() bool {
	return st.Loss != nil && *st.Loss == 0 && st.Latency != nil && *st.Latency == 0
}

// list checks names and zones. seen holds where each node was named before.
func (c *checker) list(path string, list []string, seen map[int]string) {
	for i, name := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		if err := c.names.unknown(name, true); err != nil {
			c.Add(at, "%v", err)
			continue
		}
		for _, n := range c.names.Expand([]string{name}) {
			if before, twice := seen[n]; twice {
				c.Add(at, "%s is already in %s", c.names.Nodes[n].Name, before)
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
	for _, name := range pair {
		if c.names.zones[name] != nil && c.names.unknown(pair[0], true) == nil &&
			c.names.unknown(pair[1], true) == nil {
			key := strings.Replace(path[strings.LastIndexByte(path, '.')+1:], "cut", "link", 1)
			c.Add(path, "%s is a zone, and this cuts one link: write %s: [%s, %s], loss: 1", name,
				key, pair[0], pair[1])
			return
		}
	}
	for i, name := range pair {
		c.member(fmt.Sprintf("%s[%d]", path, i), name)
	}
	if pair[0] == pair[1] {
		c.Add(path, "names %s twice: a link has two ends", pair[0])
	}
}

func (c *checker) storeFault(path string, at *Time, f *StoreFault) {
	slow, restore := f.Change.Slow, f.Change.Restore
	switch {
	case slices.Contains(faultKinds, f.Kind):
	case f.Kind != "":
		c.Add(path, "%.40q is unknown; known are %s", f.Kind, f.Expected())
	case slow == nil && restore == nil, slow != nil && restore != nil:
		c.Add(path, "must be %s", f.Expected())
	case slow != nil:
		c.span(path+".slow", *slow, true)
	case *restore < 0:
		c.Add(path+".restore", "is %v: that is before the start", *restore)
	case at != nil && *restore > at.From:
		c.Add(path+".restore", "is %v: the store cannot become what it will only be after %v", *restore, *at)
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

// joins checks that a node that joins was not there.
func (c *checker) joins() {
	joined := make(map[string]int)
	for i := range c.s.Steps {
		j := c.s.Steps[i].Join
		if j == nil {
			continue
		}
		at := fmt.Sprintf("steps[%d].join", i)
		if k, known := c.names.Index[*j]; known && k < c.names.Start {
			c.Add(at, "%s is a member from the start; restart brings it back", *j)
		} else if first, twice := joined[*j]; twice {
			c.Add(at, "%s joins in steps[%d]; restart brings it back", *j, first)
		} else {
			joined[*j] = i
		}
	}
}
