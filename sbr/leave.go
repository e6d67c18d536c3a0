package sbr

import "slices"

// A leave in peace is recorded beside the verdict (design rule 22), so that a new member does not wait for a
// member that has left. A member that cannot reach another one does not record its leave: it may know less of
// the cluster than the unreachable members.

// maxOtherLeft bounds the members in Verdict.Left that were neither survivors nor heirs. They are there for
// leaves at the same moment: the last of those that remain must not hand the record to a member that has just
// left as well.
const maxOtherLeft = 64

// Remaining lists the members that stand for the cluster which the verdict has left: a new member has to find
// one of them, or a member that has. They are the survivors, or the heirs once the last survivor has left;
// without those that have left. None remains when the last one left and no member was here: then the cluster
// has ended, and the first member that inherits the record begins it anew.
func (v *Verdict) Remaining() []ID {
	all := v.Survivors
	if len(v.Heirs) > 0 {
		all = v.Heirs
	}
	return without(all, v.Left)
}

// without returns the ids that are not among the others.
func without(ids, others []ID) (rest []ID) {
	for _, id := range ids {
		if !slices.Contains(others, id) {
			rest = append(rest, id)
		}
	}
	return rest
}

// Leave records that members have left in peace, and hands the record to the members that are here if no
// other member remains. It reports whether that changed anything.
func (v *Verdict) Leave(gone, here []ID) (changed bool) {
	for _, id := range gone {
		if !slices.Contains(v.Left, id) {
			v.Left, changed = append(v.Left, id), true
		}
	}
	changed = v.Inherit(here) || changed
	other := func(id ID) bool { return !contains(v.Survivors, id) && !slices.Contains(v.Heirs, id) }
	surplus := -maxOtherLeft
	for _, id := range v.Left {
		if other(id) {
			surplus++
		}
	}
	v.Left = slices.DeleteFunc(v.Left, func(id ID) bool { // the oldest ones
		drop := surplus > 0 && other(id)
		if drop {
			surplus--
		}
		return drop
	})
	return changed
}

// Inherit hands the record to the members that are here, if no member remains. It reports whether it did.
func (v *Verdict) Inherit(here []ID) bool {
	if v.Token == 0 || v.Partial || len(v.Remaining()) > 0 {
		return false
	}
	heirs := without(here, v.Left)
	if len(heirs) == 0 {
		return false
	}
	slices.Sort(heirs)
	v.Heirs = slices.Compact(heirs)
	return true
}

// Succeed is the verdict by which an operator begins a new cluster, of the members that are here, when all
// members that remained of the old one have ended for good.
func (v *Verdict) Succeed(by ID, here []ID, reason string) *Verdict {
	next := &Verdict{Survivors: slices.Clone(here), DecidedBy: by, Reason: reason}
	if !slices.Contains(here, by) {
		next.Survivors = append(next.Survivors, by)
	}
	next.Down = without(v.Remaining(), next.Survivors)
	next.Normalize()
	return next
}

// onLeft follows the wish to leave: nothing is decided here any more.
func (r *Resolver) onLeft() {
	if r.atPeace() {
		r.emit(r.leave())
	}
	r.left = true
	if r.race == nil || r.race.inflight == 0 {
		r.giveBack()
	}
}

// giveBack releases the lease of a member that goes: the others need not wait until it has been silent for
// long enough.
func (r *Resolver) giveBack() {
	if r.holding {
		r.holding = false
		r.emit(ReleaseLease{Attempt: r.next()})
	}
}

// atPeace reports whether this member knows the cluster's last verdict, belongs to it, and misses no member.
func (r *Resolver) atPeace() bool {
	return r.suspects == 0 && r.question == nil && r.race == nil &&
		r.knowsRecord() && r.verdict.Token > 0 && r.standing() != Out
}

// leave is what is recorded when this member leaves: itself, the members that are leaving, and those that
// stay.
func (r *Resolver) leave() RecordLeave {
	l := RecordLeave{Token: r.verdict.Token}
	for m := range r.each {
		switch {
		case m.ID == r.self || m.Status == Leaving && !m.Unreachable:
			l.Gone = append(l.Gone, m.ID)
		case m.Status <= Up && r.verdict.Eligible(m.ID, m.Seen):
			l.Here = append(l.Here, m.ID)
		}
	}
	return l
}

// learnLeaves learns from a record which members have left since the verdict. A suspect that left stays a
// suspect: the members on its side are unreachable as well, and may be unknown here.
func (r *Resolver) learnLeaves(v *Verdict) {
	if v.Token == r.verdict.Token && !v.conflicts(&r.verdict) {
		r.verdict.Left, r.verdict.Heirs = slices.Clone(v.Left), slices.Clone(v.Heirs)
	}
}

// hasLeft reports whether it is recorded that a member has left in peace.
func (r *Resolver) hasLeft(id ID) bool { return slices.Contains(r.verdict.Left, id) }
