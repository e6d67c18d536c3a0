package sbr

import (
	"maps"
	"slices"
	"time"
)

// Snapshot is the state of a resolver for people and observers. It shares nothing with the resolver but the
// lists of verdicts, which must not be changed.
type Snapshot struct {
	State State
	Self  ID
	// Members are in address order, with the status and reachability that decisions use.
	Members []Member
	// Leader leads this side; empty when no member can.
	Leader ID
	// Responsible says that this member would act on a decision now.
	Responsible bool
	// StableAfter is how long the view must not change before a decision now; StableFor the number of members
	// that it was computed for, zero if it is not computed.
	StableAfter time.Duration
	StableFor   int
	// Deadline is when this member decides if nothing changes, on the driver's clock; only if HasDeadline.
	Deadline    time.Duration
	HasDeadline bool
	// Record is what the lease store held at the last answer; the zero Record before that.
	Record Record
	// Verdict is the newest verdict, the zero Verdict if there is none.
	Verdict Verdict
}

// State returns what the member is doing.
func (r *Resolver) State() State {
	switch {
	case r.down:
		return StateDown
	case !r.armed && r.question == nil:
		return StateArming
	case r.race != nil:
		return StateWaiting
	case r.suspended:
		return StateSuspended
	default:
		return StateUp
	}
}

// Suspects is how many members are unreachable and not yet downed. It allocates nothing.
func (r *Resolver) Suspects() int { return r.suspects }

// Downed lists the members that were downed and are still here, in address order. The driver tells its
// tracker.
func (r *Resolver) Downed() []ID {
	if r.downed == 0 {
		return nil
	}
	return r.ids(func(m *Member) bool { return m.Status == Down })
}

// Member returns what is known of an incarnation; ok is false if it is no member here. It allocates nothing.
func (r *Resolver) Member(id ID) (m Member, ok bool) {
	if known := r.get(id); known != nil {
		return *known, true
	}
	return Member{}, false
}

// Verdict returns the newest verdict this member knows. Its lists are shared: do not change them.
func (r *Resolver) Verdict() Verdict { return r.verdict }

// KeptOut reports whether an incarnation must not take part: a verdict or an order downed it.
func (r *Resolver) KeptOut(id ID, seen uint64) bool {
	return r.isOut(&Member{ID: id, Seen: seen})
}

// Orders lists the incarnations downed by orders, in no order. It is for drivers that share a deny list.
func (r *Resolver) Orders() []ID { return slices.Collect(maps.Keys(r.orders)) }

// Snapshot returns the present state.
func (r *Resolver) Snapshot() Snapshot {
	v := View{Self: r.self, Members: r.members}
	s := Snapshot{
		State: r.State(), Self: r.self, Members: slices.Clone(r.members), Responsible: r.armed && v.Responsible(),
		Record: r.record, Verdict: r.verdict, StableAfter: r.stableAfter(), StableFor: r.size,
	}
	if l := v.Leader(); l != nil {
		s.Leader = l.ID
	}
	if at := min(r.decideAt(), r.unstableAt(), r.raceAt()); at != never && !r.down {
		s.Deadline, s.HasDeadline = at, true
	}
	return s
}

// Named are the members that a person means by a node name or an incarnation: those that are not downed, or
// else the first that was.
func (s *Snapshot) Named(name string) (ids []ID) {
	var downed []ID
	for i := range s.Members {
		m := &s.Members[i]
		switch {
		case m.Name != name && string(m.ID) != name:
		case m.Status != Down:
			ids = append(ids, m.ID)
		case downed == nil:
			downed = []ID{m.ID}
		}
	}
	if ids == nil {
		return downed
	}
	return ids
}
