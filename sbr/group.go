package sbr

import (
	"math/bits"
	"slices"
)

// Group are the members that stay where a cut is not clean (design rule 17): a largest set of heard members
// without a report that one cannot reach another. The largest set has the most counted members with the role,
// then the most members, then the lowest addresses. All lists are in address order.
type Group struct {
	// Members stay. Heard are the candidates: this member, the members that it reaches, and the unreachable
	// members whose reports arrive here.
	Members, Heard []ID
	// Broken are the links between two heard members that a report says are broken, each once.
	Broken [][2]ID
	// Kept is how many counted members with the role stay, Gone how many are not heard at all.
	Kept, Gone int
	// Lowest says that the lowest counted address with the role stays.
	Lowest bool
	// Exact is false when the search was given up: then the group is the best that was found. The bound is a
	// count, so that every member gives up at the same place.
	Exact bool
}

// LargestGroup returns the group of members with role that stays, or nil where the cut is clean: then every
// member that is heard can be reached, and no link between two of them is broken. The same reports give the
// same group, whichever of its members looks.
func (v *View) LargestGroup(role string) *Group {
	place := v.place()
	heard, disputed, within := v.heard(place)
	if !disputed && !within {
		return nil
	}
	g, gr, number := &Group{Exact: true}, graph{}, make([]int, len(v.Members))
	for i := range v.Members {
		m := &v.Members[i]
		counted := m.counted() && m.HasRole(role)
		switch {
		case heard.has(i):
			number[i] = len(g.Heard)
			g.Heard = append(g.Heard, m.ID)
			gr.counted = append(gr.counted, counted)
		case counted:
			g.Gone++
		}
	}
	gr.near = make([]bitset, len(g.Heard))
	for _, r := range v.Reports {
		a, known := place[r.Observer]
		b, knownToo := place[r.Subject]
		if known && knownToo && heard.has(a) && heard.has(b) && a != b {
			gr.join(number[a], number[b])
		}
	}
	ends := 0
	for _, near := range gr.near {
		n, _ := near.common(near)
		ends += n
	}
	if !disputed && ends == 0 {
		return nil
	}
	g.Broken = make([][2]ID, 0, ends/2)
	for a, near := range gr.near {
		for b := range near.each {
			if a < b {
				g.Broken = append(g.Broken, [2]ID{g.Heard[a], g.Heard[b]})
			}
		}
	}
	var keep bitset
	keep, g.Exact = gr.independent()
	for i := range keep.each {
		g.Members = append(g.Members, g.Heard[i])
		if gr.counted[i] {
			g.Kept++
		}
	}
	if lowest := v.Lowest(role); lowest != nil {
		g.Lowest = slices.Contains(g.Members, lowest.ID)
	}
	return g
}

// heard returns the members that may stay: self, those that it reaches, and those whose reports arrive;
// whether one of them is unreachable; and whether any report is about one of them, which none is in a clean
// cut. place is where each member stands.
func (v *View) heard(place map[ID]int) (heard places, disputed, within bool) {
	heard = v.observers(place)
	for i := range v.Members {
		m := &v.Members[i]
		heard[i] = m.Downable() && (m.ID == v.Self || !m.Unreachable || heard[i])
		disputed = disputed || heard[i] && m.Unreachable && m.ID != v.Self
	}
	return heard, disputed, slices.ContainsFunc(v.Reports, func(r Report) bool {
		i, known := place[r.Subject]
		return !known || heard[i]
	})
}

// observers are the members that report a member.
func (v *View) observers(place map[ID]int) places {
	observers := make(places, len(v.Members))
	for i, r := range v.Reports {
		if i > 0 && r.Observer == v.Reports[i-1].Observer {
			continue
		}
		if o, known := place[r.Observer]; known {
			observers[o] = true
		}
	}
	return observers
}

// graph is the conflict graph: an edge joins two members that a report says do not reach each other. Members
// have the numbers of their address order.
type graph struct {
	counted []bool
	near    []bitset // by member; nil without an edge
}

func (g *graph) join(a, b int) {
	for _, at := range [...][2]int{{a, b}, {b, a}} {
		if g.near[at[0]] == nil {
			g.near[at[0]] = newBitset(len(g.near))
		}
		g.near[at[0]].set(at[1])
	}
}

// independent returns the best set without an edge. Components of the graph are independent of each other,
// and a member without an edge always stays.
func (g *graph) independent() (keep bitset, exact bool) {
	keep, exact = newBitset(len(g.near)), true
	seen := newBitset(len(g.near))
	for first := range g.near {
		if seen.has(first) {
			continue
		}
		seen.set(first)
		component := []int{first}
		for i := 0; i < len(component); i++ {
			for b := range g.near[component[i]].each {
				if !seen.has(b) {
					seen.set(b)
					component = append(component, b)
				}
			}
		}
		slices.Sort(component)
		s := g.search(component)
		best := s.solve()
		exact = exact && s.steps <= groupSteps
		for i, member := range component {
			if best.has(i) {
				keep.set(member)
			}
		}
	}
	return keep, exact
}

// groupSteps bounds the search for the best set of one component, in words of bits looked at: at most a few
// tenths of a second. Components of up to 80 members are always searched to the end.
const groupSteps = 1 << 26

// search looks for the best set of one component: branch and bound. Members have numbers of their own here,
// in address order as before.
type search struct {
	near   []bitset
	weight []int
	steps  int
	best   bitset // the best set that was found
	worth  int    // its weight

	left, clique bitset // of use within bound only
}

func (g *graph) search(component []int) *search {
	n := len(component)
	s := &search{near: make([]bitset, n), weight: make([]int, n), left: newBitset(n), clique: newBitset(n)}
	for i, a := range component {
		s.near[i] = newBitset(n)
		for j, b := range component {
			if g.near[a].has(b) {
				s.near[i].set(j)
			}
		}
		s.weight[i] = 1
		if g.counted[a] {
			s.weight[i] = n + 1 // one counted member is worth more than all others together
		}
	}
	return s
}

// solve finds the best weight first, and then its set with the lowest members: each in turn is in it if a
// best set has it beside those that are in it already.
func (s *search) solve() bitset {
	n := len(s.weight)
	s.worth = -1
	all := newBitset(n)
	for i := range n {
		all.set(i)
	}
	s.branch(all.clone(), newBitset(n), 0)
	target := s.worth
	set, rest, weight := newBitset(n), all, 0
	for i := range n {
		if !rest.has(i) || s.steps > groupSteps {
			continue
		}
		rest.clear(i)
		if !s.best.has(i) {
			// The set at hand has none of the lower members that can be had, but not this one: look for one
			// that has.
			with, without := set.clone(), rest.minus(s.near[i])
			with.set(i)
			s.worth = target - 1
			s.branch(without, with, weight+s.weight[i])
			if s.worth < target {
				s.worth = target
				continue
			}
		}
		set.set(i)
		rest, weight = rest.minus(s.near[i]), weight+s.weight[i]
	}
	return s.best
}

// branch looks for a better set among those that have the members of chosen, whose weight is given, and some
// of rest, none of which is near a chosen one. Both sets are its own.
func (s *search) branch(rest, chosen bitset, weight int) {
	for s.steps <= groupSteps {
		pick, weight2 := s.reduce(rest, chosen, weight)
		weight = weight2
		if pick < 0 {
			if weight > s.worth {
				s.best, s.worth = chosen, weight
			}
			return
		}
		if weight+s.bound(rest) <= s.worth {
			return
		}
		// With it first, then without it.
		rest.clear(pick)
		with := chosen.clone()
		with.set(pick)
		s.branch(rest.minus(s.near[pick]), with, weight+s.weight[pick])
	}
}

// reduce chooses the members that some best set surely has: those near no other, or near a single member that
// weighs no more. It returns the new weight, and the member that is near the most others; -1: no member is
// left.
func (s *search) reduce(rest, chosen bitset, weight int) (pick, total int) {
	for {
		pick, most, again := -1, -1, false
		for i := range rest.each {
			degree, only := rest.common(s.near[i])
			s.steps += len(rest)
			if degree == 0 || degree == 1 && s.weight[i] >= s.weight[only] {
				chosen.set(i)
				weight += s.weight[i]
				rest.clear(i)
				if degree == 1 {
					rest.clear(only)
				}
				again = true
				continue
			}
			if degree > most {
				pick, most = i, degree
			}
		}
		if !again {
			return pick, weight
		}
	}
}

// bound is what rest can add at most: of members that are all near each other a set has one. They are put
// together greedily.
func (s *search) bound(rest bitset) (bound int) {
	left, clique := s.left, s.clique
	copy(left, rest)
	for i := range left.each {
		best := s.weight[i]
		left.clear(i)
		copy(clique, left)
		clique.intersect(s.near[i])
		for j := range clique.each {
			best = max(best, s.weight[j])
			left.clear(j)
			clique.intersect(s.near[j])
		}
		s.steps += 2 * len(rest)
		bound += best
	}
	return bound
}

// bitset is a set of small numbers. Iterating sees what is cleared meanwhile as gone.
type bitset []uint64

const wordBits = 64

func newBitset(n int) bitset { return make(bitset, (n+wordBits-1)/wordBits) }

func (b bitset) has(i int) bool { return b != nil && b[i/wordBits]&(1<<(i%wordBits)) != 0 }
func (b bitset) set(i int)      { b[i/wordBits] |= 1 << (i % wordBits) }
func (b bitset) clear(i int)    { b[i/wordBits] &^= 1 << (i % wordBits) }
func (b bitset) clone() bitset  { return slices.Clone(b) }

// each goes through the numbers from the lowest.
func (b bitset) each(yield func(int) bool) {
	for w := range b {
		for low := uint64(0); ; {
			word := b[w] &^ low
			if word == 0 {
				break
			}
			i := bits.TrailingZeros64(word)
			if !yield(w*wordBits + i) {
				return
			}
			low = 1<<(i+1) - 1 // for i = 63 this is all of them
		}
	}
}

// common returns how many numbers two sets share, and one of them.
func (b bitset) common(o bitset) (n, one int) {
	for w := range b {
		if x := b[w] & o[w]; x != 0 {
			n += bits.OnesCount64(x)
			one = w*wordBits + bits.TrailingZeros64(x)
		}
	}
	return n, one
}

func (b bitset) intersect(o bitset) {
	for w := range b {
		b[w] &= o[w]
	}
}

func (b bitset) minus(o bitset) bitset {
	c := b.clone()
	for w := range c {
		c[w] &^= o[w]
	}
	return c
}
