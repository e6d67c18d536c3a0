package sbr

import "slices"

type set map[ID]struct{}

func (s set) has(id ID) bool { _, ok := s[id]; return ok }

// HasIndirectlyConnected reports whether some member can be reached by some members but not by others.
func (v *View) HasIndirectlyConnected() bool { return v.graph().indirect() }

// IndirectlyConnected lists the indirectly connected members in address order.
func (v *View) IndirectlyConnected() []ID {
	if len(v.SeenBy) == 0 && !Crossed(v.Reports) {
		return nil
	}
	var ids []ID
	for i, ind := range v.graph().byMember() {
		if ind {
			ids = append(ids, v.Members[i].ID)
		}
	}
	return ids
}

// Crossed reports whether somebody both reports and is reported. Where nobody is, and nothing is known of who shares a view, nobody
// is indirectly connected: a quick answer for the common case, a clean cut, in which it allocates nothing.
func Crossed(reports []Report) bool {
	var seen [512]uint64 // a bit for each observer, by its last letters: most who are reported need no better look
	bit := func(id ID) (word int, mask uint64) {
		h := uint64(len(id))
		for i := max(0, len(id)-8); i < len(id); i++ {
			h = (h ^ uint64(id[i])) * 1099511628211
		}
		h ^= h >> 32
		return int(h >> 6 & 511), 1 << (h & 63)
	}
	for i := range reports {
		if i == 0 || reports[i].Observer != reports[i-1].Observer {
			w, mask := bit(reports[i].Observer)
			seen[w] |= mask
		}
	}
	var observers set
	for i, looked := 0, 0; i < len(reports); i++ {
		id := reports[i].Subject
		if w, mask := bit(id); seen[w]&mask == 0 {
			continue
		}
		if looked++; looked <= fewLooks {
			if slices.ContainsFunc(reports, func(r Report) bool { return r.Observer == id }) {
				return true
			}
			continue
		}
		if observers == nil {
			observers = make(set)
			for _, r := range reports {
				observers[r.Observer] = struct{}{}
			}
		}
		if observers.has(id) {
			return true
		}
	}
	return false
}

// fewLooks is how often the reports are searched before a list of the observers is worth its making.
const fewLooks = 16

// link is a report between two ends; an end is a number in the order in which the reports name them.
type link struct {
	observer, subject int32
	at                int32 // place in View.Reports
}

// mark is what the reports say of one end.
type mark uint8

const (
	observes mark = 1 << iota // reports somebody
	observed                  // is reported
	shares                    // shares our view
	bridged                   // one end of a report whose subject shares our view
)

// crossed: reports somebody and is reported.
func (m mark) crossed() bool { return m&(observes|observed) == observes|observed }

// indirect is the rule of Akka and Pekko.
func (m mark) indirect() bool { return m.crossed() || m&bridged != 0 }

// graph is the reports of a view with the IDs replaced by numbers, so that each ID is looked up once in a decision.
// The nil graph has no reports.
type graph struct {
	of    *View // what was read
	links []link
	marks []mark
	// place is where an end stands in View.Members, -1 for a stranger. Nil as long as nobody is indirectly connected.
	place []int32
}

// reads reports whether g is still true of v: a strategy may have made a view of its own from the one it was given.
func (g *graph) reads(v *View) bool {
	return g != nil && same(g.of.Members, v.Members) && same(g.of.Reports, v.Reports) && same(g.of.SeenBy, v.SeenBy)
}

func same[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// graph reads the reports. As in the reference only those between two members count; nobody can report itself.
func (v *View) graph() *graph {
	switch {
	case len(v.Reports) == 0:
		return nil
	case v.read.reads(v):
		return v.read
	}
	g, number := v.number()
	for _, id := range v.SeenBy {
		if n, ok := number[id]; ok {
			g.marks[n] |= shares
		}
	}
	g.mark()
	// Leaving a report out never makes a member indirectly connected. So a clean cut, the common case, needs no list of members.
	if g.indirect() {
		g.locate(number)
	}
	return g
}

// readOnce returns the view with its reports read, so that nobody who is given it reads them again. v itself is not changed.
func (v *View) readOnce() *View {
	if len(v.Reports) == 0 {
		return v
	}
	w := *v
	w.read = v.graph()
	return &w
}

// number gives each ID that the reports name a number.
func (v *View) number() (*graph, map[ID]int32) {
	g := &graph{of: v, links: make([]link, 0, len(v.Reports))}
	number := make(map[ID]int32, min(2*len(v.Reports), len(v.Members)))
	end := func(id ID) int32 {
		n, ok := number[id]
		if !ok {
			n = int32(len(number))
			number[id] = n
		}
		return n
	}
	// Reports come in runs, of one observer or about one subject: what the one before named need not be looked up again.
	var last Report
	var l link
	for i, r := range v.Reports {
		if r.Observer == r.Subject {
			continue
		}
		if r.Observer != last.Observer || len(g.links) == 0 {
			l.observer = end(r.Observer)
		}
		if r.Subject != last.Subject || len(g.links) == 0 {
			l.subject = end(r.Subject)
		}
		l.at, last = int32(i), r
		g.links = append(g.links, l)
	}
	g.marks = make([]mark, len(number))
	return g, number
}

// mark works the marks out anew from the links; who shares our view stays.
func (g *graph) mark() {
	for n := range g.marks {
		g.marks[n] &= shares
	}
	for _, l := range g.links {
		g.marks[l.observer] |= observes
		g.marks[l.subject] |= observed
		if g.marks[l.subject]&shares != 0 {
			g.marks[l.observer] |= bridged
			g.marks[l.subject] |= bridged
		}
	}
}

// locate finds the ends among the members and drops the links of strangers.
func (g *graph) locate(number map[ID]int32) {
	g.place = make([]int32, len(number))
	for n := range g.place {
		g.place[n] = -1
	}
	for i := range g.of.Members {
		if n, ok := number[g.of.Members[i].ID]; ok {
			g.place[n] = int32(i)
		}
	}
	kept := g.links[:0]
	for _, l := range g.links {
		if g.place[l.observer] >= 0 && g.place[l.subject] >= 0 {
			kept = append(kept, l)
		}
	}
	if len(kept) < len(g.links) {
		g.links = kept
		g.mark()
	}
}

// indirect reports whether anybody is indirectly connected.
func (g *graph) indirect() bool {
	if g == nil {
		return false
	}
	for _, m := range g.marks {
		if m.indirect() {
			return true
		}
	}
	return false
}

// byMember tells of each member, by its place in the view, whether it is indirectly connected. Nil when nobody is.
func (g *graph) byMember() []bool {
	if !g.indirect() {
		return nil
	}
	ind := make([]bool, len(g.of.Members))
	for n, m := range g.marks {
		if p := g.place[n]; p >= 0 {
			ind[p] = m.indirect()
		}
	}
	return ind
}

// secondPass asks the strategy about what is left of the unreachability once the indirectly connected members are left out, and
// returns them together with those that the answer downs. ok is false when it is about indirectly connected members again.
func (v *View) secondPass(s Strategy, ind []bool) (widened []bool, ok bool) {
	if !v.unreachableBeside(ind) {
		return ind, true
	}
	rest := v.withoutIndirect(ind)
	c := s.Decide(&rest)
	if c.Kind.Indirect() {
		return nil, false
	}
	widened = make([]bool, len(v.Members))
	for i := range rest.Members {
		widened[i] = at(ind, i) || c.Kind.downs(&rest.Members[i], false)
	}
	return widened, true
}

func at(flags []bool, i int) bool { return flags != nil && flags[i] }

func (v *View) unreachableBeside(ind []bool) bool {
	for i := range v.Members {
		if v.Members[i].Unreachable && !at(ind, i) {
			return true
		}
	}
	return false
}

// withoutIndirect returns the view in which only the subjects of clean reports are unreachable, together with the members that
// are unreachable although nobody reports them: for those our own word is all there is (in the reference it is always a report).
func (v *View) withoutIndirect(ind []bool) View {
	w := View{Self: v.Self, Members: make([]Member, len(v.Members)), SeenBy: v.SeenBy}
	copy(w.Members, v.Members)
	g := v.graph()
	for i := range w.Members {
		m := &w.Members[i]
		m.Unreachable = m.Unreachable && m.Downable() && !at(ind, i)
	}
	if !g.indirect() {
		return w // a strategy that speaks of indirectly connected members where there are none
	}
	for _, l := range g.links {
		w.Members[g.place[l.subject]].Unreachable = false
	}
	clean := v.clean(g)
	w.Reports = make([]Report, 0, len(clean))
	for _, l := range clean {
		w.Members[g.place[l.subject]].Unreachable = true
		w.Reports = append(w.Reports, v.Reports[l.at])
	}
	w.read = &graph{of: &w, links: clean, marks: g.marks, place: g.place}
	w.read.mark()
	return w
}

// clean are the links that speak of a clean cut. Left out are those with an end that is on its way out, with both ends
// indirectly connected by the same rule (as in Akka and Pekko, whose "seen" are the ends of reports, not everybody who shares
// the view), and those of an observer that every reachable member calls unreachable (design deviation 11, akka.net#7141).
func (v *View) clean(g *graph) []link {
	gone := v.agreedUnreachable(g)
	kept := make([]link, 0, len(g.links))
	for _, l := range g.links {
		o, s := g.marks[l.observer], g.marks[l.subject]
		switch {
		case !v.Members[g.place[l.observer]].Downable() || !v.Members[g.place[l.subject]].Downable():
		case o.crossed() && s.crossed():
		case o&bridged != 0 && s&bridged != 0:
		case at(gone, int(l.observer)):
		default:
			kept = append(kept, l)
		}
	}
	return kept
}

// agreedUnreachable tells which ends are unreachable members that every reachable member reports. Nil when there are none.
func (v *View) agreedUnreachable(g *graph) []bool {
	reachable := 0
	for i := range v.Members {
		if !v.Members[i].Unreachable {
			reachable++
		}
	}
	by := make([]int, len(g.marks))
	enough := false
	for _, l := range g.links {
		if v.across(g, l) {
			by[l.subject]++
			enough = enough || by[l.subject] == reachable
		}
	}
	if !enough {
		return nil
	}
	// Count anew: a report counts once, however often it is listed.
	clear(by)
	gone := make([]bool, len(g.marks))
	heard := make(map[[2]int32]bool)
	for _, l := range g.links {
		if pair := [2]int32{l.observer, l.subject}; v.across(g, l) && !heard[pair] {
			heard[pair] = true
			by[l.subject]++
			gone[l.subject] = by[l.subject] == reachable
		}
	}
	return gone
}

// across reports whether a link goes from this side to the other.
func (v *View) across(g *graph, l link) bool {
	return !v.Members[g.place[l.observer]].Unreachable && v.Members[g.place[l.subject]].Unreachable
}
