package sbr

import (
	"fmt"
	"slices"
	"time"
)

// table is the membership in address order, with the counts that make a step cheap.
type table struct {
	members []Member
	index   map[ID]int
	// suspects counts the unreachable ones that may have to be downed: only they move a deadline.
	suspects int
	// awaiting counts those that are alive but not yet Up, downed those that were downed but are still here.
	awaiting, downed int
	// version counts the changes.
	version uint64
}

// suspect reports whether the member starts or prolongs a deadline: leaving members do not (design deviation
// 7), nor do members that take no part (design rule 17).
func (m *Member) suspect() bool { return m.Unreachable && m.Status <= Up && !m.apart() }

// apart reports whether the member takes no part: it runs no resolver, or has not found its cluster yet.
func (m *Member) apart() bool { return m.Status == Joining && !m.awaiting }

func (t *table) get(id ID) *Member {
	if i, ok := t.index[id]; ok {
		return &t.members[i]
	}
	return nil
}

// each goes through the members in address order.
func (t *table) each(yield func(*Member) bool) {
	for i := range t.members {
		if !yield(&t.members[i]) {
			return
		}
	}
}

// ids lists some of the members in address order.
func (t *table) ids(which func(*Member) bool) (ids []ID) {
	for m := range t.each {
		if which(m) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// change applies f to a member and keeps the counts right. f must not change what members are ordered by.
func (t *table) change(m *Member, f func(*Member)) {
	t.count(m, -1)
	f(m)
	t.count(m, 1)
}

func (t *table) count(m *Member, by int) {
	t.version++
	if m.suspect() {
		t.suspects += by
	}
	if m.awaiting && m.Status == Joining {
		t.awaiting += by
	}
	if m.Status == Down {
		t.downed += by
	}
}

// put inserts or replaces a member.
func (t *table) put(m Member) {
	if old := t.get(m.ID); old != nil && CompareMembers(old, &m) == 0 {
		t.change(old, func(old *Member) { *old = m })
		return
	}
	t.remove(m.ID)
	i, _ := slices.BinarySearchFunc(t.members, m, func(a, b Member) int { return CompareMembers(&a, &b) })
	t.members = slices.Insert(t.members, i, m)
	t.reindex(i)
	t.count(&m, 1)
}

func (t *table) remove(id ID) {
	i, ok := t.index[id]
	if !ok {
		return
	}
	t.count(&t.members[i], -1)
	t.members = slices.Delete(t.members, i, i+1)
	delete(t.index, id)
	t.reindex(i)
}

func (t *table) reindex(from int) {
	for i := from; i < len(t.members); i++ {
		t.index[t.members[i].ID] = i
	}
}

// position is how many reachable up members come before self: zero for the leader of the side.
func (t *table) position(self ID) (n int) {
	for m := range t.each {
		if m.ID == self {
			break
		}
		if m.counted() && !m.Unreachable {
			n++
		}
	}
	return n
}

// onMemberSeen inserts or updates a member. A downed incarnation stays downed (promise S2).
func (r *Resolver) onMemberSeen(m Member) {
	reported := m.Status
	m.Unreachable, m.Unlisted, m.awaiting = false, false, reported == Up || reported == WeaklyUp
	old := r.get(m.ID)
	m.mustGo = old != nil && old.mustGo
	if old != nil {
		m.since = old.since
	}
	if old == nil {
		if m.awaiting {
			m.Status = Joining
		}
		if r.isOut(&m) {
			m.Status = Down
		}
		if !r.armed {
			r.lastChange = r.now
		}
	} else {
		m.Unreachable = old.Unreachable && !old.Unlisted // listed again: it has answered a member
		m.Status = follow(old, reported)
		if m.Status == Exiting && old.Status != Exiting {
			r.lastChange = r.now
		}
		if old.Downable() && !m.Downable() {
			r.departed = true
		}
		refuted := m.suspect() && !old.suspect() // the leave of a member that cannot be reached
		if refuted || old.Unlisted && old.suspect() && !m.suspect() {
			r.unrest() // a change of reachability like any other
		}
	}
	r.put(m)
}

// follow returns the status of a known member that the cluster now reports as reported.
func follow(old *Member, reported Status) Status {
	switch {
	case old.Status == Down:
		return Down
	case reported != Up && reported != WeaklyUp:
		return reported
	case old.Status == Up || old.Status == Leaving:
		return Up // a leave that was refuted
	default:
		return Joining
	}
}

func (r *Resolver) isOut(m *Member) bool {
	_, ordered := r.orders[m.ID]
	return ordered || r.verdict.Standing(m.ID, m.Seen) == Out
}

// onMemberGone follows the end of a member in the cluster's list. Being removed from a list ends no
// suspicion: only a decision, the member itself or proof of its end does (design rule 15).
func (r *Resolver) onMemberGone(e MemberGone) {
	m := r.get(e.ID)
	if m == nil || e.ID == r.self {
		return
	}
	if m.Downable() {
		r.departed = true
	}
	if e.Ended || !m.Downable() {
		r.remove(e.ID)
		return
	}
	suspect := m.suspect()
	if !m.Unreachable {
		m.since = r.now
	}
	r.change(m, func(m *Member) {
		m.Unreachable, m.Unlisted = true, true
		m.Status = min(m.Status, Up) // a leave that is not confirmed
	})
	if !suspect {
		r.unrest()
	}
}

// dropDecided forgets the downed members that the cluster lists no longer: they need no removal.
func (r *Resolver) dropDecided() {
	if r.downed == 0 {
		return
	}
	for _, id := range r.ids(func(m *Member) bool { return m.Unlisted && m.Status == Down }) {
		r.remove(id)
	}
}

// remember makes suspects of members that an earlier process of this member could not reach.
func (r *Resolver) remember(suspects []Member) {
	for _, m := range suspects {
		if m.ID == "" || r.get(m.ID) != nil || r.isOut(&m) {
			continue
		}
		m.Status, m.Unreachable, m.Unlisted, m.awaiting, m.mustGo, m.since = Up, true, true, false, false, r.now
		r.put(m)
		r.unrest()
	}
}

// inherit makes suspects of members that another one of this side cannot reach, and that are unknown here. It
// changes no deadline: the sender's view was stable. When they started is unknown: only a later verdict, or a
// name in one, downs them.
func (r *Resolver) inherit(suspects []ID) {
	since, first, changes := r.lastChange, r.firstChange, r.changes
	for _, id := range suspects {
		if !contains(r.verdict.Down, id) {
			r.remember([]Member{{ID: id, Name: string(id), Seen: r.verdict.Token}})
			if m := r.get(id); m != nil && m.suspect() && m.since == r.now {
				m.since -= r.stableAfter()
			}
		}
	}
	r.lastChange, r.firstChange, r.changes = since, first, changes
}

// undecided lists the suspects, for members that are asked for help or ordered.
func (r *Resolver) undecided() []ID { return r.ids((*Member).suspect) }

// hears reports whether a member belongs to this side: it can be reached, or its reports arrive here although
// it cannot (design rule 17).
func (r *Resolver) hears(m *Member) bool {
	if !m.Unreachable || !KeepsLargestGroup(r.strategy) {
		return !m.Unreachable
	}
	i, _ := slices.BinarySearchFunc(r.reports, Report{Observer: m.ID}, compareReports)
	return i < len(r.reports) && r.reports[i].Observer == m.ID
}

// reachable lists the downable members on this side, without self.
func (r *Resolver) reachable() []ID {
	return r.ids(func(m *Member) bool { return m.ID != r.self && r.hears(m) && m.Downable() })
}

// onReachability handles a change of reachability. Only members that may be downed move the deadlines.
func (r *Resolver) onReachability(id ID, unreachable bool) {
	m := r.get(id)
	if m == nil || id == r.self || m.Unreachable == unreachable {
		return
	}
	r.change(m, func(m *Member) { m.Unreachable, m.since = unreachable, r.now })
	if m.Status <= Up && !m.apart() {
		r.unrest()
	}
}

// onObservations counts a change of the indirectly connected members as a change of the view: in the middle
// of a heal, which some members have observed and some not, half of the cluster seems to be so connected.
// Where the largest group stays, a report counts if it changes which members would be downed: each broken
// link between two members that would stay does. Others come and go for as long as a member that keeps some
// of its links is called failed and refutes it.
func (r *Resolver) onObservations(reports []Report) {
	var changed bool
	if KeepsLargestGroup(r.strategy) {
		if r.suspects == 0 || r.clean(r.reports) && r.clean(reports) {
			r.observe(reports)
			return
		}
		before := r.decision().Down
		r.observe(reports)
		changed = !slices.Equal(before, r.decision().Down)
	} else {
		r.observe(reports)
		v := r.view()
		ids := v.IndirectlyConnected()
		changed = !slices.Equal(ids, r.indirect)
		r.indirect = ids
	}
	if changed && r.suspects > 0 {
		r.unrest()
	}
}

// clean reports whether members that can be reached report only members that cannot: then only reachable
// members are heard, no link between two of them is broken, and the downed members do not depend on the
// reports.
func (r *Resolver) clean(reports []Report) bool {
	for i, report := range reports {
		if s := r.get(report.Subject); s == nil || !s.Unreachable {
			return false
		}
		if i > 0 && report.Observer == reports[i-1].Observer {
			continue // reports are in the order of their observers
		}
		if o := r.get(report.Observer); o == nil || o.Unreachable {
			return false
		}
	}
	return true
}

func (r *Resolver) observe(reports []Report) {
	if !slices.IsSortedFunc(reports, compareReports) {
		reports = slices.Clone(reports)
		slices.SortFunc(reports, compareReports)
	}
	if NeedsLease(r.strategy) {
		r.reportedSince = r.ages(reports)
	}
	r.reports, r.made, r.placed = reports, nil, false
}

// ages lists since when each of the reports stands without a gap. Both lists are in order.
func (r *Resolver) ages(reports []Report) []time.Duration {
	since := make([]time.Duration, len(reports))
	i := 0
	for n, report := range reports {
		for i < len(r.reports) && compareReports(r.reports[i], report) < 0 {
			i++
		}
		since[n] = r.now
		if i < len(r.reports) && r.reports[i] == report {
			since[n] = r.reportedSince[i]
		}
	}
	return since
}

// unrest restarts the stable deadline.
func (r *Resolver) unrest() {
	r.lastChange = r.now
	if r.changes == 0 {
		r.firstChange = r.now
	}
	r.changes++
}

// arm starts the resolver once the cluster has settled, and from then on makes newcomers full members
// whenever no member is unreachable. A cluster that is still forming has no partition. But it does not form
// for ever: a member that sees others unreachable before it is armed arms once that view has been stable, or
// it would outlive its side.
func (r *Resolver) arm() {
	if !r.armed {
		if r.now < r.armAt() {
			return
		}
		r.armed = true
		r.explain(TopicArmed, "armed: %s, nothing changed for %v%s",
			plural(r.present(), "member", "members"), (r.now - r.lastChange).Round(100*time.Millisecond), r.autoText())
		if NeedsLease(r.strategy) && r.recheckAt == never {
			// A verdict may have been written after this member read the store, by members that did not know
			// it.
			r.recheckAt = r.now + r.cfg.LeaseDeadline
		}
		if r.suspects > 0 {
			r.promote()
			return
		}
	}
	if r.suspects == 0 && r.awaiting > 0 {
		r.promote()
		r.lastChange = r.now
	}
}

func (r *Resolver) promote() {
	for m := range r.each {
		if m.awaiting && m.Status == Joining {
			r.change(m, func(m *Member) { m.Status = Up })
		}
	}
}

func (r *Resolver) armAt() time.Duration {
	switch {
	case r.armed || r.present() < r.cfg.MinMembers:
		return never
	case r.suspects > 0:
		return r.lastChange + max(r.cfg.SettleAfter, r.stableAfter())
	default:
		return r.lastChange + r.cfg.SettleAfter
	}
}

// present counts the members that are alive and not downed.
func (r *Resolver) present() (n int) {
	for m := range r.each {
		if m.Downable() {
			n++
		}
	}
	return n
}

// watchSuspension stops new work at the first sign of a partition and allows it when there is none left.
func (r *Resolver) watchSuspension() {
	want := r.armed && r.suspects > 0 || r.question != nil
	switch {
	case want && !r.suspended:
		r.suspended, r.suspendedAt = true, r.now
		r.emit(Suspend{Reason: r.suspicion()})
	case !want && r.suspended:
		r.suspended = false
		r.emit(Resume{Reason: "every member that was not downed is reachable"})
	}
}

func (r *Resolver) suspicion() string {
	var about doubt
	if r.question != nil {
		about = r.question.about
	}
	switch {
	case about == paused:
		return "the process was paused and does not know its standing"
	case about == torn:
		return fmt.Sprintf("two verdicts have the token %d, and the store has not said yet which one counts",
			r.verdict.Token)
	case about == untold:
		return fmt.Sprintf("verdict %d is known in part, and not yet whether it lists this member", r.verdict.Token)
	case about == healed && r.suspects == 0:
		return "members that could not be reached are back, and may have decided without this one"
	}
	return plural(r.suspects, "member is unreachable", "members are unreachable")
}
