package sbr

import (
	"fmt"
	"slices"
	"time"
)

// leaser is implemented by strategies that need the lease, so that the resolver knows before it decides.
type leaser interface{ NeedsLease() bool }

// NeedsLease reports whether a strategy asks for the lease, that is, whether its member needs a store.
func NeedsLease(s Strategy) bool {
	l, ok := s.(leaser)
	return ok && l.NeedsLease()
}

func (r *Resolver) view() View {
	return View{Self: r.self, Members: r.members, Reports: r.reports, SeenBy: r.seenBy}
}

// downWhenUnstable downs this member when the view has been changing for too long without once being stable.
//
// The reference lets every node down everybody. Here every node that sees the unrest downs itself and tells its side.
// Unlike the reference, a view that was stable once ends the unrest: a side that waits for its lease is not unstable.
func (r *Resolver) downWhenUnstable() {
	r.settled()
	if !r.armed || r.now < r.unstableAt() {
		return
	}
	v := r.view()
	r.act(Decision{
		Choice: Choice{Kind: DownAll, Reason: fmt.Sprintf(
			"the view has kept changing for more than %v (%d changes) without being stable for %v",
			r.cfg.StableAfter+r.cfg.DownAllWhenUnstable, r.changes, r.cfg.StableAfter)},
		Final: DownAll,
		Down:  v.downedBy(DownAll, nil),
	})
}

// settled ends the unrest if the view has been stable for stable-after.
func (r *Resolver) settled() {
	if r.now >= r.lastChange+r.cfg.StableAfter {
		r.changes = 0
	}
}

// unstableAt is the moment just after stable-after + down-all-when-unstable have passed since the first change.
func (r *Resolver) unstableAt() time.Duration {
	if r.changes == 0 || r.cfg.DownAllWhenUnstable == 0 || !r.armed {
		return never
	}
	at := r.firstChange + r.cfg.StableAfter + r.cfg.DownAllWhenUnstable + 1
	if at >= r.lastChange+r.cfg.StableAfter {
		return never // the view is stable before that, unless it changes again
	}
	return at
}

// decideAt is when this member decides: the leader of the side when the view has been stable, the others, where a lease
// makes that safe, one decision deadline later each. (Design deviation 12: any member of a side may race for it.)
func (r *Resolver) decideAt() time.Duration {
	if !r.armed || r.suspects == 0 || r.race != nil || r.check != nil || r.idleAt == r.lastChange {
		return never
	}
	if self := r.get(r.self); self == nil || !self.counted() {
		return never
	}
	at := r.lastChange + r.cfg.StableAfter
	rank := r.position(r.self)
	if rank > 0 && !NeedsLease(r.strategy) {
		return never
	}
	return at + time.Duration(rank)*r.cfg.LeaseDeadline
}

func (r *Resolver) decideWhenStable() {
	if r.now < r.lastChange+r.cfg.StableAfter || r.now < r.decideAt() { // the first needs no look at the members
		return
	}
	r.decide()
}

func (r *Resolver) decide() {
	v := r.view()
	d := Decide(r.strategy, &v, r.cfg.DownAllWhenIndirectlyConnected)
	// With a lease a decision about unreachable members is never empty: the verdict leaves them out.
	if d.Final == None || len(d.Down) == 0 && !d.Final.NeedsLease() {
		r.idleAt = r.lastChange
		return
	}
	if d.Final.NeedsLease() {
		r.startRace(d)
		return
	}
	r.act(d)
}

func (r *Resolver) startRace(d Decision) {
	r.changes = 0
	r.explainDecision(d)
	r.race = &race{since: r.lastChange, notBefore: r.now + d.Delay}
}

func (r *Resolver) explainDecision(d Decision) {
	r.emit(Explain{What: TopicDecision, Decision: &d, Text: fmt.Sprintf("%s: %s (%s)", d.Final, d.Reason, plural(len(d.Down), "member goes down", "members go down"))})
}

// act carries a decision out that needs no lease, or no longer waits for one: the others first, this member last.
func (r *Resolver) act(d Decision) {
	r.explainDecision(d)
	self := false
	targets, joined, suspects := r.reachable(r.self), r.joinedLate(d.Down), r.undecided()
	for _, id := range d.Down {
		self = self || id == r.self
		r.keepOut(id)
	}
	if len(targets) > 0 {
		r.emit(TellOrder{Targets: targets, Order: Order{Kind: d.Final, Down: d.Down, Reason: d.Reason, Suspects: suspects}})
	}
	if len(joined) > 0 {
		r.emit(TellOrder{Targets: joined, Order: Order{Kind: DownUnreachable, Down: joined, Reason: d.Reason + "; it joined during the partition"}})
	}
	r.race, r.changes, r.lastChange = nil, 0, r.now
	if self {
		r.goDown(d.Final.String() + ": " + d.Reason)
	}
}

// joinedLate lists the reachable members among down that joined during the partition. They never knew the other side, so to
// them nobody is unreachable, and they would ignore an order that downs this side; they are told by name.
func (r *Resolver) joinedLate(down []ID) (ids []ID) {
	for _, id := range down {
		if m := r.get(id); m != nil && m.Status == Joining && !m.Unreachable && id != r.self {
			ids = append(ids, id)
		}
	}
	return ids
}

// keepOut marks an incarnation as downed by an order.
func (r *Resolver) keepOut(id ID) {
	r.orders[id] = struct{}{}
	if m := r.get(id); m != nil && m.Status != Down {
		r.change(m, func(m *Member) { m.Status = Down })
	}
}

// onOrdered obeys another member's decision if it can be meant for the partition that this member sees.
func (r *Resolver) onOrdered(e Ordered) {
	if m := r.get(e.From); m == nil || m.Unreachable || m.Status == Down {
		r.explain(TopicIgnored, "ignored an order of %s: not a reachable member here", e.From)
		return
	}
	r.inherit(e.Order.Suspects)
	from := r.get(e.From)
	if r.check == nil && r.suspects == 0 && (e.Order.Kind == DownAll || e.Order.Kind == DownReachable) {
		r.explain(TopicIgnored, "ignored an order of %s (%s): nobody is unreachable here", from.Name, e.Order.Kind)
		return
	}
	if slices.Contains(e.Order.Down, r.self) {
		if !r.lastChance(e, from) {
			r.goDown(fmt.Sprintf("told by %s: %s: %s", from.Name, e.Order.Kind, e.Order.Reason))
		}
		return
	}
	for _, id := range e.Order.Down {
		// With a lease only a verdict speaks for others: those that are named here may yet win, but the sender will not.
		if id == e.From || !NeedsLease(r.strategy) {
			r.keepOut(id)
		}
	}
	r.calm()
}

// lastChance answers the order of a member that gave its side up because it could not learn the fate of the lease. A member that
// has not tried itself tries once before it obeys, and one that has an answer need not obey: the side is lost only when none
// of it reaches the store (promise L1). The verdict chain makes that safe.
func (r *Resolver) lastChance(e Ordered, from *Member) bool {
	gaveUp := e.Order.Kind == DownReachable || e.Order.Kind == ReverseDownIndirectlyConnected
	if !gaveUp || !NeedsLease(r.strategy) || r.suspects == 0 || r.check != nil || !r.armed || !r.get(r.self).counted() {
		return false
	}
	if r.race != nil && !r.race.heard && r.race.lastErr != "" {
		return false
	}
	name := from.Name
	r.endRequest("%s gave this side up meanwhile", name)
	r.keepOut(e.From) // it goes down itself
	if r.race == nil {
		// The view may not have been stable. The chain of verdicts makes that safe for the lease, but nothing does for other decisions.
		v := r.view()
		d := Decide(r.strategy, &v, r.cfg.DownAllWhenIndirectlyConnected)
		if !d.Final.NeedsLease() {
			return false
		}
		r.startRace(d)
	}
	rc := r.race
	r.explain(TopicLease, "%s gave this side up (%s), but here the store has not failed yet: trying before obeying", name, e.Order.Reason)
	if !rc.heard {
		rc.suspended, rc.notBefore = true, r.now
		rc.deadline = r.now + r.cfg.LeaseTimeout + r.cfg.LeaseRetry
	}
	return true
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
