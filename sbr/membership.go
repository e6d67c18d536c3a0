package sbr

import (
	"fmt"
	"slices"
	"time"
)

// onMemberSeen inserts or updates a member. A downed incarnation stays downed, whatever the cluster says of it (promise S2).
func (r *Resolver) onMemberSeen(m Member) {
	reported := m.Status
	m.Unreachable, m.Unlisted, m.awaiting = false, false, reported == Up || reported == WeaklyUp
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
		m.Unreachable = old.Unreachable && !old.Unlisted // listed again: it has answered somebody
		m.Status = follow(old, reported)
		if m.Status == Exiting && old.Status != Exiting {
			r.lastChange = r.now
		}
		if old.Downable() && !m.Downable() {
			r.departed = true
		}
		if old.Unlisted && old.suspect() && !m.suspect() {
			r.unrest() // a change of reachability like any other
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

// onMemberGone follows the end of a member in the cluster's list. Being removed from a list ends no suspicion: only a decision, the
// member itself or proof of its end does (design rule 15).
func (r *Resolver) onMemberGone(e MemberGone) {
	m := r.get(e.ID)
	if m == nil || e.ID == r.self {
		return
	}
	if m.Downable() {
		r.departed = true
	}
	if e.Ended || !m.Downable() {
		r.forget(e.ID)
		return
	}
	suspect := m.suspect()
	r.change(m, func(m *Member) {
		m.Unreachable, m.Unlisted = true, true
		m.Status = min(m.Status, Up) // a leave that nobody confirmed
	})
	if !suspect {
		r.unrest()
	}
}

func (r *Resolver) forget(id ID) {
	r.remove(id)
	r.calm()
	r.waitGone = slices.DeleteFunc(r.waitGone, func(w ID) bool { return w == id })
}

// dropDecided forgets the members that a verdict or an order has downed, and that the cluster lists no longer: nobody has to remove them.
func (r *Resolver) dropDecided() {
	for i := len(r.members) - 1; i >= 0 && r.decided > 0; i-- {
		if m := &r.members[i]; m.Unlisted && m.Status == Down {
			r.forget(m.ID)
		}
	}
}

// remember makes suspects of members that an earlier process of this member could not reach, unless they are known here.
func (r *Resolver) remember(suspects []Member) {
	for _, m := range suspects {
		if m.ID == "" || r.get(m.ID) != nil || r.isOut(&m) {
			continue
		}
		m.Status, m.Unreachable, m.Unlisted, m.awaiting = Up, true, true, false
		r.put(m)
		r.unrest()
	}
}

// inherit makes suspects of members that another member of this side cannot reach, and that are unknown here. It changes no deadline: the
// view of the sender was stable. When such a member started is not known: only a later verdict, or one that names it, downs it.
func (r *Resolver) inherit(suspects []ID) {
	since, first, changes := r.lastChange, r.firstChange, r.changes
	for _, id := range suspects {
		if !contains(r.verdict.Down, id) {
			r.remember([]Member{{ID: id, Name: string(id), Seen: r.verdict.Token}})
		}
	}
	r.lastChange, r.firstChange, r.changes = since, first, changes
}

// undecided lists the suspects, for members that are asked for help or ordered.
func (r *Resolver) undecided() (ids []ID) {
	for i := range r.members {
		if m := &r.members[i]; m.suspect() {
			ids = append(ids, m.ID)
		}
	}
	return ids
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
	switch c := r.check; {
	case c == nil:
	case c.gap > 0:
		return "this process did not run for a while and does not know its fate yet"
	case c.conflict:
		return fmt.Sprintf("two verdicts have the token %d, and the store has not said yet which one counts", r.verdict.Token)
	case c.untold:
		return fmt.Sprintf("verdict %d is known in part, and not yet whether it lists this member", r.verdict.Token)
	case r.suspects == 0:
		return "members that could not be reached are back, and may have decided without this one"
	}
	return plural(r.suspects, "member is unreachable", "members are unreachable")
}
