package sbr

import "slices"

// Report is one observation: Observer cannot reach Subject.
type Report struct {
	Observer, Subject ID
}

// View is everything a strategy may know: the members as one of them sees them, at one moment.
// Members is ordered by CompareMembers; NewView makes it so. A View is read-only once it is built.
type View struct {
	// Self is the incarnation that looks.
	Self ID
	// Members are all known members in address order.
	Members []Member
	// Reports say who cannot reach whom, from every observer that could make itself heard.
	// Without reports nobody is indirectly connected.
	Reports []Report
	// SeenBy are the members that share Self's view (reference: the gossip's seen-by set). Nil where the cluster does not know.
	SeenBy []ID
}

// NewView orders a copy of members and returns the view of self.
func NewView(self ID, members []Member, reports []Report, seenBy []ID) View {
	sorted := slices.Clone(members)
	slices.SortFunc(sorted, func(a, b Member) int { return CompareMembers(&a, &b) })
	return View{Self: self, Members: sorted, Reports: reports, SeenBy: seenBy}
}

// Count is how many members of one side a rule counts.
type Count struct {
	Reachable, Unreachable int
}

// Total is both sides together.
func (c Count) Total() int { return c.Reachable + c.Unreachable }

// Count counts the base members (up and leaving) that have role.
func (v *View) Count(role string) (c Count) {
	for i := range v.Members {
		if m := &v.Members[i]; m.counted() && m.HasRole(role) {
			c.add(m.Unreachable)
		}
	}
	return c
}

func (c *Count) add(unreachable bool) {
	if unreachable {
		c.Unreachable++
	} else {
		c.Reachable++
	}
}

// Lowest returns the first base member with role in address order, nil if there is none.
func (v *View) Lowest(role string) *Member {
	for i := range v.Members {
		if m := &v.Members[i]; m.counted() && m.HasRole(role) {
			return m
		}
	}
	return nil
}

// Oldest returns the oldest base member with role, nil if there is none.
func (v *View) Oldest(role string) *Member {
	var oldest *Member
	for i := range v.Members {
		m := &v.Members[i]
		if !m.counted() || !m.HasRole(role) {
			continue
		}
		// Among members of one age the first stays: they come in address order, which is what ties go by.
		if oldest == nil || m.Born != oldest.Born && older(m, oldest) {
			oldest = m
		}
	}
	return oldest
}

// Member returns the member with that incarnation, nil if it is unknown. It takes linear time.
func (v *View) Member(id ID) *Member {
	for i := range v.Members {
		if v.Members[i].ID == id {
			return &v.Members[i]
		}
	}
	return nil
}

// Leader returns who leads Self's side: the first reachable member that is up or leaving; where there is none, the first
// by status (weakly-up, joining, exiting) and then by address. Nil in an empty view.
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
		if best == nil || leaderRank(m.Status) < leaderRank(best.Status) {
			best = m
		}
	}
	return best
}

// leaderRank is the reference's order for a side without an up member: weakly-up, joining, then exiting. Downed members never lead.
func leaderRank(s Status) int {
	switch s {
	case WeaklyUp:
		return 1
	case Joining:
		return 2
	default:
		return 3
	}
}

// Responsible reports whether Self would act on a decision: it leads its side and has been seen up.
func (v *View) Responsible() bool {
	l := v.Leader()
	return l != nil && l.ID == v.Self && l.Status != Joining
}
