package sbr

import (
	"slices"
	"time"
)

func (r *Resolver) onLeaseRead(e LeaseRead) {
	racing := r.race != nil && r.race.inflight == e.Attempt
	checking := r.question != nil && r.question.inflight == e.Attempt
	if e.Err == "" {
		r.learnRecord(e.Record, checking)
		if r.rechecking == e.Attempt {
			r.recheckAt, r.rechecks = never, 0
		}
		if (racing || checking || r.rechecking == e.Attempt) && !r.behind() {
			r.unsure = false // it was asked after the pause
		}
	}
	if e.Attempt != 0 && r.contact.inflight == e.Attempt {
		r.contactRead(e.Err)
	}
	if racing && r.race != nil {
		r.raceRead(e)
	}
	if checking {
		r.checked(e.Err)
	}
}

func (r *Resolver) onLeaseObserved(rec Record) {
	r.learnRecord(rec, false)
	if rc := r.race; rc != nil && rc.inflight == 0 && rc.watching {
		rc.notBefore = r.now
	}
}

// passers is how many members of a surviving side stand ready to pass a verdict on.
const passers = 8

// learnRecord handles what the store holds. fresh: two verdicts under one token had been noticed.
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
			r.passAt = r.now + time.Duration(p+1)*passOnStep
		}
	}
	if rec.Verdict != nil {
		r.learnLeaves(rec.Verdict)
	}
	r.noticeBackwards()
}

// learnVerdict adopts a verdict if it is new, and downs every member that it leaves out. Of two verdicts
// under one token the store decides: the verdict that a fresh read shows counts.
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
	lost := conflict || contains(r.verdict.Down, v.DecidedBy) // by the store: the verdict that was known here
	r.verdict = v
	for m := range r.each {
		if m.Status != Down && v.Standing(m.ID, m.Seen) == Out {
			r.change(m, func(m *Member) { m.Status = Down })
		}
	}
	if conflict {
		r.reinstate()
	}
	r.onPartial()
	if news {
		defer r.requestJudged()
		r.explain(TopicVerdict, "verdict %d by %s: %s, %d down: %s", v.Token, r.name(v.DecidedBy),
			plural(len(v.Survivors), "survivor", "survivors"), len(v.Down), v.Reason)
	}
	if lost && r.standing() == Out && !r.tellsSide() {
		r.tellVerdict() // the others miss no member, and it may be that none of them reaches the store
	}
	return true
}

func (r *Resolver) name(id ID) string {
	if m := r.get(id); m != nil {
		return m.Name
	}
	return string(id)
}

// onTold handles a verdict that another member sent.
func (r *Resolver) onTold(e Told) {
	if r.get(e.From) == nil {
		r.explain(TopicIgnored, "ignored verdict %d from %s: not a member here", e.Verdict.Token, e.From)
		return
	}
	if e.Verdict.Token >= r.verdict.Token {
		r.passAt = never
	}
	r.learnVerdict(e.Verdict, false)
}

// A store can lose what it acknowledged: the record is deleted, emptied, or restored from a backup. Members
// that started with what it holds then would be strangers to the others, and a later verdict could be built
// beside the lost one. So the verdict is written back (design rule 16), but not by members with suspects:
// they cannot know whether the newest verdict that they have read is the last that was written.

// behind reports whether the store held less, when it was last read, than it had or this member knows.
func (r *Resolver) behind() bool {
	return r.read && (r.record.Behind || r.record.Token < r.verdict.Token)
}

// noticeBackwards arranges that the verdict is written back: by the first member at once.
func (r *Resolver) noticeBackwards() {
	switch {
	case !r.behind():
		r.restoreAt = never
	case r.restoreAt == never && r.verdict.Token > 0 && !r.verdict.Partial && r.standing() != Out:
		r.explain(TopicBackwards, "the store holds less than verdict %d (it was emptied or restored, or this was read late): it is read again, and told what it lost",
			r.verdict.Token)
		r.restoreAt = r.now + time.Duration(r.position(r.self))*r.cfg.LeaseRetry
	}
}

// restore writes the verdict back when that is due. It waits while members are missing or a question is open.
func (r *Resolver) restore() {
	if r.now < r.restoreAt {
		return
	}
	r.restoreAt = r.now + r.cfg.LeaseTimeout + r.cfg.LeaseRetry
	if r.suspects > 0 || r.question != nil {
		return
	}
	r.emit(RestoreVerdict{Attempt: r.next(), Verdict: *r.verdict.Clone()})
}

// doubt follows a second verdict under the token of the verdict that this member knows: the store has lost
// one of them. This member is suspended, and proposes nothing, until a fresh read shows which one counts. If
// the other verdict is heard of again after that, its members read another store, and no read will end that:
// each time this member stays suspended for longer before it asks.
func (r *Resolver) doubt(other *Verdict) {
	if r.question != nil && r.question.about == torn {
		return
	}
	r.explain(TopicConflict, "two verdicts have the token %d, by %s and by %s: the store lost one of them, and what it holds now counts",
		other.Token, r.name(r.verdict.DecidedBy), r.name(other.DecidedBy))
	r.endRequest("two verdicts have the token %d", other.Token)
	r.race = nil
	r.ask(torn)
	pause := r.tornPause(other.Token)
	r.question.notBefore += pause
	r.torn.token, r.torn.pause = other.Token, min(2*pause+r.cfg.LeaseRetry, r.cfg.SuspendTimeout/2)
}

// tornPause is how long this member waits before it asks which of two verdicts with that token counts.
func (r *Resolver) tornPause(token uint64) time.Duration {
	if r.torn.token != token {
		return 0
	}
	return r.torn.pause
}

// reinstate makes suspects of survivors of the verdict that counts if the other verdict under its token had
// downed them: the other verdict was never written, as far as the store knows, and they may be up.
func (r *Resolver) reinstate() {
	for _, id := range r.verdict.Survivors {
		switch m := r.get(id); {
		case m == nil:
			r.remember([]Member{{ID: id, Name: string(id), Seen: r.verdict.Token}})
		case m.Status == Down:
			r.change(m, func(m *Member) { m.Status = Up })
			r.unrest()
		}
	}
}
