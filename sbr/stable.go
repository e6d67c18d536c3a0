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

// grouper is implemented by strategies that keep the largest group of members that all reach each other.
type grouper interface{ KeepsLargestGroup() bool }

// KeepsLargestGroup reports whether a strategy keeps the largest group of members that all reach each other.
// Then its driver sets reachability.Settings.AllHeard.
func KeepsLargestGroup(s Strategy) bool {
	g, ok := s.(grouper)
	return ok && g.KeepsLargestGroup()
}

func (r *Resolver) view() View {
	v := View{Self: r.self, Members: r.members, Reports: r.reports, index: r.index}
	if KeepsLargestGroup(r.strategy) {
		v.Reports = confirmed(r.reports, r.get)
	}
	return v
}

// lasting is the view of what has stood for stable-after without a gap: members that became unreachable later
// count as reachable, and links that broke later as whole (design rule 17). It is what a decision in unrest
// goes by: the rest may be noise, and is decided about when it has lasted.
func (r *Resolver) lasting() View {
	v := View{Self: r.self, Members: slices.Clone(r.members), index: r.index}
	for i := range v.Members {
		m := &v.Members[i]
		m.Unreachable = m.Unreachable && r.lasts(m.since)
	}
	for i, report := range r.reports {
		if r.lasts(r.reportedSince[i]) {
			v.Reports = append(v.Reports, report)
		}
	}
	if KeepsLargestGroup(r.strategy) {
		v.Reports = confirmed(v.Reports, func(id ID) *Member {
			if i, ok := r.index[id]; ok {
				return &v.Members[i]
			}
			return nil
		})
	}
	return v
}

func (r *Resolver) lasts(since time.Duration) bool { return r.now-since >= r.stableAfter() }

// confirmed are the reports that break a link: those about, or by, a member that counts as unreachable, and
// those of two members about each other. A single report about a member that all others reach is noise.
func confirmed(reports []Report, get func(ID) *Member) []Report {
	var by ID
	reached := false // whether by can be reached: reports are in the order of their observers
	lone := func(report Report) bool {
		if report.Observer != by {
			o := get(report.Observer)
			by, reached = report.Observer, o != nil && !o.Unreachable
		}
		if !reached {
			return false
		}
		if s := get(report.Subject); s == nil || s.Unreachable {
			return false
		}
		_, both := slices.BinarySearchFunc(reports, Report{Observer: report.Subject, Subject: report.Observer},
			compareReports)
		return !both
	}
	i := slices.IndexFunc(reports, lone)
	if i < 0 {
		return reports
	}
	kept := slices.Clone(reports[:i])
	for _, report := range reports[i:] {
		if !lone(report) {
			kept = append(kept, report)
		}
	}
	return kept
}

// judged is the decision that the race is about: in unrest what has lasted, otherwise the present view.
func (r *Resolver) judged() Decision {
	if r.race == nil || !r.race.unrest {
		return r.decision()
	}
	return r.decisionInUnrest()
}

// decisionInUnrest is what the strategy makes of what has lasted; None if that downs no member. It waits as
// long as the present view says where that is longer: a smaller side that has lost the others one after the
// other counts those that it lost last.
func (r *Resolver) decisionInUnrest() Decision {
	v := r.lasting()
	d := Decide(r.strategy, &v, r.cfg.DownAllWhenIndirectlyConnected)
	if len(d.Down) == 0 {
		return Decision{}
	}
	if now := r.decision(); now.Delay > d.Delay {
		d.Delay = now.Delay
		d.Reason += "; at present " + now.Reason
	}
	return d
}

// decision is what the strategy makes of the present view.
func (r *Resolver) decision() Decision {
	if r.made == nil || r.madeOf != r.version {
		v := r.view()
		d := Decide(r.strategy, &v, r.cfg.DownAllWhenIndirectlyConnected)
		r.made, r.madeOf = &d, r.version
	}
	return *r.made
}

// downWhenUnstable downs this member when the view has been changing for too long without once being stable.
//
// In the reference every node downs all nodes. Here every node that sees the unrest downs itself and tells
// its side. A view that was stable once ends the unrest: a side that waits for its lease is not unstable.
// With a lease no member is downed for unrest alone: the first of the side proposes what has lasted (design
// rule 17), because the lease makes any choice safe. Where nothing has, it looks again one stable-after
// later.
func (r *Resolver) downWhenUnstable() {
	// The second condition follows from the third, whose answer takes the whole view.
	if !r.armed || r.now < r.firstChange+r.stableAfter()+r.unstableAfter() || r.now < r.unstableAt() {
		return
	}
	if NeedsLease(r.strategy) {
		if d := r.decisionInUnrest(); d.Final.NeedsLease() {
			r.startRace(d)
			r.race.unrest = true
		} else {
			r.firstChange = r.now - r.unstableAfter()
		}
		return
	}
	r.act(Decision{
		Choice: Choice{Kind: DownAll, Reason: fmt.Sprintf(
			"the view has kept changing for more than %v (%d changes) without being stable for %v",
			r.stableAfter()+r.unstableAfter(), r.changes, r.stableAfter())},
		Final: DownAll,
		Down:  r.ids((*Member).Downable),
	})
}

// settled ends the unrest if the view has been stable for stable-after.
func (r *Resolver) settled() {
	if r.now >= r.lastChange+r.stableAfter() {
		r.endUnrest()
	}
}

// endUnrest is called when the view has been stable, or no member is left to decide about. A race that began
// in unrest is one like others from then on: it goes by the whole view, and starts again when that changes.
func (r *Resolver) endUnrest() {
	r.changes = 0
	if rc := r.race; rc != nil && rc.unrest {
		rc.unrest, rc.since = false, r.lastChange
	}
}

// unstableAt is just after stable-after + down-all-when-unstable have passed since the first change; with a
// lease one decision deadline later for each member before this one.
func (r *Resolver) unstableAt() time.Duration {
	if r.changes == 0 || r.unstableAfter() == 0 || !r.armed {
		return never
	}
	at, stable := r.firstChange+r.stableAfter()+r.unstableAfter()+1, r.lastChange+r.stableAfter()
	if at < stable && NeedsLease(r.strategy) {
		if !r.mayDecide() || r.ownRace() {
			return never
		}
		at += time.Duration(r.turn()) * r.cfg.LeaseDeadline
	}
	if at >= stable {
		return never // the view is stable before that, unless it changes again
	}
	return at
}

// decideAt is when this member decides: the leader of the side when the view has been stable, the others,
// where a lease makes that safe, one decision deadline later each (design deviation 12).
func (r *Resolver) decideAt() time.Duration {
	if !r.mayDecide() || r.ownRace() || r.idleAt == r.lastChange {
		return never
	}
	rank := r.turn()
	if rank > 0 && !NeedsLease(r.strategy) {
		return never
	}
	if r.contact.standsIn && r.contact.heard {
		rank = 0
	}
	return r.lastChange + r.stableAfter() + time.Duration(rank)*r.cfg.LeaseDeadline
}

// turn is how many members decide before this one: those of the side, or of the largest group, that come
// first in address order. Members outside the group come after all of it.
func (r *Resolver) turn() int {
	if !r.placed || r.placedOf != r.version {
		r.placed, r.placedOf, r.place = true, r.version, r.workOutTurn()
	}
	return r.place
}

func (r *Resolver) workOutTurn() int {
	g := r.group()
	if g == nil {
		return r.position(r.self)
	}
	before, stays := 0, 0
	for _, id := range g.Members {
		m := r.get(id)
		switch {
		case id == r.self:
			return stays
		case m.counted():
			stays++
			if CompareMembers(m, r.get(r.self)) < 0 {
				before++
			}
		}
	}
	return stays + before
}

// group is the largest group of the present view, nil while the cut is clean.
func (r *Resolver) group() *Group {
	if !KeepsLargestGroup(r.strategy) || len(r.reports) == 0 || r.suspects == 0 || r.clean(r.reports) {
		return nil
	}
	return r.decision().Group
}

// mayDecide reports whether there is something to decide, and this member can decide it.
func (r *Resolver) mayDecide() bool {
	return r.armed && r.suspects > 0 && r.question == nil && r.get(r.self).counted()
}

func (r *Resolver) decideWhenStable() {
	// The first condition follows from the second, whose answer takes the whole view.
	if r.now >= r.lastChange+r.stableAfter() && r.now >= r.decideAt() {
		r.decide()
	}
}

func (r *Resolver) decide() {
	d := r.decision()
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
	r.endRequest(overtaken)
	r.changes = 0
	r.explainDecision(d)
	r.race = &race{attempt: attempt{notBefore: r.now + d.Delay}, since: r.lastChange, heard: r.contact.heard}
	r.resumeSilence()
	r.contact = contact{} // the race tries the store itself
}

func (r *Resolver) explainDecision(d Decision) {
	text := fmt.Sprintf("%s: %s (%s)", d.Final, d.Reason,
		plural(len(d.Down), "member goes down", "members go down"))
	r.emit(Explain{What: TopicDecision, Decision: &d, Text: text})
}

// act carries a decision out that waits for no lease (any longer): the others first, this member last.
func (r *Resolver) act(d Decision) {
	r.endRequest(overtaken)
	r.explainDecision(d)
	self := false
	targets, suspects := r.reachable(), r.undecided()
	for _, id := range d.Down {
		self = self || id == r.self
		r.keepOut(id)
	}
	r.order(targets, Order{Kind: d.Final, Down: d.Down, Reason: d.Reason, Suspects: suspects})
	r.race, r.changes, r.lastChange = nil, 0, r.now
	if self {
		r.goDown(d.Final.String() + ": " + d.Reason)
	}
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
	if m := r.get(e.From); m == nil || !r.hears(m) || m.Status == Down {
		r.explain(TopicIgnored, "ignored an order of %s: not a reachable member here", e.From)
		return
	}
	r.inherit(e.Order.Suspects)
	from := r.get(e.From)
	if r.question == nil && r.suspects == 0 && (e.Order.Kind == DownAll || e.Order.Kind == DownReachable) {
		r.explain(TopicIgnored, "ignored an order of %s (%s): nobody is unreachable here", from.Name, e.Order.Kind)
		return
	}
	if slices.Contains(e.Order.Down, r.self) {
		if !r.lastChance(e, from) {
			r.goDown(fmt.Sprintf("by order of %s: %s: %s", from.Name, e.Order.Kind, e.Order.Reason))
		}
		return
	}
	for _, id := range e.Order.Down {
		// With a lease only a verdict speaks for others: those named here may yet win, but the sender will
		// not.
		if id == e.From || !NeedsLease(r.strategy) {
			r.keepOut(id)
		}
	}
}

// lastChance answers the order of a member that gave its side up because it could not learn the state of the
// lease. A member that has not tried itself tries once before it obeys. A member that has an answer, or is
// asking for its standing, need not obey: the side is lost only when none of it reaches the store (promise L1).
func (r *Resolver) lastChance(e Ordered, from *Member) bool {
	gaveUp := e.Order.Kind == DownReachable || e.Order.Kind == ReverseDownIndirectlyConnected
	tried := r.race != nil && !r.race.heard && r.race.lastErr != "" || r.race == nil && r.now >= r.silenceOver()
	name, silent := from.Name, r.isSilent(r.now)
	if gaveUp && r.question != nil && !r.question.silent {
		r.keepOut(e.From)
		r.explain(TopicLease, "%s gave this side up (%s), but this member is asking the lease store for its standing: not obeyed", name, e.Order.Reason)
		return true
	}
	if !gaveUp || tried || !NeedsLease(r.strategy) || !r.mayDecide() {
		return false
	}
	r.endRequest("%s gave this side up meanwhile", name)
	r.keepOut(e.From) // it goes down itself
	if r.race == nil {
		// The view may not be stable. The chain of verdicts makes that safe for the lease, but for nothing
		// else.
		d := r.decision()
		if d.Final == None {
			// Only the sender's own broken links were to decide about. As after any heal, the store says the
			// rest.
			r.explain(TopicLease, "%s gave this side up (%s), and without it nobody is cut off here: not obeyed",
				name, e.Order.Reason)
			return true
		}
		if !d.Final.NeedsLease() {
			return false
		}
		r.startRace(d)
	}
	rc := r.race
	r.explain(TopicLease, "%s gave this side up (%s), postponed: trying the lease store from this member first",
		name, e.Order.Reason)
	if !rc.heard {
		rc.suspended, rc.notBefore = true, r.now
		rc.deadline = r.now + r.cfg.LeaseTimeout + r.cfg.LeaseRetry
		if silent { // it was asked before, and the store was silent here too: a last read has a moment
			rc.deadline = r.now + passOnStep
		}
	}
	return true
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
