package sbr

import "time"

// contact is what a member knows, while suspects are undecided, of whether the lease store can be reached
// (design rule 18). The deadline of a side that cannot reach it runs from the first of the tries in a row
// that failed, and not from the decision: by then the winners may have decided.
//
// The leader of a side reads the store. While that fails the leader asks more and more members, each of which
// reads once. A member that has an answer reports it, and does not wait for its turn to race. So a side is
// out of contact only when no member of it has contact, and every member was either asked, or tries once
// before it obeys a down order (lastChance). Requests and answers that are lost can cost the leader, which
// has no contact, but never the side. A try that is under way when the deadline is over makes room for a last
// one, so that the side is given up for a silence that has lasted for all of the deadline, and known to be
// before stable-after is over where that is longer than the deadline and one operation. While the store is
// silent a race reads before it writes: a read without an answer decides nothing later, but a write has to be
// waited for past the deadline, because it may be granted late. Only tries of this process since its last
// pause count, so a pause is no silence. The promises about what is safe do not rest on any of this: a member
// that is downed because the store does not answer could have been downed at any time.
type contact struct {
	attempt   // the read
	began     time.Duration
	silent    bool          // the last try failed
	since     time.Duration // the start of the first try of those in a row that failed; only while silent
	failedAt  time.Duration // when the last of them failed
	heard     bool          // the last try had an answer
	wanted    bool          // this member was asked, and has not read since
	standsIn  bool          // it was asked: if it has contact it races without waiting for its turn
	asker     ID            // the member that is told of the contact
	asked     int           // how many others it asked
	others    bool          // another member has reported contact
	othersAt  time.Duration // when that was
	lastError string
}

// keepContact reads the store when that is due.
func (r *Resolver) keepContact() {
	c := &r.contact
	if r.suspects == 0 || r.question != nil {
		*c = contact{}
		return
	}
	if r.now < r.contactAt() {
		return
	}
	if c.inflight != 0 && r.now >= c.answerBy {
		r.readFailed("no answer in time")
		if r.now < r.contactAt() {
			return
		}
	}
	c.wanted, c.began = false, r.now
	r.start(&c.attempt)
	r.emit(ReadLease{Attempt: c.inflight})
}

// contactAt is when keepContact is due: a race of this member's own tries the store itself.
func (r *Resolver) contactAt() time.Duration {
	c := &r.contact
	switch {
	case !r.mayDecide() || r.ownRace() || !NeedsLease(r.strategy):
		return never
	case c.inflight != 0 || c.wanted || r.position(r.self) == 0:
		at := c.due()
		if over := r.silenceOver(); c.began < over {
			at = min(at, over)
		}
		return max(at, r.lastChange+1) // once all that is noticed at this moment is known
	default:
		return never
	}
}

// contactRead follows a read that keepContact asked for.
func (r *Resolver) contactRead(err string) {
	if err != "" {
		r.readFailed(err)
		return
	}
	c := &r.contact
	c.inflight, c.heard, c.silent, c.asked = 0, true, false, 0
	c.notBefore = r.now + r.cfg.LeaseTimeout
	if c.asker != "" {
		r.emit(AskToRace{Targets: []ID{c.asker}, Suspects: r.undecided(), Contact: true})
		c.asker = ""
	}
}

// othersHaveContact follows the report of a member that was asked: the deadline begins anew.
func (r *Resolver) othersHaveContact() {
	r.contact.others, r.contact.othersAt = true, r.now
	if rc := r.race; rc != nil && rc.target == "" && rc.deadline != 0 {
		rc.deadline = max(rc.deadline, r.now+r.leaseDeadline())
	}
}

func (r *Resolver) readFailed(why string) {
	c := &r.contact
	if !r.isSilent(r.now) {
		c.since = c.began
		r.explain(TopicLease, "the lease store gives no answer (%s): the deadline of %v runs",
			why, r.leaseDeadline())
	}
	c.inflight, c.heard, c.silent, c.failedAt, c.lastError = 0, false, true, r.now, why
	c.notBefore = r.now + r.cfg.LeaseRetry
	if r.position(r.self) != 0 || r.ownRace() {
		return
	}
	others, more := r.reachable(), 2*c.asked+1
	if c.others && r.now-c.othersAt <= 2*(r.cfg.LeaseTimeout+r.cfg.LeaseRetry) {
		more = max(c.asked, 1) // the members that were asked are enough
	}
	if c.asked = min(more, len(others)); c.asked > 0 {
		r.emit(AskToRace{Targets: others[:c.asked], Suspects: r.undecided()})
	}
}

// isSilent reports whether the store has failed every try up to the moment at. If no try failed for a while,
// the state is unknown: false.
func (r *Resolver) isSilent(at time.Duration) bool {
	return r.contact.silent && at-r.contact.failedAt <= 2*(r.cfg.LeaseTimeout+r.cfg.LeaseRetry)
}

// silenceOver is when the store has been silent for the deadline; never while it is not silent.
func (r *Resolver) silenceOver() time.Duration {
	if !r.isSilent(r.now) {
		return never
	}
	from := r.contact.since
	if r.contact.others {
		from = max(from, r.contact.othersAt)
	}
	return from + r.leaseDeadline()
}

// resumeSilence starts a race in the middle of the silence of the store. If its deadline is over, there is
// only the time left in which the last try has its answer, or a member that was asked and has contact wins,
// and reports it.
func (r *Resolver) resumeSilence() {
	rc, c, over := r.race, &r.contact, r.silenceOver()
	if over == never {
		return
	}
	rc.lastErr, rc.asked = c.lastError, c.asked
	if over > r.now {
		rc.deadline = max(over, rc.notBefore+1) // the delay of a minority must not use its last try up
		return
	}
	r.explain(TopicLease, "the lease store has given no answer for %v (%s), and the deadline is %v",
		(r.now - c.since).Round(100*time.Millisecond), c.lastError, r.leaseDeadline())
	rc.deadline = r.now + passOnStep
	rc.inflight, rc.answerBy, rc.notBefore = c.inflight, c.answerBy, max(rc.notBefore, rc.deadline)
	if c.failedAt > over {
		rc.answerBy = min(rc.answerBy, rc.deadline) // the last try has failed already
	}
	if others := r.reachable(); len(others) > 0 {
		r.emit(AskToRace{Targets: others, Suspects: r.undecided()})
	}
}
