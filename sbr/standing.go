package sbr

import (
	"fmt"
	"slices"
	"time"
)

// tellers is how many of the first members of a side tell it a verdict that downs them; one is enough, two may be slow.
const tellers = 3

// removeBackups is how many rounds the others leave to the leader before they remove downed members themselves.
const removeBackups = 3

// passers is how many members of a surviving side stand ready to pass a verdict on.
const passers = 8

func (r *Resolver) onLeaseRead(e LeaseRead) {
	racing := r.race != nil && r.race.inflight == e.Attempt
	checking := r.check != nil && r.check.inflight == e.Attempt
	if e.Err == "" {
		r.learnRecord(e.Record, checking)
		if r.rechecking == e.Attempt {
			r.recheckAt, r.rechecks = never, 0
		}
		if (racing || checking || r.rechecking == e.Attempt) && !r.behind() {
			r.unsure = false // it was asked after the pause
		}
	}
	if racing && r.race != nil {
		r.raceRead(e)
	}
	if checking {
		r.checked(e.Err)
	}
}

// raceRead follows the read that a race needed before it could propose anything.
func (r *Resolver) raceRead(e LeaseRead) {
	switch rc := r.race; {
	case e.Err != "":
		r.attemptUnknown(e.Err)
	case !r.knowsRecord():
		// A store that is behind what this member knows is no answer: wait for the correction, but not for ever.
		r.attemptUnknown(fmt.Sprintf("the store holds less than verdict %d, which is known here", r.verdict.Token))
	default:
		rc.answered(r.now, &r.cfg, true)
		rc.notBefore = r.now
	}
}

func (r *Resolver) onLeaseObserved(rec Record) {
	r.learnRecord(rec, false)
	if rc := r.race; rc != nil && rc.inflight == 0 && rc.watching {
		rc.notBefore = r.now
	}
}

// learnRecord takes in what the store holds. fresh says that it was read after two verdicts under one token were noticed.
func (r *Resolver) learnRecord(rec Record, fresh bool) {
	if !r.read || rec.Token >= r.record.Token {
		held := r.holding
		r.holding = rec.Holder == r.self && !rec.Behind // an older record, read late, takes nothing back
		if r.holding && !held {
			r.heldSince = r.attempt
		}
	}
	r.record, r.read, r.readAt = rec, true, r.now
	if rec.Verdict != nil && r.learnVerdict(*rec.Verdict, fresh) && r.suspended {
		if p := r.position(r.self); p < passers {
			r.passAt = r.now + time.Duration(p+1)*r.cfg.PassOnStep
		}
	}
	if rec.Verdict != nil {
		r.learnLeaves(rec.Verdict)
	}
	r.noticeBackwards()
}

// learnVerdict takes in a verdict if it is news, and downs every member that it leaves out. Of two verdicts under one token the store
// decides: the one that a fresh read shows counts.
func (r *Resolver) learnVerdict(v Verdict, fresh bool) bool {
	v = *v.Clone() // the event's slices belong to its maker
	v.Normalize()
	conflict := v.conflicts(&r.verdict)
	switch {
	case conflict && !fresh:
		r.doubt(&v)
		return false
	case conflict:
	case v.Token < r.verdict.Token || v.Token == r.verdict.Token && !r.verdict.Partial:
		return false
	case v.Token == r.verdict.Token && v.Partial:
		v.Survivors = slices.Concat(v.Survivors, r.verdict.Survivors)
		v.Down = slices.Concat(v.Down, r.verdict.Down)
		v.Normalize()
	}
	v.Survivors, v.Down = slices.Compact(v.Survivors), slices.Compact(v.Down)
	news := v.Token > r.verdict.Token || conflict
	r.verdict = v
	for i := range r.members {
		if m := &r.members[i]; m.Status != Down && v.Standing(m.ID, m.Seen) == Out {
			r.change(m, func(m *Member) { m.Status = Down })
		}
	}
	if conflict {
		r.reinstate()
	}
	r.calm()
	r.onPartial()
	if news {
		defer r.requestJudged()
		r.explain(TopicVerdict, "verdict %d by %s: %s, %d down: %s", v.Token, r.name(v.DecidedBy), plural(len(v.Survivors), "survivor", "survivors"), len(v.Down), v.Reason)
	}
	return true
}

func (r *Resolver) name(id ID) string {
	if m := r.get(id); m != nil {
		return m.Name
	}
	return string(id)
}

// onTold takes in a verdict that somebody passed on.
func (r *Resolver) onTold(e Told) {
	if r.get(e.From) == nil {
		r.explain(TopicIgnored, "ignored verdict %d told by %s: not a member here", e.Verdict.Token, e.From)
		return
	}
	if e.Verdict.Token >= r.verdict.Token {
		r.passAt = never
	}
	r.learnVerdict(e.Verdict, false)
}

// checkStanding downs this member when the newest verdict leaves it out. The first members of the side tell the others.
func (r *Resolver) checkStanding() {
	if r.hasLeft(r.self) {
		r.goDown(fmt.Sprintf("this member is recorded to have left after verdict %d, and others may have begun anew without it", r.verdict.Token))
		return
	}
	if r.standing() != Out {
		return
	}
	if r.placeAmongReachable() < tellers || r.race != nil {
		r.tellVerdict()
	}
	r.goDown(fmt.Sprintf("verdict %d by %s does not list this member among its survivors: %s", r.verdict.Token, r.name(r.verdict.DecidedBy), r.verdict.Reason))
}

// placeAmongReachable is this member's place among the members it can reach, downed or not.
func (r *Resolver) placeAmongReachable() int {
	n := 0
	for i := range r.members {
		m := &r.members[i]
		if m.ID == r.self {
			break
		}
		if !m.Unreachable {
			n++
		}
	}
	return n
}

// tellVerdict passes the verdict on to everybody who can be reached, downed members included.
func (r *Resolver) tellVerdict() {
	var targets []ID
	for i := range r.members {
		if m := &r.members[i]; m.ID != r.self && !m.Unreachable {
			targets = append(targets, m.ID)
		}
	}
	if len(targets) > 0 {
		r.emit(TellVerdict{Targets: targets, Verdict: r.verdict})
	}
}

func (r *Resolver) passOn() {
	if r.now < r.passAt {
		return
	}
	r.passAt = never
	r.tellVerdict()
}

// removeDue is when this member next removes the downed members that are still listed: the leader of the side at once, the
// others later, one after another, in case a removal did not reach them.
func (r *Resolver) removeDue() time.Duration {
	if r.downed == 0 || r.check != nil {
		return never
	}
	if r.removeAt != never {
		return r.removeAt
	}
	rank := r.position(r.self)
	if rank == 0 {
		return r.now
	}
	return r.now + time.Duration(rank+removeBackups)*r.cfg.RemoveRetry
}

// removeDowned removes downed members that are gone for good, and tells those that knock again what was decided. One that
// cannot be removed, though it is unreachable from here, may be alive behind others: it is told as well.
func (r *Resolver) removeDowned() {
	r.removeAt = r.removeDue()
	if r.downed == 0 {
		r.removals = 0
	}
	if r.now < r.removeAt {
		return
	}
	var gone, ordered, judged []ID
	for i := range r.members {
		m := &r.members[i]
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
	if len(judged) > 0 {
		r.emit(TellVerdict{Targets: judged, Verdict: r.verdict})
	}
	if len(ordered) > 0 {
		r.emit(TellOrder{Targets: ordered, Order: Order{Kind: DownUnreachable, Down: ordered, Reason: "this incarnation was downed before"}})
	}
	r.removals++
	r.removeAt = r.now + r.cfg.RemoveRetry
}

// release gives the lease back once every downed member was removed and release-after has passed. The verdict stays in it, so
// a loser that comes later still reads its fate.
func (r *Resolver) release() {
	switch {
	case !r.holding || r.race != nil || len(r.waitGone) > 0:
		r.releaseAt = never
	case r.releaseAt == never:
		r.releaseAt = r.now + r.cfg.ReleaseAfter
	case r.now >= r.releaseAt:
		r.releaseAt = r.now + r.cfg.LeaseTimeout + r.cfg.LeaseRetry
		r.emit(ReleaseLease{Attempt: r.next()})
	}
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
