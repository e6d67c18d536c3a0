package report

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/simulator/internal/world"
)

// span is a stretch of time.
type span struct{ from, to time.Duration }

// total is how long spans are together.
func total(spans []span) (d time.Duration) {
	for _, s := range spans {
		d += s.to - s.from
	}
	return d
}

// activity says when two sides were at work after their partition had been decided, and when nobody was at work.
type activity struct{ double, nobody []span }

// activityOf works it out from a history alone, so that a run's own measure can be checked against it.
func activityOf(h *world.History) activity {
	var a activity
	m := newMeter(h)
	var double, nobody *span
	for i, c := range h.Changes {
		m.take(c)
		if i+1 < len(h.Changes) && h.Changes[i+1].At == c.At {
			continue // what counts is how things are when nothing more happens at this moment
		}
		a.double, double = mark(a.double, double, m.double(), c.At)
		a.nobody, nobody = mark(a.nobody, nobody, m.active == 0, c.At)
	}
	a.double, _ = mark(a.double, double, false, h.End)
	a.nobody, _ = mark(a.nobody, nobody, false, h.End)
	return a
}

// mark begins or ends a span at the moment at, as is says.
func mark(spans []span, open *span, is bool, at time.Duration) ([]span, *span) {
	switch {
	case is && open == nil:
		return spans, &span{from: at}
	case !is && open != nil:
		if open.to = at; open.to > open.from {
			spans = append(spans, *open)
		}
		return spans, nil
	}
	return spans, open
}

// meter follows who is at work, and who can reach whom.
type meter struct {
	probes  bool
	works   []bool
	side    []int
	cut     [][2]int
	active  int
	onSide  map[int]int // how many are at work there
	apart   bool
	met     [][]bool      // who ever heard of whom; nil in a large cluster, where everybody counts as having done so
	since   time.Duration // when two members at work were first apart
	decided time.Duration // the last moment at which a decision took effect
	any     bool
}

func newMeter(h *world.History) *meter {
	const small = 64
	n := len(h.Nodes)
	m := &meter{probes: h.Probes, works: make([]bool, n), side: make([]int, n), onSide: make(map[int]int)}
	if n <= small {
		m.met = make([][]bool, n)
		for i := range m.met {
			m.met[i] = make([]bool, n)
		}
	}
	return m
}

func (m *meter) take(c world.Change) {
	switch x := c.What.(type) {
	case world.Lived:
		m.meet(x, c.At)
		if is := x.Life.Works(); is != m.works[x.Node] {
			m.works[x.Node] = is
			m.count(m.side[x.Node], is)
		}
	case world.Rewired:
		m.side, m.cut = sides(x, len(m.works)), x.Cut
		clear(m.onSide)
		m.active = 0
		for i, is := range m.works {
			if is {
				m.count(m.side[i], true)
			}
		}
	case world.Viewed:
		if m.met != nil && x.Sight != world.Unknown && !x.Former {
			m.met[x.Observer][x.Subject], m.met[x.Subject][x.Observer] = true, true
		}
	case world.Ruled, world.Acted:
		m.decided, m.any = c.At, true
	}
	if apart := m.isApart(); apart != m.apart {
		m.apart, m.since = apart, c.At
	}
}

// meet says who knows a node that starts: everybody at the start of the run, nobody later.
func (m *meter) meet(l world.Lived, at time.Duration) {
	starts := at == 0 && l.Life != world.Absent
	if m.met == nil || !starts && l.Life != world.Booting {
		return
	}
	for i := range m.met {
		knows := starts && m.works[i]
		m.met[i][l.Node], m.met[l.Node][i] = knows, knows
	}
}

func (m *meter) count(side int, is bool) {
	d := -1
	if is {
		d = 1
	}
	m.active += d
	if m.onSide[side] += d; m.onSide[side] == 0 {
		delete(m.onSide, side)
	}
}

// isApart reports whether two members that are at work, and have heard of each other, cannot reach each other, as far as resolvers can find out.
func (m *meter) isApart() bool {
	if m.met == nil {
		return len(m.onSide) > 1 || m.probes && slices.ContainsFunc(m.cut, func(c [2]int) bool { return m.works[c[0]] && m.works[c[1]] })
	}
	apart := func(i, j int) bool {
		return m.side[i] != m.side[j] ||
			m.probes && (slices.Contains(m.cut, [2]int{i, j}) || slices.Contains(m.cut, [2]int{j, i}))
	}
	for i, row := range m.met {
		for j, met := range row[:i] {
			if met && m.works[i] && m.works[j] && apart(i, j) {
				return true
			}
		}
	}
	return false
}

func (m *meter) double() bool { return m.apart && m.any && m.decided >= m.since }

// sides labels the nodes that reach each other, maybe over others, with the lowest index among them.
func sides(r world.Rewired, nodes int) []int {
	group := make([]int, nodes)
	copy(group, r.Groups)
	cut := make(map[[2]int]bool, 2*len(r.Cut))
	for _, c := range r.Cut { // a link that is cut one way is of no use
		cut[c], cut[[2]int{c[1], c[0]}] = true, true
	}
	left := make(map[int][]int) // by group: who is not yet on a side
	for i := range nodes {
		left[group[i]] = append(left[group[i]], i)
	}
	side := make([]int, nodes)
	for i := range side {
		side[i] = -1
	}
	for i := range side {
		if side[i] >= 0 {
			continue
		}
		side[i] = i
		for todo := []int{i}; len(todo) > 0; {
			a := todo[0]
			todo = todo[1:]
			// Whoever a reaches leaves the list, so that each link is looked at once, and each cut.
			rest := left[group[i]][:0]
			for _, b := range left[group[i]] {
				switch {
				case side[b] >= 0:
				case cut[[2]int{a, b}]:
					rest = append(rest, b)
				default:
					side[b] = i
					todo = append(todo, b)
				}
			}
			left[group[i]] = rest
		}
	}
	return side
}
