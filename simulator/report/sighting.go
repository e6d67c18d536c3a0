package report

import (
	"github.com/serf-sbr/serf-sbr/simulator/internal/world"
)

// sighting adds up what the watched members of one lane think of the members of another.
type sighting struct {
	h    *world.History
	c    *cast
	is   map[[2]int]world.Sight         // by nodes: what differs from alive
	sums map[[2]int]map[world.Sight]int // by lanes: how many pairs differ
	said map[[2]int]string
	eyes []int // by lane: watched members
}

func newSighting(h *world.History, c *cast) *sighting {
	g := &sighting{
		h: h, c: c, is: make(map[[2]int]world.Sight), sums: make(map[[2]int]map[world.Sight]int), said: make(map[[2]int]string),
		eyes: make([]int, len(c.lanes)),
	}
	for i, l := range c.of {
		if l >= 0 && h.Watched[i] {
			g.eyes[l]++
		}
	}
	return g
}

// begin says which lanes have nobody whose view was recorded, and who is not there yet.
func (g *sighting) begin() (all []changeData) {
	for by := range g.c.lanes {
		for of := range g.c.lanes {
			if g.eyes[by] == 0 {
				all = append(all, changeData{See: &sightData{by, of, "unwatched"}})
			}
		}
	}
	started := make([]bool, len(g.h.Nodes))
	for _, c := range g.h.Changes {
		if l, ok := c.What.(world.Lived); ok && c.At == 0 && l.Life != world.Absent {
			started[l.Node] = true
		}
	}
	for i, is := range started {
		if is {
			continue
		}
		for j := range started {
			all = append(all, g.set(0, j, i, world.Unknown)...)
			all = append(all, g.set(0, i, j, world.Unknown)...)
		}
	}
	return all
}

// lived forgets what a node thought that starts anew.
func (g *sighting) lived(at float64, l world.Lived) (all []changeData) {
	if l.Life != world.Booting {
		return nil
	}
	for j := range g.h.Nodes {
		all = append(all, g.set(at, l.Node, j, world.Unknown)...)
	}
	return all
}

func (g *sighting) viewed(at float64, v world.Viewed) []changeData {
	return g.set(at, v.Observer, v.Subject, v.Sight)
}

func (g *sighting) set(at float64, observer, subject int, sight world.Sight) []changeData {
	by, of := g.c.of[observer], g.c.of[subject]
	if observer == subject || by < 0 || of < 0 || !g.h.Watched[observer] {
		return nil
	}
	pair, lanes := [2]int{observer, subject}, [2]int{by, of}
	sums := g.sums[lanes]
	if sums == nil {
		sums = make(map[world.Sight]int)
		g.sums[lanes] = sums
	}
	if old, differs := g.is[pair]; differs {
		sums[old]--
	}
	if g.is[pair] = sight; sight == world.Alive {
		delete(g.is, pair)
	} else {
		sums[sight]++
	}
	is := g.sum(lanes)
	if is == g.said[lanes] || is == world.Alive.String() && g.said[lanes] == "" {
		return nil
	}
	g.said[lanes] = is
	return []changeData{{At: at, See: &sightData{by, of, is}}}
}

// sum is what all think, or "some" where some fail what others do not.
func (g *sighting) sum(lanes [2]int) string {
	pairs := g.eyes[lanes[0]] * len(g.c.lanes[lanes[1]].nodes)
	if lanes[0] == lanes[1] {
		pairs -= g.eyes[lanes[0]]
	}
	sums := g.sums[lanes]
	for _, s := range []world.Sight{world.Failed, world.Missed, world.Unknown} {
		if sums[s] == pairs {
			return s.String()
		}
	}
	switch {
	case sums[world.Failed] > 0 && sums[world.Failed]+sums[world.Unknown] == pairs:
		return world.Failed.String() // as far as anybody knows
	case sums[world.Failed] > 0:
		return "some"
	case sums[world.Missed] > 0:
		return world.Missed.String()
	default:
		return world.Alive.String()
	}
}
