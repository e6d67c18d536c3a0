package downing

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// What a member remembers of the others: who they were when it took part last, so that its next incarnation
// looks for them, and where those are to be found again that were downed.

// recall hands the resolver the members that an earlier process of this node could not reach. Loop only.
func (e *engine) recall() {
	var suspects []place
	for _, p := range e.cfg.Memory.load().Members {
		if p.Suspect {
			suspects = append(suspects, p)
		}
	}
	if len(suspects) > 0 {
		e.log.Warn("sbr: an earlier process could not reach some members, and nothing was decided about them",
			"members", len(suspects))
		e.suspect(suspects)
	}
}

// suspect makes the resolver's suspects of members that are remembered and not here. Loop only.
func (e *engine) suspect(places []place) {
	members := make([]sbr.Member, len(places))
	for i := range places {
		members[i] = places[i].member()
	}
	e.step(sbr.Suspected{Members: members})
	for i := range places {
		e.members.miss(places[i].ID)
	}
}

// remember stores who the members are whenever that changes, since what takes them from Serf's list may also
// restart this process. What a member sees that takes no part, or no longer, is not what the next one has to
// look for. Loop only.
func (e *engine) remember(s *sbr.Snapshot) {
	if e.cfg.Memory == nil || e.remembering || e.newcomer || e.leaving || e.ended {
		return
	}
	last := e.cfg.Memory.load()
	v := &s.Verdict
	if v.Partial || !v.Eligible(e.self.ID, e.self.Seen) {
		return
	}
	downed, same := e.downedPlaces(&last, s)
	if same && sameVerdict(&last.Verdict, v) && !last.Left && isRemembered(last.Members, s) {
		return
	}
	verdict, members := *v.Clone(), make([]place, 0, len(s.Members))
	for i := range s.Members {
		if m := &s.Members[i]; isToRemember(m, s.Self) {
			members = append(members, placeOf(m))
		}
	}
	e.remembering = true
	e.spawn(&e.workers, func() {
		err := e.cfg.Memory.update(func(r *remembered) {
			r.Members, r.Verdict, r.Downed, r.Left = members, verdict, downed, e.hasLeft.Load()
		})
		e.inbox.Post(func() {
			e.remembering = false
			if err != nil {
				e.complain.log(e, "sbr: the state file cannot be written: a restart would forget who the members are",
					"error", err)
			}
		})
	})
}

func isToRemember(m *sbr.Member, self sbr.ID) bool {
	return m.ID != self && m.Status != sbr.Down && !isUntagged(m.ID)
}

// isRemembered reports whether the members are those that are remembered already. Most looks change nothing,
// and cost no memory.
func isRemembered(members []place, s *sbr.Snapshot) bool {
	n := 0
	for i := range s.Members {
		m := &s.Members[i]
		if !isToRemember(m, s.Self) {
			continue
		}
		if p := placeOf(m); n == len(members) || !p.equal(&members[n]) {
			return false
		}
		n++
	}
	return n == len(members)
}

// soughtFor is how long the place of a member that was downed is looked at: as long as Serf itself tries to
// reach one that has failed.
const soughtFor = 24 * time.Hour

// downedPlaces are where members were that have been downed and whose hosts are not here again.
func (e *engine) downedPlaces(last *remembered, s *sbr.Snapshot) (downed []place, same bool) {
	same = true
	now := time.Now()
	for _, p := range last.Downed {
		if now.Sub(time.Unix(p.DownedAt, 0)) >= soughtFor || isHere(&p, s) {
			same = false
			continue
		}
		downed = append(downed, p)
	}
	for _, p := range last.Members {
		if !e.resolver.KeptOut(p.ID, p.Seen) || isHere(&p, s) {
			continue
		}
		if !slices.ContainsFunc(downed, func(d place) bool { return d.ID == p.ID }) {
			p.Suspect, p.DownedAt = false, now.Unix()
			downed, same = append(downed, p), false
		}
	}
	return downed, same
}

// isHere reports whether somebody takes part where the member was, at its address or under its name.
func isHere(p *place, s *sbr.Snapshot) bool {
	return slices.ContainsFunc(s.Members, func(m sbr.Member) bool {
		return m.Status != sbr.Down && !m.Unreachable && (m.Addr == p.Addr || hostOf(m.ID) == hostOf(p.ID))
	})
}

// rememberLeave notes that this member left the others in peace.
func (e *engine) rememberLeave() {
	e.hasLeft.Store(true)
	if e.cfg.Memory == nil {
		return
	}
	if err := e.cfg.Memory.update(func(r *remembered) { r.Left = true }); err != nil {
		e.log.Warn("sbr: the state file cannot be written: the next start will not know that this member left in peace",
			"error", err)
	}
}

// rememberEnd notes that this incarnation went down.
func (e *engine) rememberEnd() {
	if e.cfg.Memory == nil {
		return
	}
	err := e.cfg.Memory.update(func(r *remembered) {
		r.Over, r.Members = true, slices.Clone(r.Members)
		for i := range r.Members {
			r.Members[i].Suspect = false // what this incarnation was in the middle of is over
		}
	})
	if err != nil {
		e.log.Warn("sbr: the state file cannot be written: the next process may go on as this incarnation, and go down as well",
			"error", err)
	}
}
