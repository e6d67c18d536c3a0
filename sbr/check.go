package sbr

import (
	"cmp"
	"fmt"
	"time"
)

// check is a member's question about its own fate: after a pause of its process; after a heal, when the others may have decided
// without it; or when it was told a verdict in part, and not whether that lists it. Until it is answered the member is
// suspended and decides nothing.
type check struct {
	gap      time.Duration // how long the process did not run; zero after a heal
	untold   bool          // it is about a verdict that is known in part only
	conflict bool          // two verdicts have one token: only the store can say which one counts
	alone    bool          // there was no other member before the pause, so nobody else needs to be asked
	until    time.Duration
	retryAt  time.Duration
	inflight uint64
	answerBy time.Duration
	failed   bool // the store did not answer, or there is none: what the members say counts
	asking   bool // the members are asked, too
	cleared  set  // the members that know nothing against this one
	unsure   set  // those of them that stood still as well
}

// onResumed follows a pause of the whole process (promise S2): whatever this member knew may be history, so it reads its
// fate before it does anything else.
func (r *Resolver) onResumed(e Resumed) {
	r.endRequest("this process did not run for %v", e.Gap)
	r.race, r.changes, r.lastChange, r.rechecking = nil, 0, r.now, 0
	r.unsure, r.departed = true, false
	why := cmp.Or(e.Why, "this process did not run")
	r.explain(TopicPaused, "%s for %v: it learns its fate before it does anything else", why, e.Gap)
	r.startCheck(e.Gap)
}

// onHealed follows an event after which nobody is unreachable any more, though no verdict says why: the last one came back, left,
// or was downed by an order. They may have decided before that, and kept this member out; it might not hear of it by itself.
func (r *Resolver) onHealed(e Event) {
	if r.check != nil || r.armed != r.suspended || r.down {
		return
	}
	if !r.armed && r.now < r.firstChange+r.cfg.SettleAfter {
		return // members that were gone already when it came, or that it met late
	}
	if !NeedsLease(r.strategy) {
		switch e.(type) {
		case Ordered, DownRequested:
			return // its own side decided
		}
		if !r.armed || r.now < r.suspendedAt+r.cfg.StableAfter {
			return // nobody can have decided yet
		}
	}
	r.startCheck(0)
}

func (r *Resolver) startCheck(gap time.Duration) {
	until := r.now + r.cfg.LeaseTimeout
	if NeedsLease(r.strategy) {
		until = r.now + r.cfg.SuspendTimeout
	}
	r.check = &check{gap: gap, alone: gap > 0 && len(r.members) == 1, until: until, retryAt: r.now, cleared: make(set), unsure: make(set), failed: !NeedsLease(r.strategy), asking: gap > 0 || !NeedsLease(r.strategy)}
}

// standing is what the newest verdict says of this member.
func (r *Resolver) standing() Standing {
	return r.verdict.Standing(r.self, r.get(r.self).Seen)
}

// onPartial follows a verdict that was told in part. The rest of it may be on its way, so there is no hurry to ask; but whoever
// is named nowhere in it is out, and only the whole verdict says so.
func (r *Resolver) onPartial() {
	if r.check != nil || r.standing() != StandingUnknown {
		return
	}
	r.startCheck(0)
	r.check.untold, r.check.retryAt = true, r.now+r.cfg.LeaseRetry
	if r.cfg.WhenLeaseUnknown == UnknownDown {
		r.check.until = r.now + r.cfg.LeaseDeadline
	}
}

func (r *Resolver) checkAt() time.Duration {
	switch c := r.check; {
	case c == nil:
		return never
	case c.inflight != 0:
		return min(c.answerBy, c.until)
	default:
		return min(c.retryAt, c.until)
	}
}

func (r *Resolver) runCheck() {
	c := r.check
	if c != nil && c.untold && r.standing() != StandingUnknown {
		r.clear(fmt.Sprintf("verdict %d lists this member", r.verdict.Token))
		return
	}
	if c == nil || r.now < r.checkAt() {
		return
	}
	if c.inflight != 0 && r.now >= c.answerBy {
		c.inflight, c.failed, c.asking = 0, true, true
	}
	switch {
	case r.now >= c.until:
		r.checkExpired()
		return
	case c.failed && r.allClear():
		return
	}
	c.retryAt = r.now + r.cfg.LeaseRetry
	if NeedsLease(r.strategy) {
		c.inflight = r.next()
		c.answerBy = r.now + r.cfg.LeaseTimeout + r.cfg.LeaseRetry
		r.emit(ReadLease{Attempt: c.inflight})
	}
	if c.asking && !c.conflict {
		r.emit(AskStanding{})
	}
}

func (r *Resolver) checkExpired() {
	if NeedsLease(r.strategy) {
		r.goDown("neither the lease store nor the other members could tell this member its fate in time")
		return
	}
	if r.clear("nobody objects") {
		r.unsure = false
	}
}

// checked follows the read that a check asked for.
func (r *Resolver) checked(err string) {
	c := r.check
	c.inflight, c.retryAt = 0, r.now+r.cfg.LeaseRetry
	if err == "" && !r.behind() && r.clear("the lease does not speak against this member") {
		return
	}
	c.failed, c.asking = true, true
	if !c.conflict && !r.allClear() {
		r.emit(AskStanding{})
	}
}

func (r *Resolver) onCleared(e Cleared) {
	if r.check == nil || r.get(e.From) == nil || e.Token < r.verdict.Token {
		return
	}
	r.inherit(e.Suspects)
	r.check.cleared[e.From] = struct{}{}
	if e.Unsure {
		r.check.unsure[e.From] = struct{}{}
	} else {
		delete(r.check.unsure, e.From)
	}
	if r.check.failed {
		r.allClear()
	}
}

// allClear ends the check once everybody who can be reached knows nothing against this member. One answer is not enough: it
// may come from another member of the same losing side. Those that stood still together know nothing, however many they are: they
// count only beside one that did not, or while nobody is missing who may have decided. While others are unreachable the member
// stays suspended, and what it decides needs the store: then it need not be sure.
func (r *Resolver) allClear() bool {
	if r.check.conflict {
		return false
	}
	others, sure := 0, 0
	for i := range r.members {
		m := &r.members[i]
		if m.ID == r.self || m.Unreachable || !m.Downable() || m.Status == Joining && !m.awaiting {
			continue // the last kind runs no resolver: it cannot answer
		}
		if others++; !r.check.cleared.has(m.ID) {
			return false
		}
		if !r.check.unsure.has(m.ID) {
			sure++
		}
	}
	switch {
	case others == 0 && r.suspects == 0 && !r.check.alone:
		return false // whoever could tell has gone: only the store is left
	case others > 0 && sure == 0 && r.suspects == 0 && r.unsure && r.departed:
		return false
	}
	cleared := r.clear("nothing against this member is known to " + plural(others, "reachable member", "reachable members"))
	if cleared && (sure > 0 || r.suspects == 0) {
		r.unsure = false
	}
	return cleared
}

// clear ends the check, unless the newest verdict downs this member (checkStanding has the last word) or is known in part only.
func (r *Resolver) clear(why string) bool {
	if s := r.standing(); s == Out || s == StandingUnknown {
		return false
	}
	if r.check.gap > 0 {
		r.explain(TopicPaused, "back after the pause: %s", why)
	} else {
		r.explain(TopicHealed, "healed: %s", why)
	}
	r.check, r.lastChange, r.changes = nil, r.now, 0
	if NeedsLease(r.strategy) {
		r.recheckAt, r.rechecking, r.rechecks = r.now+r.cfg.StableAfter+r.cfg.LeaseDeadline, 0, 0
	}
	return true
}

// readers is how many members read a lease that is not watched: one is enough, the others stand in for it.
const readers = 3

// maxBackoff is how often the pause between two rechecks doubles while the store does not answer.
const maxBackoff = 4

// recheck reads the store once more some time after a check: others may have suspected this member longer than it knows, and
// have decided, or been about to, when it asked. It matters where the verdict is not watched; nobody waits for it. There the first
// members go on reading now and then: somebody has to notice that the store has forgotten (design rule 16).
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
	case r.check != nil:
		return never
	case r.recheckAt == never && r.readsNowAndThen():
		return r.readAt + max(r.cfg.StableAfter, r.cfg.LeaseTimeout)
	default:
		return r.recheckAt
	}
}

// readsNowAndThen reports whether this member is one of those that read a lease that is not watched.
func (r *Resolver) readsNowAndThen() bool {
	return !r.cfg.Watched && NeedsLease(r.strategy) && r.armed && r.read && r.race == nil && r.position(r.self) < readers
}

// Answer is what to tell the incarnation id, which had read the token seen when it started, when it asks for its standing
// (AskStanding): Told or Ordered with its fate, or Cleared. Nil: nothing yet, because this member cannot reach it
// and may be about to decide against it.
func (r *Resolver) Answer(id ID, seen uint64) Event {
	v := &r.verdict
	switch m := r.get(id); {
	case v.Standing(id, seen) == Out:
		return Told{From: r.self, Verdict: Verdict{Token: v.Token, Down: []ID{id}, DecidedBy: v.DecidedBy, Reason: v.Reason, Partial: true}}
	case r.KeptOut(id, seen):
		return Ordered{From: r.self, Order: Order{Kind: DownUnreachable, Down: []ID{id}, Reason: "this incarnation was downed before"}}
	case m != nil && m.Unreachable:
		return nil
	default:
		return Cleared{From: r.self, Token: v.Token, Unsure: r.unsure, Suspects: r.undecided()}
	}
}
