package strategies

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// survey is the part of a view that a strategy with a role uses.
type survey struct {
	role        string
	here, there sbr.Count
	// lowest is the first base member in address order; nil when there is none.
	lowest *sbr.Member
	// cut says that a member is unreachable, whatever the status and the role.
	cut bool
	// indirect is how many members are indirectly connected, whatever the status and the role.
	indirect int
}

func look(v *sbr.View, role string) survey {
	s := survey{role: role, lowest: v.Lowest(role), indirect: len(v.IndirectlyConnected())}
	s.here, s.there = v.Count(role)
	for i := 0; i < len(v.Members) && !s.cut; i++ {
		s.cut = v.Members[i].Unreachable
	}
	return s
}

func (s *survey) total() int { return s.here.Base() + s.there.Base() }

// whole says that there is nothing to decide.
func (s *survey) whole() bool { return !s.cut && s.indirect == 0 }

// majority says that this side is the larger one; of two halves it is the one with the lowest address.
func (s *survey) majority() bool { return larger(s.here.Base(), s.there.Base(), s.lowest) }

// minority is the opposite, but where no member counts neither side is the smaller one.
func (s *survey) minority() bool { return s.total() > 0 && !s.majority() }

func larger(here, there int, lowest *sbr.Member) bool {
	return here > there || here == there && !lowest.Unreachable
}

// choose builds the choice. All strategies say in the same way whether this side is the smaller one.
func (s *survey) choose(k sbr.Kind, reason string) sbr.Choice {
	return sbr.Choice{Kind: k, Minority: s.minority(), Reason: reason}
}

// nothing is the choice of every strategy when the view is whole.
func nothing() sbr.Choice {
	return sbr.Choice{Kind: sbr.None, Reason: "nobody is unreachable"}
}

// reach reads "3 of 5 counted members are reachable", and goes on with rest. Reasons are put together, not
// formatted: in a small cluster a decision costs little more than its reason.
func (s *survey) reach(rest string) string {
	here, total := s.here.Base(), s.total()
	return strconv.Itoa(here) + " of " + strconv.Itoa(total) + s.noun(total) + verb(here) + "reachable" + rest
}

// share reads "…, a majority", with the tie-breaker where the sides are of one size.
func (s *survey) share(rest string) string {
	here, there := s.here.Base(), s.there.Base()
	switch {
	case here > there:
		return s.reach(", a majority" + rest)
	case here < there:
		return s.reach(", a minority" + rest)
	case s.lowest.Unreachable:
		return s.reach(", a tie, and the lowest address (" + label(s.lowest) + ") is on the other side" + rest)
	default:
		return s.reach(", a tie, and the lowest address (" + label(s.lowest) + ") is on this side" + rest)
	}
}

// noun reads " counted members", with the role if the strategy has one.
func (s *survey) noun(n int) string {
	noun := " counted members"
	if n == 1 {
		noun = " counted member"
	}
	if s.role != "" {
		noun += " with role " + strconv.Quote(s.role)
	}
	return noun
}

func (s *survey) indirectly() string {
	if s.indirect == 1 {
		return "1 member is indirectly connected: some members reach it and some do not"
	}
	return fmt.Sprintf("%d members are indirectly connected: some members reach them and some do not",
		s.indirect)
}

func (s *survey) nobodyCounts() string {
	if s.role == "" {
		return "no member is up or leaving, so no side can be told from the other"
	}
	return fmt.Sprintf("no member with role %q is up or leaving, so no side can be told from the other", s.role)
}

func label(m *sbr.Member) string { return cmp.Or(m.Name, m.Addr, string(m.ID)) }

func verb(n int) string {
	if n == 1 {
		return " is "
	}
	return " are "
}
