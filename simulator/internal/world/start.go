package world

import (
	"slices"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// A start is decided like a partition (design rule 22): the members that a process remembers, and does not
// find, are its suspects. Here it finds others one at a time, and never a process that is still looking
// itself. So it never starts because more than half of a cluster are there, or all of them anew: the first
// process starts after it has looked for long enough, and the others join it.

// remember takes over what the state folder holds, or notes that there is none.
func (p *process) remember(stateLost bool) {
	p.stateLost = stateLost
	old := p.prev
	if stateLost || old == nil {
		return
	}
	if old.r == nil { // it came no further
		p.suspects, p.members, p.token, p.hasLeft = old.suspects, old.members, old.token, old.hasLeft
		return
	}
	s := old.r.Snapshot()
	counts := !s.Verdict.Partial && s.Verdict.Eligible(old.id, old.self.Seen)
	if counts {
		p.token, p.hasLeft = s.Verdict.Token, old.left
	}
	for i := range s.Members {
		m := s.Members[i]
		if m.Unreachable && m.Status <= sbr.Up {
			p.suspects = append(p.suspects, m)
		}
		if counts && m.ID != old.id && s.Verdict.Standing(m.ID, m.Seen) != sbr.Out {
			p.members = append(p.members, m)
		}
	}
}

// knowsCluster reports whether the predecessor was in the cluster that the verdict in the store has left.
func (p *process) knowsCluster(v *sbr.Verdict) bool {
	return p.token >= tokenOf(v) && (tokenOf(v) > 0 || len(p.members) > 0)
}

func tokenOf(v *sbr.Verdict) uint64 {
	if v == nil {
		return 0
	}
	return v.Token
}

// missed are the members that the process remembers and that the verdict in the store has not downed.
func (p *process) missed(v *sbr.Verdict) []sbr.Member {
	return slices.DeleteFunc(slices.Clone(p.members), func(m sbr.Member) bool {
		return v.Standing(m.ID, m.Seen) == sbr.Out
	})
}

// startsAlone reports whether the process starts although it has found no other.
func (p *process) startsAlone(rec sbr.Record) bool {
	v, r := rec.Verdict, &p.w.opts.Resolver
	switch {
	case !p.knowsCluster(v) || p.hasLeft || r.MinMembers > 1:
		return false
	case len(p.missed(v)) == 0:
		return true
	default:
		return sbr.NeedsLease(p.w.opts.Strategy) && p.w.now-p.since >= r.StableIn(len(p.members))+r.LeaseDeadline
	}
}

// haveAnswered reports whether all whom q lists have answered a probe of this new member: a member that is
// started again behind its broken link would be suspected again and again (design rule 17). A member that
// looks for no cluster does not ask. A real member is listed while it waits, and can be a survivor of a
// verdict then; here it does not wait for members that q misses instead.
func (p *process) haveAnswered(q *process, v *sbr.Verdict) bool {
	if !p.w.opts.Probe.On() || tokenOf(v) == 0 && !p.knowsCluster(v) {
		return true
	}
	p.found = true
	all := true
	for s := range q.others() {
		m, _ := q.r.Member(s.id)
		if s.node == p.node || m.Unreachable || m.Status == sbr.Down || v.Standing(s.id, s.self.Seen) == sbr.Out ||
			p.answeredBy.has(s.index) {
			continue
		}
		if _, ok := p.pongs(s); ok {
			p.answeredBy.add(s.index)
		} else {
			all = false
		}
	}
	return all
}

func (p *process) startAlone(rec sbr.Record) {
	p.w.note(p, "start", "finds nobody, and suspects those whom it remembers")
	p.run()
	p.step(sbr.LeaseObserved{Record: rec})
	p.step(sbr.Suspected{Members: p.missed(rec.Verdict)})
	p.w.look()
	p.w.account()
}

// recall tells the resolver of the suspects that its predecessor left undecided. If the member that it has
// found has itself started anew, every member that it remembers is a suspect until it is seen.
func (p *process) recall(found *process, rec sbr.Record) {
	v := rec.Verdict
	if p.knowsCluster(v) && p.startedAnew(found) {
		p.suspects = p.missed(v)
	}
	if len(p.suspects) > 0 {
		p.step(sbr.Suspected{Members: p.suspects})
	}
}

// startedAnew reports whether q is a later incarnation of a member that p remembers.
func (p *process) startedAnew(q *process) bool {
	anew := false
	for i := range p.members {
		if p.members[i].ID == q.id {
			return false
		}
		s := p.w.byID[p.members[i].ID]
		anew = anew || s != nil && s.node == q.node
	}
	return anew
}

// learnLeft lets a process that has joined over q hear of its suspects that have said goodbye meanwhile.
func (p *process) learnLeft(q *process) {
	for i := range p.suspects {
		s := p.w.byID[p.suspects[i].ID]
		if s != nil && s.left && !q.knows(s) && q.met.has(s.index) {
			p.ended(s)
		}
	}
}
