package sbr

import (
	"slices"
	"time"
)

// removeBackups is how many rounds the others leave to the leader before they remove downed members.
const removeBackups = 3

// tellVerdict sends the verdict to all members on this side, downed members included.
func (r *Resolver) tellVerdict() {
	r.tell(r.ids(func(m *Member) bool { return m.ID != r.self && r.hears(m) }))
}

func (r *Resolver) tell(targets []ID) {
	if len(targets) > 0 {
		r.emit(TellVerdict{Targets: targets, Verdict: r.verdict})
	}
}

func (r *Resolver) order(targets []ID, o Order) {
	if len(targets) > 0 {
		r.emit(TellOrder{Targets: targets, Order: o})
	}
}

func (r *Resolver) passOn() {
	if r.now < r.passAt {
		return
	}
	r.passAt = never
	r.tellVerdict()
}

func downedBefore(ids ...ID) Order {
	return Order{Kind: DownUnreachable, Down: ids, Reason: "this incarnation was downed before"}
}

// removeDue is when this member next removes the downed members that are still listed: the leader of the side
// at once, the others later, one after another, in case a removal did not reach them.
func (r *Resolver) removeDue() time.Duration {
	if r.downed == 0 || r.question != nil {
		return never
	}
	if r.removeAt != never {
		return r.removeAt
	}
	rank := r.position(r.self)
	if rank == 0 {
		return r.now
	}
	return r.now + time.Duration(rank+removeBackups)*removeRetry
}

// removeDowned removes downed members that are gone for good, and sends the verdict to members that try to
// rejoin. A downed member that cannot be removed may be alive behind others: it gets the verdict too.
func (r *Resolver) removeDowned() {
	r.removeAt = r.removeDue()
	if r.downed == 0 {
		r.removals = 0
	}
	if r.now < r.removeAt {
		return
	}
	var gone, ordered, judged []ID
	for m := range r.each {
		if m.Status != Down || m.ID == r.self {
			continue
		}
		if m.Unreachable {
			gone = append(gone, m.ID)
		}
		_, byOrder := r.orders[m.ID]
		switch {
		case m.Unreachable && r.removals == 0:
		case byOrder:
			ordered = append(ordered, m.ID)
		default:
			judged = append(judged, m.ID)
		}
	}
	if len(gone) > 0 {
		r.emit(Remove{IDs: gone})
	}
	r.tell(judged)
	r.order(ordered, downedBefore(ordered...))
	r.removals++
	r.removeAt = r.now + removeRetry
}

// release gives the lease back once every downed member was removed and release-after has passed. The verdict
// stays in it, so a downed member that comes later still reads it.
func (r *Resolver) release() {
	switch {
	case !r.holding || r.race != nil || r.awaitsRemovals():
		r.releaseAt = never
	case r.releaseAt == never:
		r.releaseAt = r.now + r.cfg.ReleaseAfter
	case r.now >= r.releaseAt:
		r.releaseAt = r.now + r.cfg.LeaseTimeout + r.cfg.LeaseRetry
		r.emit(ReleaseLease{Attempt: r.next()})
	}
}

func (r *Resolver) awaitsRemovals() bool {
	return slices.ContainsFunc(r.members, func(m Member) bool { return m.mustGo })
}

func (r *Resolver) onLeaseReleased(e LeaseReleased) {
	switch {
	case e.Attempt != 0 && e.Attempt < r.heldSince:
		// the late answer to the release of an earlier hold
	case !e.Done && r.holding:
		r.releaseAt = r.now + r.cfg.HolderRetry
	case e.Done && r.holding:
		r.holding, r.releaseAt = false, never
		r.recheckAt = min(r.recheckAt, r.now) // the store may have forgotten this hold
		if r.record.Holder == r.self {
			r.record.Holder = ""
		}
		r.explain(TopicLease, "this member holds the lease no longer; verdict %d stays in it", r.verdict.Token)
	}
}
