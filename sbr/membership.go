package sbr

import (
	"slices"
	"time"
)

// onMemberSeen inserts or updates a member. A downed incarnation stays downed, whatever the cluster says of it (promise S2).
func (r *Resolver) onMemberSeen(m Member) {
	reported := m.Status
	m.Unreachable, m.awaiting = false, reported == Up || reported == WeaklyUp
	old := r.get(m.ID)
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
		m.Unreachable = old.Unreachable
		m.Status = follow(old, reported)
		if m.Status == Exiting && old.Status != Exiting {
			r.lastChange = r.now
		}
		if old.Downable() && !m.Downable() {
			r.departed = true
		}
		if m.suspect() && !old.suspect() {
			r.unrest() // a leave was refuted of a member that cannot be reached: as if it had become unreachable now
		}
	}
	r.put(m)
	r.calm() // a member that leaves is no suspect any more
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

func (r *Resolver) onMemberGone(id ID) {
	if id == r.self {
		return
	}
	if m := r.get(id); m != nil && m.Downable() {
		r.departed = true
	}
	if !r.roster.remove(id) {
		return
	}
	r.calm()
	for i, w := range r.waitGone {
		if w == id {
			r.waitGone = append(r.waitGone[:i], r.waitGone[i+1:]...)
			break
		}
	}
}

// onReachability takes in a change of reachability. Only members that may still be downed move the deadlines (design deviation 7).
func (r *Resolver) onReachability(id ID, unreachable bool) {
	m := r.get(id)
	if m == nil || id == r.self || m.Unreachable == unreachable {
		return
	}
	r.change(m, func(m *Member) { m.Unreachable = unreachable })
	if m.Status > Up {
		return
	}
	r.unrest()
	r.calm()
}

// watchIndirect counts a change of who is indirectly connected as a change of the view: in the middle of a heal, when some have heard of it
// and some have not, it looks for a moment as if half of the cluster were. (The reference waits for reachability alone.)
func (r *Resolver) watchIndirect() {
	v := r.view()
	ids := v.IndirectlyConnected()
	if slices.Equal(ids, r.indirect) {
		return
	}
	r.indirect = ids
	if r.suspects > 0 {
		r.unrest()
	}
}

// unrest restarts the stable deadline.
func (r *Resolver) unrest() {
	r.settled() // before this change, at which this member may have had nothing to do
	r.lastChange = r.now
	if r.changes == 0 {
		r.firstChange = r.now
	}
	r.changes++
}

// calm ends the unrest once nobody is unreachable any more.
func (r *Resolver) calm() {
	if r.suspects == 0 {
		r.changes = 0
	}
}

// arm starts the resolver once the cluster has settled, and from then on turns newcomers into full members whenever
// nobody is unreachable. A cluster that is still forming has no partition. But it does not form for ever: a member that sees
// others unreachable before it is armed would never decide, and outlive its side; so it arms once that view has been stable.
func (r *Resolver) arm() {
	if !r.armed {
		if r.now < r.armAt() {
			return
		}
		r.armed = true
		r.explain(TopicArmed, "armed: %s, nothing changed for %v", plural(len(r.members), "member", "members"), r.now-r.lastChange)
		if NeedsLease(r.strategy) && r.recheckAt == never {
			// A verdict may have been written after this member read the store, by members that had not heard of it yet.
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
	for i := range r.members {
		if m := &r.members[i]; m.awaiting && m.Status == Joining {
			r.change(m, func(m *Member) { m.Status = Up })
		}
	}
}

func (r *Resolver) armAt() time.Duration {
	switch {
	case r.armed || r.present() < r.cfg.MinMembers:
		return never
	case r.suspects > 0:
		return r.lastChange + max(r.cfg.SettleAfter, r.cfg.StableAfter)
	default:
		return r.lastChange + r.cfg.SettleAfter
	}
}

// present counts the members that are alive and not downed.
func (r *Resolver) present() int {
	n := 0
	for i := range r.members {
		if r.members[i].Downable() {
			n++
		}
	}
	return n
}

// watchSuspension stops new work at the first sign of a partition and allows it again when there is none left.
func (r *Resolver) watchSuspension() {
	want := r.armed && r.suspects > 0 || r.check != nil
	switch {
	case want && !r.suspended:
		r.suspended, r.suspendedAt = true, r.now
		r.emit(Suspend{Reason: r.suspicion()})
	case !want && r.suspended:
		r.suspended = false
		r.emit(Resume{Reason: "nobody is unreachable that has not been downed"})
	}
}

func (r *Resolver) suspicion() string {
	if r.check != nil && r.check.gap > 0 {
		return "this process did not run for a while and does not know its fate yet"
	}
	return plural(r.suspects, "member is unreachable", "members are unreachable")
}
