package sbr

import (
	"slices"
	"strings"
)

// Report is one observation: Observer cannot reach Subject.
type Report struct {
	Observer, Subject ID
}

// compareReports orders reports by observer, then by subject.
func compareReports(a, b Report) int {
	if a.Observer == b.Observer {
		return strings.Compare(string(a.Subject), string(b.Subject))
	}
	return strings.Compare(string(a.Observer), string(b.Observer))
}

// View is everything a strategy may know: the members as one of them sees them, at one moment.
// Members is ordered by CompareMembers; NewView makes it so. A View is read-only once it is built.
type View struct {
	// Self is the incarnation that looks.
	Self ID
	// Members are all known members in address order.
	Members []Member
	// Reports say which member cannot reach which, from every observer whose reports arrive here. Without
	// reports no member is indirectly connected.
	Reports []Report
	// SeenBy are the members that share Self's view (reference: the gossip's seen-by set). Nil: unknown.
	SeenBy []ID

	// index has the place of each member; nil: it is not known.
	index map[ID]int
}

// place returns where each member stands in Members.
func (v *View) place() map[ID]int {
	if v.index != nil {
		return v.index
	}
	place := make(map[ID]int, len(v.Members))
	for i := range v.Members {
		place[v.Members[i].ID] = i
	}
	return place
}

// NewView orders a copy of members and returns the view of self.
func NewView(self ID, members []Member, reports []Report, seenBy []ID) View {
	sorted := slices.Clone(members)
	slices.SortFunc(sorted, func(a, b Member) int { return CompareMembers(&a, &b) })
	return View{Self: self, Members: sorted, Reports: reports, SeenBy: seenBy}
}

// Count is how many members of one side have a role. Exiting and downed members count nowhere.
type Count struct {
	Up, Leaving int
	// Joining are the joining and the weakly-up ones: no base members, but perhaps up in the other side's
	// eyes.
	Joining int
}

// Base is how many of them a rule counts.
func (c Count) Base() int { return c.Up + c.Leaving }

// Count counts the members that have role on this side and on the other one.
func (v *View) Count(role string) (here, there Count) {
	for i := range v.Members {
		m, side := &v.Members[i], &here
		if m.Unreachable {
			side = &there
		}
		if !m.HasRole(role) {
			continue
		}
		switch m.Status {
		case Up:
			side.Up++
		case Leaving:
			side.Leaving++
		case Joining, WeaklyUp:
			side.Joining++
		}
	}
	return here, there
}

// is reports whether the member has role and one of the statuses; without statuses, whether it is a base
// member.
func (m *Member) is(role string, among []Status) bool {
	if len(among) == 0 {
		return m.counted() && m.HasRole(role)
	}
	return slices.Contains(among, m.Status) && m.HasRole(role)
}

// Lowest returns the first member in address order that has role and one of the statuses, nil if there is
// none. Without statuses it is looked for among the base members (up and leaving).
func (v *View) Lowest(role string, among ...Status) *Member {
	for i := range v.Members {
		if m := &v.Members[i]; m.is(role, among) {
			return m
		}
	}
	return nil
}

// Oldest returns the oldest of the members among which Lowest returns the first.
func (v *View) Oldest(role string, among ...Status) *Member {
	var oldest *Member
	for i := range v.Members {
		// Among members of one age the first stays: they come in address order, which is what ties go by.
		if m := &v.Members[i]; m.is(role, among) && (oldest == nil || m.Born != oldest.Born && Older(m, oldest)) {
			oldest = m
		}
	}
	return oldest
}

// Leader returns who leads Self's side: the first reachable member that is up or leaving; where there is
// none, the first by status (weakly-up, joining, exiting) and then by address. Nil in an empty view.
func (v *View) Leader() *Member {
	var best *Member
	for i := range v.Members {
		m := &v.Members[i]
		if m.Status == Down || m.Unreachable && m.ID != v.Self {
			continue
		}
		if m.counted() {
			return m
		}
		if best == nil || slices.Index(leaders, m.Status) < slices.Index(leaders, best.Status) {
			best = m
		}
	}
	return best
}

// leaders is the reference's order for a side without an up member. Downed members never lead.
var leaders = []Status{WeaklyUp, Joining, Exiting}

// Responsible reports whether Self would act on a decision: it leads its side and has been seen up.
func (v *View) Responsible() bool {
	l := v.Leader()
	return l != nil && l.ID == v.Self && l.Status != Joining
}
