package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/simulator/internal/world"
)

// data is what the script on the page needs to draw any moment of a run: lanes, and changes in order.
type data struct {
	Lanes []laneData `json:"lanes"`
	Until float64    `json:"until"` // the end of the axis, in milliseconds, as all times
	// Events are the times of the events, in the order of the table.
	Events  []float64    `json:"events"`
	Changes []changeData `json:"changes"`
}

type laneData struct {
	Label string `json:"label"`
	Size  int    `json:"size"`
}

// changeData is one change: a time, and one of the others.
type changeData struct {
	At   float64    `json:"t"`
	Life *lifeData  `json:"life,omitempty"`
	See  *sightData `json:"see,omitempty"`
	Net  *netData   `json:"net,omitempty"`
	Lead *[2]int    `json:"lead,omitempty"` // whose leader, and which lane that is in
	Held *int       `json:"held,omitempty"` // the lane; -1: nobody
	Hurt *[2]int    `json:"hurt,omitempty"` // a lane, and 1 if it does not reach the store as it should
}

type lifeData struct {
	Lane  int    `json:"lane"`
	Class string `json:"class"`
	Word  string `json:"word"`
	Works bool   `json:"works"`
}

type sightData struct {
	By int    `json:"by"`
	Of int    `json:"of"`
	Is string `json:"is"`
}

// netData says which lanes belong together, and which links between lanes are cut: from, to.
type netData struct {
	Side []int    `json:"side"`
	Cut  [][2]int `json:"cut"`
}

func ms(t time.Duration) float64 { return float64(t.Microseconds()) / 1000 }

func (s *story) data() data {
	d := data{Until: ms(s.until), Lanes: []laneData{}, Events: []float64{}, Changes: []changeData{}}
	for _, l := range s.cast.lanes {
		d.Lanes = append(d.Lanes, laneData{l.label, len(l.nodes)})
	}
	for i := range s.events {
		d.Events = append(d.Events, ms(s.events[i].at))
	}
	sight := newSighting(s.h, s.cast)
	for i, l := range s.cast.lanes {
		for _, st := range l.lives {
			d.Changes = append(d.Changes, changeData{At: ms(st.from), Life: &lifeData{i, lifeClass(st.life), st.life.String(), st.life.Works()}})
		}
	}
	d.Changes = append(d.Changes, sight.begin()...)
	for _, c := range s.h.Changes {
		d.Changes = append(d.Changes, s.changes(c, sight)...)
	}
	slices.SortStableFunc(d.Changes, func(a, b changeData) int { return cmp.Compare(a.At, b.At) })
	return d
}

// changes are those of lanes that follow from one of nodes.
func (s *story) changes(c world.Change, sight *sighting) []changeData {
	at := ms(c.At)
	switch x := c.What.(type) {
	case world.Lived:
		return sight.lived(at, x)
	case world.Viewed:
		return sight.viewed(at, x)
	case world.Rewired:
		return []changeData{{At: at, Net: s.net(x)}}
	case world.Held:
		l := -1
		if x.Node >= 0 {
			l = s.cast.of[x.Node]
		}
		return []changeData{{At: at, Held: &l}}
	case world.Led:
		if l := s.cast.of[x.Node]; l >= 0 && s.cast.lanes[l].nodes[0] == x.Node {
			leader := -1
			if x.Leader >= 0 {
				leader = s.cast.of[x.Leader]
			}
			return []changeData{{At: at, Lead: &[2]int{l, leader}}}
		}
	case world.Hurt:
		if l := s.cast.of[x.Node]; l >= 0 && s.cast.lanes[l].nodes[0] == x.Node {
			hurt := 0
			if x.Fault != (world.StoreFault{}) {
				hurt = 1
			}
			return []changeData{{At: at, Hurt: &[2]int{l, hurt}}}
		}
	}
	return nil
}

// net looks at the first node of each lane: those of one lane are cut off from the same others.
func (s *story) net(r world.Rewired) *netData {
	all := sides(r, len(s.h.Nodes))
	n := &netData{Side: []int{}, Cut: [][2]int{}}
	for _, l := range s.cast.lanes {
		n.Side = append(n.Side, all[l.nodes[0]])
	}
	cut := make(map[[2]int]bool, len(r.Cut))
	for _, c := range r.Cut {
		cut[c] = true
	}
	group := func(node int) int {
		if node < len(r.Groups) {
			return r.Groups[node]
		}
		return 0
	}
	for i, a := range s.cast.lanes {
		for j, b := range s.cast.lanes {
			from, to := a.nodes[0], b.nodes[0]
			if i != j && (group(from) != group(to) || cut[[2]int{from, to}]) {
				n.Cut = append(n.Cut, [2]int{i, j})
			}
		}
	}
	return n
}
