package sbr

import "slices"

type set map[ID]struct{}

func (s set) has(id ID) bool { _, ok := s[id]; return ok }

func (s set) add(id ID) { s[id] = struct{}{} }

// places is a set of members by their places in View.Members. Nil is empty.
type places []bool

func (p places) has(i int) bool { return i < len(p) && p[i] }

// IndirectlyConnected lists the members that some members reach and others do not, in address order.
func (v *View) IndirectlyConnected() (ids []ID) {
	for i, is := range v.indirect().members {
		if is {
			ids = append(ids, v.Members[i].ID)
		}
	}
	return ids
}

// indirect are the indirectly connected members, by the two rules of the reference; zero: there are none.
type indirect struct {
	crossed places // members that report a member and are reported
	bridged places // both ends of each report whose subject shares our view
	members places // members that are crossed or bridged
	links   []link
}

// link is a report between two members, by their places in View.Members.
type link struct{ observer, subject int }

// indirect reads the reports. As in the reference only those between two members count, none about oneself.
func (v *View) indirect() (in indirect) {
	if len(v.Reports) == 0 {
		return in
	}
	place, shares := v.place(), make(set, len(v.SeenBy))
	if !v.mayBeIndirect(place) {
		return in
	}
	for _, id := range v.SeenBy {
		shares.add(id)
	}
	n := len(v.Members)
	in = indirect{crossed: make(places, n), bridged: make(places, n), members: make(places, n),
		links: make([]link, 0, len(v.Reports))}
	reports, reported := make(places, n), make(places, n)
	for _, r := range v.Reports {
		o, known := place[r.Observer]
		s, knownToo := place[r.Subject]
		if !known || !knownToo || o == s {
			continue
		}
		in.links = append(in.links, link{o, s})
		reports[o], reported[s] = true, true
		if shares.has(r.Subject) {
			in.bridged[o], in.bridged[s] = true, true
		}
	}
	for i := range n {
		in.crossed[i] = reports[i] && reported[i]
		in.members[i] = in.crossed[i] || in.bridged[i]
	}
	if !slices.Contains(in.members, true) {
		return indirect{}
	}
	return in
}

// mayBeIndirect reports whether a reported member also reports, or shares this view: none does in a clean
// cut.
func (v *View) mayBeIndirect(place map[ID]int) bool {
	speak := v.observers(place)
	for _, id := range v.SeenBy {
		if i, known := place[id]; known {
			speak[i] = true
		}
	}
	return slices.ContainsFunc(v.Reports, func(r Report) bool {
		i, known := place[r.Subject]
		return known && speak[i]
	})
}

// secondPass asks the strategy about what is left of the unreachability without the indirectly connected
// members, and returns them and the members that the answer downs. ok is false when the answer is about such
// members again.
func (v *View) secondPass(s Strategy) (down places, ok bool) {
	in := v.indirect()
	if !v.unreachableBeside(in.members) {
		return in.members, true
	}
	rest := v.without(&in)
	again := s.Decide(&rest)
	if again.Kind.Indirect() {
		return nil, false
	}
	down = make(places, len(v.Members))
	for i := range rest.Members {
		down[i] = in.members.has(i) || again.Kind.downs(&rest.Members[i], false)
	}
	return down, true
}

func (v *View) unreachableBeside(in places) bool {
	for i := range v.Members {
		if v.Members[i].Unreachable && !in.has(i) {
			return true
		}
	}
	return false
}

// without returns the view in which only the subjects of clean reports are unreachable, and the unreachable
// members that no member reports: for those this member's view is the only source.
func (v *View) without(in *indirect) View {
	rest := View{Self: v.Self, Members: slices.Clone(v.Members), SeenBy: v.SeenBy, index: v.index}
	for i := range rest.Members {
		m := &rest.Members[i]
		m.Unreachable = m.Unreachable && m.Downable() && !in.members.has(i)
	}
	for _, l := range in.links {
		rest.Members[l.subject].Unreachable = false
	}
	gone := v.agreedGone(in)
	for _, l := range in.links {
		if v.clean(in, l) && !gone.has(l.observer) {
			rest.Members[l.subject].Unreachable = true
			rest.Reports = append(rest.Reports, Report{v.Members[l.observer].ID, v.Members[l.subject].ID})
		}
	}
	return rest
}

// clean reports whether a link speaks of a clean cut: none of its ends is on its way out, and they are not
// both indirectly connected by the same rule (as in Akka and Pekko).
func (v *View) clean(in *indirect, l link) bool {
	o, s := l.observer, l.subject
	return v.Members[o].Downable() && v.Members[s].Downable() &&
		!(in.crossed[o] && in.crossed[s]) && !(in.bridged[o] && in.bridged[s])
}

// agreedGone are the observers that are unreachable, as every reachable member reports: what they report does
// not count (design deviation 11, akka.net#7141). A report counts once, however often it is listed.
func (v *View) agreedGone(in *indirect) places {
	reachable := 0
	for i := range v.Members {
		if !v.Members[i].Unreachable {
			reachable++
		}
	}
	gone, by, heard := make(places, len(v.Members)), make([]int, len(v.Members)), make(map[link]bool)
	for _, l := range in.links {
		o, s := &v.Members[l.observer], &v.Members[l.subject]
		if !in.crossed[l.subject] || o.Unreachable || !s.Unreachable || heard[l] {
			continue
		}
		heard[l] = true
		by[l.subject]++
		gone[l.subject] = by[l.subject] == reachable
	}
	return gone
}
