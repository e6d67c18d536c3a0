package sbr

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// doubt is why a member does not know its own standing.
type doubt uint8

const (
	// paused: its process did not run, so whatever it knows may be history.
	paused doubt = iota + 1
	// healed: members that it could not reach are back, and may have decided without it.
	healed
	// untold: a partial verdict arrived, without this member's standing.
	untold
	// torn: two verdicts have one token, and only the store can say which one counts.
	torn
)

// question is what a member must learn about its own standing before it may act. Until it is answered the
// member is suspended. The store answers it; where it is silent or there is none, all other members do.
type question struct {
	attempt // to read the store
	about   doubt
	alone   bool // there was no other member before the pause, so no other member needs to be asked
	until   time.Duration
	silent  bool // the store did not answer, or there is none: what the members say counts
	// cleared are the members that know nothing against this one, and whether they are sure: they were not
	// paused.
	cleared map[ID]bool
}

// onResumed follows a pause of the whole process (promise S2): this member reads its standing before all
// else.
func (r *Resolver) onResumed(e Resumed) {
	r.endRequest("the process was paused for %v", e.Gap)
	r.race, r.changes, r.lastChange, r.rechecking, r.contact = nil, 0, r.now, 0, contact{}
	r.unsure, r.departed = true, false
	r.releaseAt = never // it begins anew: others missed this member, wait for the lease, and do not see it yet
	why := cmp.Or(e.Why, "the process was paused")
	r.explain(TopicPaused, "%s for %v: checking for a verdict before it resumes", why, e.Gap)
	r.ask(paused)
}

// onHealed follows an event after which no member is unreachable any more, though no verdict says why: the
// last one came back, left, or was downed by an order. They may have decided before that.
func (r *Resolver) onHealed(e Event) {
	if r.question != nil || r.armed != r.suspended || r.down {
		return
	}
	if !r.armed && r.now < r.suspendedAt+r.cfg.SettleAfter {
		return // members that were gone already when it came, or that it met late
	}
	if !NeedsLease(r.strategy) {
		switch e.(type) {
		case Ordered, DownRequested:
			return // its own side decided
		}
		if !r.armed || r.now < r.suspendedAt+r.stableAfter() {
			return // no member can have decided yet
		}
	}
	r.ask(healed)
}

func (r *Resolver) ask(about doubt) {
	q := &question{about: about, until: r.now + r.cfg.SuspendTimeout, cleared: make(map[ID]bool)}
	if !NeedsLease(r.strategy) {
		q.until, q.silent = r.now+r.cfg.LeaseTimeout, true
	}
	q.notBefore, q.alone = r.now, about == paused && len(r.members) == 1
	r.question = q
}

// standing is what the newest verdict says of this member.
func (r *Resolver) standing() Standing {
	return r.verdict.Standing(r.self, r.get(r.self).Seen)
}

// onPartial follows a partial verdict. The rest may be on its way, so there is no hurry to ask. But a member
// that the whole verdict does not name is downed, and only the whole verdict says so.
func (r *Resolver) onPartial() {
	if r.question != nil || r.standing() != StandingUnknown {
		return
	}
	r.ask(untold)
	r.question.notBefore = r.now + r.cfg.LeaseRetry
	if r.cfg.WhenLeaseUnknown == UnknownDown {
		r.question.until = r.now + r.cfg.LeaseDeadline
	}
}

func (r *Resolver) questionAt() time.Duration {
	if q := r.question; q != nil {
		return min(q.due(), q.until)
	}
	return never
}

func (r *Resolver) runQuestion() {
	q := r.question
	if q != nil && q.about == untold && r.standing() != StandingUnknown {
		r.clear(fmt.Sprintf("verdict %d lists this member", r.verdict.Token))
		return
	}
	if q == nil || r.now < r.questionAt() {
		return
	}
	if q.inflight != 0 && r.now >= q.answerBy {
		q.inflight, q.silent = 0, true
	}
	switch {
	case r.now >= q.until:
		r.questionExpired()
		return
	case q.silent && r.allClear():
		return
	}
	q.notBefore = r.now + r.cfg.LeaseRetry
	if NeedsLease(r.strategy) {
		r.start(&q.attempt)
		r.emit(ReadLease{Attempt: q.inflight})
	}
	if (q.silent || q.about == paused) && q.about != torn {
		r.emit(AskStanding{})
	}
}

func (r *Resolver) questionExpired() {
	if NeedsLease(r.strategy) {
		r.goDown("no verdict check completed before the deadline: neither the lease store nor the other members answered")
		return
	}
	if r.clear("nobody objects") {
		r.unsure = false
	}
}

// checked follows the read that a question asked for.
func (r *Resolver) checked(err string) {
	q := r.question
	q.inflight, q.notBefore = 0, r.now+r.cfg.LeaseRetry
	if err == "" && !r.behind() && r.clear("the verdict in the lease does not down this member") {
		return
	}
	q.silent = true
	if q.about != torn && !r.allClear() {
		r.emit(AskStanding{})
	}
}

func (r *Resolver) onCleared(e Cleared) {
	if r.question == nil || r.get(e.From) == nil || e.Token < r.verdict.Token {
		return
	}
	r.inherit(e.Suspects)
	r.question.cleared[e.From] = !e.Unsure
	if r.question.silent {
		r.allClear()
	}
}

// allClear answers the question once no reachable member knows a verdict against this member. One answer is
// not enough: it may come from the same losing side. Members that were paused together know nothing, however
// many they are: they count next to a member that was not paused, or while no member is missing that may have
// decided. While others are unreachable the member stays suspended, and what it decides needs the store.
func (r *Resolver) allClear() bool {
	if r.question.about == torn {
		return false
	}
	others, sure := 0, 0
	for m := range r.each {
		if m.ID == r.self || m.Unreachable || !m.Downable() || m.apart() {
			continue // the last kind has no answer, or none of its own: it knows the cluster from the store only
		}
		others++
		isSure, cleared := r.question.cleared[m.ID]
		if !cleared {
			return false
		}
		if isSure {
			sure++
		}
	}
	switch {
	case others == 0 && r.suspects == 0 && !r.question.alone:
		return false // the members that may know have gone: only the store is left
	case others > 0 && sure == 0 && r.suspects == 0 && r.unsure && r.departed:
		return false
	}
	cleared := r.clear("no verdict against this member is known to " +
		plural(others, "reachable member", "reachable members"))
	if cleared && (sure > 0 || r.suspects == 0) {
		r.unsure = false
	}
	return cleared
}

// clear ends the question, unless the newest verdict downs this member or is a part.
func (r *Resolver) clear(why string) bool {
	if s := r.standing(); s == Out || s == StandingUnknown {
		return false
	}
	if r.question.about == paused {
		r.explain(TopicPaused, "back after the pause: %s", why)
	} else {
		r.explain(TopicHealed, "healed: %s", why)
	}
	r.question, r.lastChange, r.changes = nil, r.now, 0
	if NeedsLease(r.strategy) {
		r.recheckAt, r.rechecking, r.rechecks = r.now+r.stableAfter()+r.cfg.LeaseDeadline, 0, 0
	}
	return true
}

// tellers is how many of the first members of a side send it a verdict that downs them; two may be slow.
const tellers = 3

// checkStanding downs this member when the newest verdict leaves it out. The first members send it to the
// others.
func (r *Resolver) checkStanding() {
	if r.hasLeft(r.self) {
		r.goDown(fmt.Sprintf("this member is recorded to have left after verdict %d, and others may have begun anew without it", r.verdict.Token))
		return
	}
	if r.standing() != Out {
		return
	}
	if r.tellsSide() {
		r.tellVerdict()
	}
	why := fmt.Sprintf("verdict %d by %s does not list this member among its survivors: %s",
		r.verdict.Token, r.name(r.verdict.DecidedBy), r.verdict.Reason)
	if r.knowsNobodyOf(&r.verdict) {
		why += "; it names no member that this one knows: if it is another cluster's, give each cluster a lease of its own"
	}
	r.goDown(why)
}

// knowsNobodyOf reports whether a verdict names no member of this one's list, as that of another cluster does
// which uses the same lease. It may also come of a long pause, so it decides nothing.
func (r *Resolver) knowsNobodyOf(v *Verdict) bool {
	knows := func(id ID) bool { return id == r.self || r.get(id) != nil }
	return !slices.ContainsFunc(v.Survivors, knows) && !slices.ContainsFunc(v.Down, knows)
}

func (r *Resolver) tellsSide() bool { return r.placeAmongReachable() < tellers || r.race != nil }

// placeAmongReachable is this member's place among the members of its side, downed or not.
func (r *Resolver) placeAmongReachable() int {
	n := 0
	for m := range r.each {
		if m.ID == r.self {
			break
		}
		if r.hears(m) {
			n++
		}
	}
	return n
}

// readers is how many members read a lease that is not watched: one is enough, the others stand in for it.
const readers = 3

// maxBackoff is how often the pause between two rechecks doubles while the store does not answer.
const maxBackoff = 4

// recheck reads the store once more some time after a question: others may have suspected this member longer
// than it knows, and have decided after it asked. It matters where the verdict is not watched; nothing waits
// for it. There the first members go on reading now and then: a member has to notice that the store has
// forgotten (design rule 16).
func (r *Resolver) recheck() {
	if r.now < r.recheckDue() {
		return
	}
	r.recheckAt = r.now + (r.cfg.LeaseTimeout+r.cfg.HolderRetry)<<min(r.rechecks, maxBackoff)
	r.rechecking = r.next()
	r.rechecks++
	r.emit(ReadLease{Attempt: r.rechecking})
}

func (r *Resolver) recheckDue() time.Duration {
	switch {
	case r.question != nil:
		return never
	case r.recheckAt == never && r.readsNowAndThen():
		return r.readAt + max(r.stableAfter(), r.cfg.LeaseTimeout)
	default:
		return r.recheckAt
	}
}

// readsNowAndThen reports whether this member is one of those that read a lease that is not watched: the first
// ones, and a member that learned of the newest verdict by message alone.
func (r *Resolver) readsNowAndThen() bool {
	return !r.cfg.Watched && NeedsLease(r.strategy) && r.armed && r.read && r.race == nil &&
		(r.position(r.self) < readers || r.behind())
}

// Answer is the reply to the incarnation id, which had read the token seen when it started, when it asks for
// its standing (AskStanding): Told or Ordered with the decision, or Cleared. Nil: nothing yet, because this
// member cannot reach it and may be about to decide against it.
func (r *Resolver) Answer(id ID, seen uint64) Event {
	v := &r.verdict
	switch m := r.get(id); {
	case v.Standing(id, seen) == Out:
		part := Verdict{Token: v.Token, Down: []ID{id}, DecidedBy: v.DecidedBy, Reason: v.Reason, Partial: true}
		return Told{From: r.self, Verdict: part}
	case r.KeptOut(id, seen):
		return Ordered{From: r.self, Order: downedBefore(id)}
	case m != nil && m.Unreachable:
		return nil
	default:
		return Cleared{From: r.self, Token: v.Token, Unsure: r.unsure, Suspects: r.undecided()}
	}
}
