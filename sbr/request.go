package sbr

import (
	"fmt"
	"strings"
)

// An operator can down a member (design rule 15). With a lease that is a race like any other, whose proposal
// leaves the member out: it is as safe as every verdict, whatever the operator believes. Such a race answers
// the operator, and no member is downed because the race ends without a verdict. Without a lease it is an
// order, which only a leader can give.

// ownRace reports whether a race about what this member sees is under way. A request is none: it holds up
// neither the decision of this member nor its contact with the store, and ends where that decision begins.
func (r *Resolver) ownRace() bool { return r.race != nil && r.race.target == "" }

const overtaken = "this member decides now about everybody whom it cannot reach: wait for the verdict"

func (r *Resolver) onDownRequested(e DownRequested) {
	refused := r.refusal(e.ID)
	if refused == "" && r.race != nil {
		refused = "a race for the lease is under way: wait for its verdict"
	}
	if refused == "" && !NeedsLease(r.strategy) {
		if l := r.orderGiver(e.ID); l != r.self {
			refused = fmt.Sprintf("without a lease only %s can order that, the first member of this side that is "+
				"not the one to go: ask there", r.name(l))
		}
	}
	if refused != "" {
		r.emit(AnswerDownRequest{ID: e.ID, Outcome: Held, Text: refused})
		return
	}
	d := r.requested(e.ID, e.Reason)
	if d.Final.NeedsLease() {
		r.explainDecision(d)
		r.race = &race{
			attempt: attempt{notBefore: r.now}, since: r.lastChange, target: e.ID, reason: e.Reason,
		}
		return
	}
	r.act(d)
	r.removeAt = r.now + removeRetry // it got the decision just now, with the reason
	r.emit(AnswerDownRequest{ID: e.ID, Outcome: Granted,
		Text: r.name(e.ID) + " is downed by an order of this member"})
}

// refusal says why the member cannot be downed from here now; empty if it can.
func (r *Resolver) refusal(id ID) string {
	m, self := r.get(id), r.get(r.self)
	switch {
	case id == r.self:
		return "a member does not down itself: stop it"
	case m == nil:
		return string(id) + " is no member here"
	case !m.Downable():
		return fmt.Sprintf("%s is %s already", m.Name, m.Status)
	case r.hasLeft(id) && !m.Unreachable:
		return m.Name + " is recorded to have left in peace: nothing is left to decide"
	case !r.armed || !self.counted() || r.standing() == Out:
		return "this member takes no part in decisions yet: ask another one"
	case r.question != nil:
		return "this member does not know yet what was decided about itself"
	case NeedsLease(r.strategy) && r.behind():
		return fmt.Sprintf("the lease store holds less than verdict %d, which is known here: wait until it was written back", r.verdict.Token)
	}
	var others []string
	for _, s := range r.undecided() {
		if s != id {
			others = append(others, r.name(s))
		}
	}
	if len(others) > 0 {
		return fmt.Sprintf("nothing is decided yet about %s, which cannot be reached: wait for the resolver",
			strings.Join(others, ", "))
	}
	return ""
}

// orderGiver is the member whose order to down the target the others obey: the first of this side.
func (r *Resolver) orderGiver(target ID) ID {
	for m := range r.each {
		if !m.Unreachable && m.Status == Up && m.ID != target {
			return m.ID
		}
	}
	return r.self
}

// requested is the decision that an operator asks for: it downs the target, and the unreachable members that
// are leaving.
func (r *Resolver) requested(target ID, reason string) Decision {
	d := Decision{Choice: Choice{Kind: DownUnreachable, Reason: "an operator downs " + r.name(target)}}
	if NeedsLease(r.strategy) {
		d.Kind = AcquireLeaseAndDownUnreachable
	}
	if reason != "" {
		d.Reason += ": " + reason
	}
	d.Final = d.Kind
	for m := range r.each {
		if m.ID == target || d.Final.downs(m, false) {
			d.Down = append(d.Down, m.ID)
		}
	}
	return d
}

// requestOver ends the race of a request if what the operator saw has changed.
func (r *Resolver) requestOver() bool {
	why := r.refusal(r.race.target)
	if why == "" && r.race.since != r.lastChange {
		why = "the membership has changed meanwhile: look at it, and ask again"
	}
	if why != "" {
		r.endRequest("%s", why)
	}
	return why != ""
}

// requestJudged follows a new verdict. It is not what the operator saw, unless it downs the member.
func (r *Resolver) requestJudged() {
	rc := r.race
	if rc == nil || rc.target == "" {
		return
	}
	if m := r.get(rc.target); m == nil || m.Status != Down {
		r.endRequest("verdict %d was written meanwhile: look at it, and ask again", r.verdict.Token)
		return
	}
	r.race = nil
	text := fmt.Sprintf("%s is downed by verdict %d", r.name(rc.target), r.verdict.Token)
	r.emit(AnswerDownRequest{ID: rc.target, Outcome: Granted, Text: text})
}

// endRequest ends the race of a request, if there is one, and says what is known of its end.
func (r *Resolver) endRequest(format string, args ...any) {
	rc := r.race
	if rc == nil || rc.target == "" {
		return
	}
	a := AnswerDownRequest{ID: rc.target, Outcome: Held, Text: fmt.Sprintf(format, args...)}
	if rc.writes > 0 {
		a.Outcome = Unknown
	}
	r.race = nil
	r.emit(a)
}
