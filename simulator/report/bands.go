package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/simulator/internal/world"
)

// band is a stretch of time in one of the rows above the lanes.
type band struct {
	span
	text  string // short, for the band itself
	title string // the whole story
}

// bandsOf are the stretches during which look has something to say. take reports whether a change can make a difference to it; look is
// called when nothing more happens at that moment.
func bandsOf(h *world.History, take func(world.Change) bool, look func() (text, title string)) []band {
	var all []band
	open, changed := false, false
	for i, c := range h.Changes {
		changed = take(c) || changed
		if !changed || i+1 < len(h.Changes) && h.Changes[i+1].At == c.At {
			continue
		}
		changed = false
		text, title := look()
		if open && title == all[len(all)-1].title {
			continue
		}
		if open {
			all[len(all)-1].to = c.At
		}
		if open = title != ""; open {
			all = append(all, band{span{c.At, h.End}, text, title})
		}
	}
	return all
}

// networkBands are the times at which the network is not whole.
func networkBands(h *world.History) []band {
	now := world.Rewired{}
	return bandsOf(h, func(c world.Change) bool {
		r, ok := c.What.(world.Rewired)
		if ok {
			now = r
		}
		return ok
	}, func() (string, string) { return describeNetwork(h.Nodes, now) })
}

// describeNetwork says what is cut; nothing if the network is whole.
func describeNetwork(names []string, r world.Rewired) (text, title string) {
	var parts, long []string
	if groups := groupsOf(r.Groups); len(groups) > 1 {
		var short, full []string
		for _, g := range groups {
			short = append(short, label(names, g))
			full = append(full, list(names, g))
		}
		parts = append(parts, strings.Join(short, " | "))
		long = append(long, "partition: "+strings.Join(full, " | "))
	}
	for _, c := range r.Cut {
		both := slices.Contains(r.Cut, [2]int{c[1], c[0]})
		switch {
		case both && c[0] > c[1]:
		case both:
			parts = append(parts, names[c[0]]+" ✕ "+names[c[1]])
			long = append(long, fmt.Sprintf("cut: %s and %s", names[c[0]], names[c[1]]))
		default:
			parts = append(parts, names[c[0]]+" ↛ "+names[c[1]])
			long = append(long, fmt.Sprintf("cut one way: from %s to %s", names[c[0]], names[c[1]]))
		}
	}
	const few = 4
	if len(parts) > few {
		parts = append(parts[:few], fmt.Sprintf("and %d more", len(parts)-few))
	}
	const many = 40
	if len(long) > many {
		long = append(long[:many], fmt.Sprintf("and %d more", len(long)-many))
	}
	return strings.Join(parts, ", "), strings.Join(long, "; ")
}

// groupsOf are the nodes of each group, in the order of their first nodes.
func groupsOf(groups []int) [][]int {
	var all [][]int
	index := make(map[int]int)
	for i, g := range groups {
		at, ok := index[g]
		if !ok {
			at = len(all)
			index[g] = at
			all = append(all, nil)
		}
		all[at] = append(all[at], i)
	}
	return all
}

// list names up to a dozen nodes.
func list(names []string, nodes []int) string {
	const limit = 12
	if len(nodes) > limit {
		return label(names, nodes)
	}
	var all []string
	for _, i := range nodes {
		all = append(all, names[i])
	}
	return strings.Join(all, " ")
}

// storeBands are the times at which some nodes do not reach the lease store as they should.
func storeBands(h *world.History) []band {
	faults := make([]world.StoreFault, len(h.Nodes))
	return bandsOf(h, func(c world.Change) bool {
		f, ok := c.What.(world.Hurt)
		if ok {
			faults[f.Node] = f.Fault
		}
		return ok
	}, func() (string, string) {
		var kinds []string
		hit := make(map[string][]int)
		for i, f := range faults {
			if f != (world.StoreFault{}) {
				k := describeFault(f)
				if hit[k] == nil {
					kinds = append(kinds, k)
				}
				hit[k] = append(hit[k], i)
			}
		}
		var short, long []string
		for _, k := range kinds {
			who, all := label(h.Nodes, hit[k]), list(h.Nodes, hit[k])
			if len(hit[k]) == len(h.Nodes) {
				who, all = "all", "all"
			}
			short = append(short, k+" for "+who)
			long = append(long, k+" for "+all)
		}
		return strings.Join(short, ", "), strings.Join(long, "; ")
	})
}

// describeFault says in a few words what a fault does.
func describeFault(f world.StoreFault) string {
	var parts []string
	add := func(is bool, text string) {
		if is {
			parts = append(parts, text)
		}
	}
	share := func(what string, p float64) {
		switch {
		case p >= 1:
			parts = append(parts, what)
		case p > 0:
			parts = append(parts, fmt.Sprintf("%s (%.0f %%)", what, 100*p))
		}
	}
	add(f.Access == world.Silent, "unreachable")
	add(f.Access == world.Refused, "refuses")
	share("loses requests", f.LoseRequests)
	share("loses answers", f.LoseAnswers)
	share("conflicts", f.Conflicts)
	share("late writes", f.Late)
	if f.Slow > 0 {
		parts = append(parts, "slow by "+clock(2*f.Slow))
	}
	return strings.Join(parts, ", ")
}

// leaseBands are the times at which somebody holds the lease.
func leaseBands(h *world.History) []band {
	holder := -1
	return bandsOf(h, func(c world.Change) bool {
		x, ok := c.What.(world.Held)
		if ok {
			holder = x.Node
		}
		return ok
	}, func() (string, string) {
		if holder < 0 {
			return "", ""
		}
		return h.Nodes[holder], h.Nodes[holder] + " holds the lease"
	})
}

// spanBands are given spans, each with its length.
func spanBands(spans []span, title string) []band {
	all := make([]band, 0, len(spans))
	for _, s := range spans {
		d := clock(s.to - s.from)
		all = append(all, band{s, d, title + " for " + d})
	}
	return all
}

// clock writes a time as people read it: to the microsecond below a millisecond, else to the millisecond.
func clock(d time.Duration) string {
	if d < time.Millisecond {
		return d.Round(time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}

// stamp writes a time for a column: always to the millisecond.
func stamp(d time.Duration) string {
	d = d.Round(time.Millisecond)
	return fmt.Sprintf("%d:%06.3f", d/time.Minute, (d % time.Minute).Seconds())
}
