package sbr

import (
	"fmt"
	"time"
)

// attempt is a request to the store that is repeated until it has an answer.
type attempt struct {
	inflight  uint64        // the attempt that has no answer yet; zero: none
	answerBy  time.Duration // when inflight counts as unanswered
	notBefore time.Duration // the start of the next attempt
}

func (a *attempt) due() time.Duration {
	if a.inflight != 0 {
		return a.answerBy
	}
	return a.notBefore
}

func (r *Resolver) start(a *attempt) {
	a.inflight, a.answerBy = r.next(), r.now+r.cfg.LeaseTimeout+r.cfg.LeaseRetry
}

// race is one side's attempt to get the lease, seen from the member that makes it.
type race struct {
	attempt
	since     time.Duration // lastChange when it began: a changed side begins anew
	deadline  time.Duration // when the side gives up; zero until the first attempt
	base      uint64        // the token that the attempt was built on
	watching  bool          // an unreachable holder is being watched
	suspended bool          // past the deadline under the policy suspend
	heard     bool          // the last attempt had an answer: the store can be reached from here
	unrest    bool          // the view never came to rest: it may change further
	asked     int           // how many members of this side were asked to help
	lastErr   string        // why the last attempt without an answer had none

	// An operator's request (request.go): the member that goes down, and why. Without one it is empty.
	target ID
	reason string
	writes int // how many writes have no answer that counts
}

// runRace makes the next attempt when it is due. It keeps listening meanwhile: a heal, or a verdict that
// covers all unreachable members, ends the race; a changed side starts anew (design deviation 1).
func (r *Resolver) runRace() {
	rc := r.race
	if rc == nil {
		return
	}
	if rc.inflight != 0 {
		if r.now < rc.answerBy {
			return
		}
		r.attemptUnknown("no answer in time")
	}
	switch {
	case rc.target != "" && r.requestOver():
	case rc.target == "" && r.suspects == 0:
		r.race = nil
		r.explain(TopicHealed, "the race for the lease ends: every member that was not downed is reachable")
	case rc.since != r.lastChange && !rc.unrest:
		r.race = nil
		r.explain(TopicHealed, "the race for the lease starts again after %v: the view changed", r.stableAfter())
	case rc.deadline != 0 && r.now >= rc.deadline && !rc.watching:
		// Before the next attempt is due, or NextDeadline would not advance.
		r.giveUp()
	case r.now < rc.notBefore:
	default:
		r.tryLease()
	}
}

func (r *Resolver) raceAt() time.Duration {
	rc := r.race
	switch {
	case rc == nil:
		return never
	case rc.inflight == 0 && rc.deadline != 0 && !rc.watching:
		return min(max(rc.notBefore, r.now), rc.deadline)
	default:
		return rc.due()
	}
}

func (r *Resolver) tryLease() {
	rc := r.race
	if rc.deadline == 0 {
		rc.deadline = r.now + r.leaseDeadline()
	}
	if !r.knowsRecord() || r.mustRead() {
		r.startAttempt()
		if rc.target == "" {
			// A read without an answer decides nothing later. The last one has a moment.
			rc.answerBy = min(rc.answerBy, max(rc.deadline, r.now+passOnStep))
		}
		r.emit(ReadLease{Attempt: rc.inflight})
		return
	}
	var d Decision
	if rc.target != "" {
		d = r.requested(rc.target, rc.reason)
	} else {
		d = r.judged()
		if r.otherDecision(d) {
			return
		}
	}
	r.startAttempt()
	rc.writes++
	r.emit(AcquireLease{
		Attempt: rc.inflight, Verdict: r.proposal(d), Base: r.record.Token, BaseBy: r.verdict.DecidedBy,
		TakeOver: r.takeOver(),
	})
}

// mustRead reports whether the store has to answer a read before this race writes: it was silent when the
// race began. A write would have to be waited for past the deadline, because it may be granted late.
func (r *Resolver) mustRead() bool {
	rc := r.race
	return rc.target == "" && rc.writes == 0 && rc.lastErr != "" && !rc.heard
}

// otherDecision ends the race if what the members report has changed so that the decision needs no lease any
// more: it has to stand for stable-after first, because no lease makes it safe to be wrong.
func (r *Resolver) otherDecision(d Decision) bool {
	if d.Final.NeedsLease() {
		return false
	}
	if r.race.unrest {
		r.race, r.changes, r.firstChange = nil, max(r.changes, 1), r.now-r.unstableAfter()
		r.explain(TopicHealed, "nothing has lasted for %v any more: the race for the lease ends", r.stableAfter())
		return true
	}
	r.race, r.lastChange = nil, r.now
	r.explain(TopicHealed, "the decision would be %s now: it must be stable for %v first", d.Final,
		r.stableAfter())
	return true
}

// knowsRecord reports whether a proposal can be built on what was read: the newest verdict, whole.
func (r *Resolver) knowsRecord() bool {
	return r.read && !r.verdict.Partial && !r.behind()
}

func (r *Resolver) startAttempt() {
	r.start(&r.race.attempt)
	r.race.base = r.record.Token
}

// proposal is the verdict that this side writes if it wins. Its survivors are on this side, were not downed
// by the decision, and stand in the last verdict: the survivors only shrink (design section 5). The writer
// itself need not be one of them: another group may be the largest one.
func (r *Resolver) proposal(d Decision) Verdict {
	v := Verdict{DecidedBy: r.self, Reason: d.Reason}
	downed := make(set, len(d.Down))
	for _, id := range d.Down {
		downed.add(id)
	}
	for m := range r.each {
		switch {
		case !m.Downable(), r.hasLeft(m.ID) &&
			!m.Unreachable: // neither a survivor nor downed: it is about to be gone
		case m.Unreachable && d.Group == nil && (!r.race.unrest || r.lasts(m.since)),
			downed.has(m.ID), !r.verdict.Eligible(m.ID, m.Seen):
			v.Down = append(v.Down, m.ID)
		default:
			v.Survivors = append(v.Survivors, m.ID)
		}
	}
	v.Normalize()
	return v
}

// takeOver names the holder if it is on this side: it is not an enemy (design deviation 5).
func (r *Resolver) takeOver() []ID {
	if h := r.get(r.record.Holder); h != nil && h.ID != r.self && r.hears(h) {
		return []ID{h.ID}
	}
	return nil
}

func (r *Resolver) onLeaseAnswer(e LeaseAnswer) {
	mine := r.race != nil && r.race.inflight == e.Attempt
	if mine {
		r.race.answered(r.now, r.leaseDeadline(), e.Outcome != Unknown)
	}
	switch e.Outcome {
	case Granted:
		r.won(e.Record)
		r.heldSince = e.Attempt
	case Held:
		if mine {
			r.race.writes--
		}
		r.learnRecord(e.Record, false)
		if mine && r.race != nil {
			r.denied()
		}
	default:
		if mine {
			r.attemptUnknown(e.Err)
		}
	}
}

// raceRead follows the read that a race needed before it could propose anything.
func (r *Resolver) raceRead(e LeaseRead) {
	switch rc := r.race; {
	case e.Err != "":
		r.attemptUnknown(e.Err)
	case !r.knowsRecord():
		// A store that is behind what this member knows is no answer: wait for the correction, but not for
		// ever.
		r.attemptUnknown(fmt.Sprintf("the store holds less than verdict %d, which is known here", r.verdict.Token))
	default:
		rc.answered(r.now, r.leaseDeadline(), true)
		rc.notBefore = max(rc.notBefore, r.now)
	}
}

// won follows a granted write, also one that came too late for its race: what stands in the lease binds.
func (r *Resolver) won(rec Record) {
	r.learnRecord(rec, false)
	r.endRequest("another verdict has the token %d", rec.Token)
	r.race, r.changes = nil, 0
	r.holding, r.releaseAt, r.passAt = true, never, never
	for m := range r.each {
		m.mustGo = contains(r.verdict.Down, m.ID)
	}
	r.lastChange = r.now
	r.tellVerdict()
}

// denied follows an attempt that wrote nothing. Being denied is not being down: only a verdict says that.
func (r *Resolver) denied() {
	rc := r.race
	holder := r.get(r.record.Holder)
	switch {
	case rc.target == "" && r.suspects == 0:
		// the verdict that was read covers all unreachable members: runRace ends the race
	case r.record.Token != rc.base:
		rc.notBefore = r.now // another verdict was written: build on it
	case holder != nil && r.hears(holder):
		rc.notBefore = r.now + r.cfg.LeaseRetry
	case rc.target != "":
		r.endRequest("%s holds the lease and cannot be reached from here: the lease is free once its heartbeat-timeout is over", r.name(r.record.Holder))
	default:
		if !rc.watching {
			r.explain(TopicLease, "the lease is held by %s, which cannot be reached from here, and its verdict does not cover this side: watching the lease", r.record.Holder)
		}
		rc.watching, rc.deadline = true, 0
		rc.notBefore = r.now + r.cfg.HolderRetry
	}
}

// attemptUnknown follows an attempt without an answer. The side asks more and more of its members to try
// instead: not knowing is retried inside the deadline, never read as granted, and not as denied either.
func (r *Resolver) attemptUnknown(why string) {
	rc := r.race
	rc.answered(r.now, r.leaseDeadline(), false)
	news := why != rc.lastErr
	rc.lastErr = why
	rc.notBefore = r.now + r.cfg.LeaseRetry
	rc.watching = false
	if news {
		r.explain(TopicLease, "the outcome of the lease request is unknown: %s", why)
	}
	if rc.target != "" || r.suspects == 0 {
		return // the operator asked this member, or the race ends: a verdict has come
	}
	// Those asked before are asked again: the request may have been lost, and a second one does no harm.
	others := r.reachable()
	if rc.asked = min(2*rc.asked+1, len(others)); rc.asked > 0 {
		r.emit(AskToRace{Targets: others[:rc.asked], Suspects: r.undecided()})
	}
}

// answered ends an attempt. A store that answers is no unknown store: the time to learn its state begins
// anew.
func (rc *race) answered(now, deadline time.Duration, heard bool) {
	rc.inflight, rc.heard = 0, heard
	if heard {
		rc.suspended = false
	}
	if heard || rc.deadline == 0 {
		rc.deadline = now + deadline
	}
}

// giveUp ends a race in which no member of this side reached the store.
func (r *Resolver) giveUp() {
	rc := r.race
	if rc.target != "" {
		r.endRequest("the lease store gave no answer within %v (%s)", r.leaseDeadline(), rc.lastErr)
		return
	}
	if r.cfg.WhenLeaseUnknown == UnknownSuspend && !rc.suspended {
		rc.suspended = true
		rc.deadline = r.now + r.cfg.SuspendTimeout
		r.explain(TopicLease,
			"no member here got an answer from the lease store within %v (%s): suspended for at most %v",
			r.leaseDeadline(), rc.lastErr, r.cfg.SuspendTimeout)
		r.tryLease()
		return
	}
	d := r.judged()
	if r.otherDecision(d) {
		return
	}
	v := r.view()
	d = d.Reversed(&v, r.cfg.DownAllWhenIndirectlyConnected)
	d.Reason = fmt.Sprintf("no member of this side got an answer from the lease store before the deadline (%s)",
		rc.lastErr)
	r.act(d)
}

// onAsked races in the place of a member of this side that cannot reach the store. A member to which nobody is
// unreachable has nothing to race for: it tells the verdict that it knows, which the sender may have missed.
func (r *Resolver) onAsked(e Asked) {
	m := r.get(e.From)
	if m == nil || !r.hears(m) || m.Status == Down {
		return
	}
	name := m.Name
	r.inherit(e.Suspects)
	if e.Contact {
		r.othersHaveContact()
		return
	}
	if r.suspects == 0 && r.question == nil && r.verdict.Token > 0 {
		r.tell([]ID{e.From})
	}
	if !r.mayDecide() || r.ownRace() || !NeedsLease(r.strategy) {
		return
	}
	if r.now < r.lastChange+r.stableAfter() || r.isSilent(r.now) {
		// A view that is changing is no ground for a decision, and a store that failed here as well is tried
		// first.
		r.contact.wanted, r.contact.standsIn, r.contact.asker = true, true, e.From
		return
	}
	r.explain(TopicLease, "asked by %s to race for the lease in its place", name)
	r.decide()
	if r.race != nil {
		// The leader may ask before it has waited for the delay of a minority. What has passed of it counts.
		r.race.notBefore = max(r.now, r.race.notBefore-(r.now-r.lastChange-r.stableAfter()))
	}
}
