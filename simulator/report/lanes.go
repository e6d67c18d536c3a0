package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/serf-sbr/serf-sbr/simulator/internal/world"
)

const (
	// maxOwn is the largest cluster in which every member has a lane of its own.
	maxOwn = 24
	// maxLanes is how many lanes are drawn at most.
	maxLanes = 40
)

// lane is one member, or several with equal histories.
type lane struct {
	label string
	nodes []int // by index, in order
	lives []stretch
}

// stretch is a time during which a lane does one thing. The members of a lane come to it between early and late.
type stretch struct {
	life        world.Life
	from, to    time.Duration
	early, late time.Duration
}

// cast says which lane each node is in.
type cast struct {
	lanes []*lane
	of    []int // by node; -1: not drawn
	// hidden are the members that are not drawn because there would be too many lanes.
	hidden int
}

// castOf puts the nodes into lanes.
func castOf(h *world.History) *cast {
	paths := pathsOf(h)
	keys := make([]string, len(h.Nodes))
	for i := range keys {
		keys[i] = fmt.Sprint(i)
	}
	if len(h.Nodes) > maxOwn {
		fates := fatesOf(h)
		for i := range keys {
			keys[i] = fates[i] + paths[i].key()
		}
		if distinct(keys) > maxLanes {
			for i := range keys { // then it counts what became of them, not how
				keys[i] = fates[i] + paths[i].last().String()
			}
		}
	}
	c := &cast{of: make([]int, len(keys))}
	index := make(map[string]int)
	for i, k := range keys {
		l, ok := index[k]
		if !ok {
			l = len(c.lanes)
			index[k] = l
			c.lanes = append(c.lanes, &lane{})
		}
		c.lanes[l].nodes = append(c.lanes[l].nodes, i)
		c.of[i] = l
	}
	c.drop()
	for _, l := range c.lanes {
		l.label = label(h.Nodes, l.nodes)
		l.lives = stretches(paths, l.nodes, h.End)
	}
	return c
}

// drop leaves the largest lanes, if there are too many.
func (c *cast) drop() {
	if len(c.lanes) <= maxLanes {
		return
	}
	sizes := make([]int, len(c.lanes))
	for i, l := range c.lanes {
		sizes[i] = len(l.nodes)
	}
	slices.Sort(sizes)
	least, spare := sizes[len(sizes)-maxLanes], 0
	for _, s := range sizes[len(sizes)-maxLanes:] {
		if s == least {
			spare++ // lanes of this size for which there is room
		}
	}
	var kept []*lane
	for _, l := range c.lanes {
		if len(l.nodes) > least || len(l.nodes) == least && spare > 0 {
			if len(l.nodes) == least {
				spare--
			}
			for _, n := range l.nodes {
				c.of[n] = len(kept)
			}
			kept = append(kept, l)
			continue
		}
		c.hidden += len(l.nodes)
		for _, n := range l.nodes {
			c.of[n] = -1
		}
	}
	c.lanes = kept
}

// path is what a node did, one thing after the other.
type path []step

type step struct {
	at   time.Duration
	life world.Life
}

func (p path) key() string {
	b := make([]byte, len(p))
	for i, s := range p {
		b[i] = byte(s.life)
	}
	return string(b)
}

func (p path) last() world.Life {
	if len(p) == 0 {
		return world.Absent
	}
	return p[len(p)-1].life
}

func pathsOf(h *world.History) []path {
	paths := make([]path, len(h.Nodes))
	for _, c := range h.Changes {
		l, ok := c.What.(world.Lived)
		if !ok {
			continue
		}
		p := &paths[l.Node]
		if n := len(*p); n > 0 && (*p)[n-1].at == c.At {
			*p = (*p)[:n-1] // it did not last
		}
		*p = append(*p, step{c.At, l.Life})
	}
	return paths
}

// fatesOf says of each node what happened to it from outside, and whether it had a part of its own: who held the lease, wrote a verdict
// or was at the end of a link that was cut has a lane of its own.
func fatesOf(h *world.History) []string {
	fates := make([]strings.Builder, len(h.Nodes))
	own := func(i int) { fmt.Fprintf(&fates[i], "own%d ", i) }
	for _, c := range h.Changes {
		switch x := c.What.(type) {
		case world.Rewired:
			for i, g := range x.Groups {
				fmt.Fprintf(&fates[i], "g%d ", g)
			}
			for _, link := range x.Cut {
				own(link[0])
				own(link[1])
			}
		case world.Hurt:
			fmt.Fprintf(&fates[x.Node], "h%v%v ", c.At, x.Fault)
		case world.Held:
			if x.Node >= 0 {
				own(x.Node)
			}
		case world.Ruled:
			own(x.By)
		}
	}
	out := make([]string, len(fates))
	for i := range fates {
		out[i] = fates[i].String()
	}
	return out
}

// stretches are those of the commonest path among the nodes; each begins when half of the nodes on that path have come to it.
func stretches(paths []path, nodes []int, end time.Duration) []stretch {
	on := make(map[string][]int)
	best := ""
	for _, n := range nodes {
		k := paths[n].key()
		on[k] = append(on[k], n)
	}
	for _, n := range nodes { // in order, so that a tie is decided by it
		if k := paths[n].key(); len(on[k]) > len(on[best]) {
			best = k
		}
	}
	var all []stretch
	for i := range len(best) {
		times := make([]time.Duration, 0, len(on[best]))
		for _, n := range on[best] {
			times = append(times, paths[n][i].at)
		}
		slices.Sort(times)
		at := times[len(times)/2]
		if i > 0 {
			all[i-1].to = at
		}
		all = append(all, stretch{life: world.Life(best[i]), from: at, to: end, early: times[0], late: times[len(times)-1]})
	}
	return all
}

func distinct(keys []string) int {
	seen := make(map[string]bool, len(keys))
	for _, k := range keys {
		seen[k] = true
	}
	return len(seen)
}

// label names a few members, and how many there are of many.
func label(names []string, nodes []int) string {
	switch n := len(nodes); {
	case n == 0:
		return "nobody"
	case n <= 3:
		var list []string
		for _, i := range nodes {
			list = append(list, names[i])
		}
		return strings.Join(list, ", ")
	default:
		return fmt.Sprintf("%s … %s (%s)", names[nodes[0]], names[nodes[n-1]], number(n))
	}
}

// number writes a count as people read it.
func number(n int) string { return message.NewPrinter(language.English).Sprintf("%d", n) }
