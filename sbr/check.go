package sbr

import (
	"fmt"
	"time"
)

// check is a member's question about its own fate: after a pause of its process, or after a heal, when the others may have
// decided without it. Until it is answered the member is suspended and decides nothing.
type check struct {
	gap      time.Duration // how long the process did not run; zero after a heal
	until    time.Duration
	retryAt  time.Duration
	inflight uint64
	answerBy time.Duration
	failed   bool // the store did not answer: the members are asked as well
	cleared  set  // the members that know nothing against this one
}

// onResumed follows a pause of the whole process (promise S2): whatever this member knew may be history, so it reads its
// fate before it does anything else.
func (r *Resolver) onResumed(gap time.Duration) {
	r.race, r.changes, r.lastChange = nil, 0, r.now
	r.explain(TopicPaused, "this process did not run for %v: it learns its fate before it does anything else", gap)
	r.startCheck(gap)
}

// onHealed follows the return of the last unreachable member. The others may have decided meanwhile, and kept this one out;
// it might not hear of it by itself.
func (r *Resolver) onHealed() {
	if !r.armed || r.check != nil || !r.suspended {
		return
	}
	if !NeedsLease(r.strategy) && r.now < r.suspendedAt+r.cfg.StableAfter {
		return // nobody can have decided yet
	}
	r.startCheck(0)
}

func (r *Resolver) startCheck(gap time.Duration) {
	until := r.now + r.cfg.LeaseTimeout
	if NeedsLease(r.strategy) {
		until = r.now + r.cfg.SuspendTimeout
	}
	r.check = &check{gap: gap, until: until, retryAt: r.now, cleared: make(set), failed: gap > 0 || !NeedsLease(r.strategy)}
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
	if c == nil || r.now < r.checkAt() {
		return
	}
	if c.inflight != 0 && r.now >= c.answerBy {
		c.inflight, c.failed = 0, true
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
	if c.failed {
		r.emit(AskStanding{})
	}
}

func (r *Resolver) checkExpired() {
	if NeedsLease(r.strategy) {
		r.goDown(fmt.Sprintf("neither the lease store nor the other members could tell this member its fate within %v", r.cfg.SuspendTimeout))
		return
	}
	r.clear("nobody objects")
}

// checked follows the read that a check asked for.
func (r *Resolver) checked(err string) {
	if err == "" {
		r.clear("the lease does not speak against this member")
		return
	}
	r.check.inflight, r.check.failed, r.check.retryAt = 0, true, r.now+r.cfg.LeaseRetry
	r.emit(AskStanding{})
}

func (r *Resolver) onCleared(e Cleared) {
	from := r.get(e.From)
	if r.check == nil || from == nil || e.Token < r.verdict.Token {
		return
	}
	r.check.cleared[e.From] = struct{}{}
	r.allClear()
}

// allClear ends the check once everybody who can be reached knows nothing against this member. One answer is not enough: it
// may come from another member of the same losing side.
func (r *Resolver) allClear() bool {
	others := r.reachable(r.self)
	for _, id := range others {
		if !r.check.cleared.has(id) {
			return false
		}
	}
	if len(others) == 0 && r.suspects == 0 && len(r.members) > 1 {
		return false
	}
	r.clear(fmt.Sprintf("%d reachable members know nothing against this member", len(others)))
	return true
}

func (r *Resolver) clear(why string) {
	if self := r.get(r.self); r.verdict.Standing(r.self, self.Seen) == Out {
		return // checkStanding has the last word
	}
	if r.check.gap > 0 {
		r.explain(TopicPaused, "back after the pause: %s", why)
	} else {
		r.explain(TopicHealed, "healed: %s", why)
	}
	r.check, r.lastChange = nil, r.now
}
