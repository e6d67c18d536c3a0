package sbr

import "time"

// A store can lose what it acknowledged: the record is deleted, emptied, or restored from a backup. Members that started with what it
// holds then would be strangers to the others, and a later verdict could be built beside the lost one. So the verdict is written back
// (design rule 16) by members that know nobody to be missing: a member with suspects cannot know whether the newest verdict that it has
// read is the last that was written.

// behind reports whether the store held less, when it was last read, than it had held or than this member was told.
func (r *Resolver) behind() bool {
	return r.read && (r.record.Behind || r.record.Token < r.verdict.Token)
}

// noticeBackwards arranges that the verdict is written back: by the first member at once, by the others later, one after another.
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

// restore writes the verdict back when that is due. While members are missing, or this member does not know its fate, it waits.
func (r *Resolver) restore() {
	if r.now < r.restoreAt {
		return
	}
	r.restoreAt = r.now + r.cfg.LeaseTimeout + r.cfg.LeaseRetry
	if r.suspects > 0 || r.check != nil {
		return
	}
	r.emit(RestoreVerdict{Attempt: r.next(), Verdict: *r.verdict.Clone()})
}

// doubt follows a second verdict under the token of the one that this member knows: the chain is broken, because the store lost one of the
// two. This member is suspended, and proposes nothing, until a fresh read shows which one counts; nobody else can tell.
func (r *Resolver) doubt(other *Verdict) {
	if r.check != nil && r.check.conflict {
		return
	}
	r.explain(TopicConflict, "two verdicts have the token %d, by %s and by %s: the store lost one of them, and what it holds now counts",
		other.Token, r.name(r.verdict.DecidedBy), r.name(other.DecidedBy))
	r.endRequest("two verdicts have the token %d", other.Token)
	r.race = nil
	r.startCheck(0)
	r.check.conflict = true
}

// reinstate makes suspects of the survivors of the verdict that counts, whom the other one under its token had downed: that one was
// never written, as far as the store knows, and they may be up. They are cleared as all suspects are, by themselves or by the lease.
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
