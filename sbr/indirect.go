package sbr

type set map[ID]struct{}

func (s set) has(id ID) bool { _, ok := s[id]; return ok }

// HasIndirectlyConnected reports whether some member can be reached by some members but not by others.
func (v *View) HasIndirectlyConnected() bool { return v.conflicts().indirect != nil }

// IndirectlyConnected lists the indirectly connected members in address order.
func (v *View) IndirectlyConnected() []ID {
	var ids []ID
	for i, is := range v.conflicts().indirect {
		if is {
			ids = append(ids, v.Members[i].ID)
		}
	}
	return ids
}

// link is a report between two members, by their places in View.Members, and its own place in View.Reports.
type link struct{ observer, subject, at int }

// mark is what the reports say of a member.
type mark uint8

const (
	observes mark = 1 << iota // reports somebody
	observed                  // is reported
	bridged                   // one end of a report whose subject shares our view
	crossed  = observes | observed
)

// conflicts is what the reports of a view say together. The slices are by place in View.Members.
type conflicts struct {
	links    []link
	marks    []mark
	indirect []bool // nil: nobody is indirectly connected
}

// conflicts reads the reports. As in the reference only those between two members count, nobody can report itself, and a member is indirectly
// connected that reports and is reported, or is one end of a report whose subject shares our view.
func (v *View) conflicts() (c conflicts) {
	if len(v.Reports) == 0 {
		return c
	}
	place := make(map[ID]int, len(v.Members))
	for i := range v.Members {
		place[v.Members[i].ID] = i
	}
	shares := make(set, len(v.SeenBy))
	for _, id := range v.SeenBy {
		shares[id] = struct{}{}
	}
	c.marks = make([]mark, len(v.Members))
	for at, r := range v.Reports {
		o, known := place[r.Observer]
		s, knownToo := place[r.Subject]
		if !known || !knownToo || o == s {
			continue
		}
		c.links = append(c.links, link{o, s, at})
		c.marks[o] |= observes
		c.marks[s] |= observed
		if shares.has(r.Subject) {
			c.marks[o] |= bridged
			c.marks[s] |= bridged
		}
	}
	for i, m := range c.marks {
		if m&crossed != crossed && m&bridged == 0 {
			continue
		}
		if c.indirect == nil {
			c.indirect = make([]bool, len(v.Members))
		}
		c.indirect[i] = true
	}
	return c
}

// secondPass asks the strategy about what is left of the unreachability once the indirectly connected members are left out, and
// returns them together with those that the answer downs. ok is false when it is about indirectly connected members again.
func (v *View) secondPass(s Strategy) (widened []bool, ok bool) {
	c := v.conflicts()
	if !v.unreachableBeside(c.indirect) {
		return c.indirect, true
	}
	rest := v.withoutIndirect(&c)
	again := s.Decide(&rest)
	if again.Kind.Indirect() {
		return nil, false
	}
	widened = make([]bool, len(v.Members))
	for i := range rest.Members {
		widened[i] = at(c.indirect, i) || again.Kind.downs(&rest.Members[i], false)
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
func (v *View) withoutIndirect(c *conflicts) View {
	w := View{Self: v.Self, Members: make([]Member, len(v.Members)), SeenBy: v.SeenBy}
	copy(w.Members, v.Members)
	for i := range w.Members {
		m := &w.Members[i]
		m.Unreachable = m.Unreachable && m.Downable() && !at(c.indirect, i)
	}
	if c.indirect == nil {
		return w // a strategy that speaks of indirectly connected members where there are none
	}
	for _, l := range c.links {
		w.Members[l.subject].Unreachable = false
	}
	gone := v.agreedUnreachable(c)
	for _, l := range c.links {
		if v.clean(c, l) && !gone[l.observer] {
			w.Members[l.subject].Unreachable = true
			w.Reports = append(w.Reports, v.Reports[l.at])
		}
	}
	return w
}

// clean reports whether a link speaks of a clean cut: not one with an end that is on its way out, and not one with both ends indirectly
// connected by the same rule (as in Akka and Pekko, whose "seen" are the ends of reports, not everybody who shares the view).
func (v *View) clean(c *conflicts, l link) bool {
	o, s := c.marks[l.observer], c.marks[l.subject]
	switch {
	case !v.Members[l.observer].Downable() || !v.Members[l.subject].Downable():
		return false
	case o&crossed == crossed && s&crossed == crossed:
		return false
	default:
		return o&bridged == 0 || s&bridged == 0
	}
}

// agreedUnreachable tells which unreachable members every reachable member reports: what they report does not count (design deviation 11,
// akka.net#7141). A report counts once, however often it is listed.
func (v *View) agreedUnreachable(c *conflicts) []bool {
	reachable := 0
	for i := range v.Members {
		if !v.Members[i].Unreachable {
			reachable++
		}
	}
	by, gone := make([]int, len(v.Members)), make([]bool, len(v.Members))
	heard := make(map[[2]int]bool, len(c.links))
	for _, l := range c.links {
		pair := [2]int{l.observer, l.subject}
		if v.Members[l.observer].Unreachable || !v.Members[l.subject].Unreachable || heard[pair] {
			continue
		}
		heard[pair] = true
		by[l.subject]++
		gone[l.subject] = by[l.subject] == reachable
	}
	return gone
}
