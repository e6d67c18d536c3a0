package strategies

import (
	"fmt"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// KeepOldest keeps the side of the oldest member, where singletons run, and downs the other. The zero value
// counts all members and keeps the oldest even when it is alone; DefaultSettings has DownIfAlone on.
type KeepOldest struct {
	// DownIfAlone downs the oldest member when it is cut off from all others (two or more), so that its crash
	// does not take the whole cluster down. In a cluster of two the oldest stays.
	DownIfAlone bool
	// Role limits counting, and the search for the oldest, to members with this role; all members of the
	// losing side go down. Empty: count all members.
	Role string
}

var _ sbr.Strategy = KeepOldest{}

// Decide follows Akka and Pekko rule by rule.
func (k KeepOldest) Decide(v *sbr.View) sbr.Choice {
	s := look(v, k.Role)
	switch {
	case s.whole():
		return nothing()
	case s.indirect > 0:
		return s.choose(sbr.DownIndirectlyConnected, s.indirectly())
	case s.total() == 0:
		return s.choose(sbr.DownAll, s.nobodyCounts())
	}
	oldest := v.Oldest(k.Role)
	oldestUp := oldest
	if oldest.Status != sbr.Up {
		oldestUp = v.Oldest(k.Role, sbr.Up)
	}
	keep := k.keeps(!oldest.Unreachable, s.here.Base(), s.there.Base())
	reason := k.where(&s, oldest)
	switch {
	case !keep:
		return s.choose(sbr.DownReachable, reason)
	case !k.surelyKeeps(&s, oldestUp):
		return s.choose(sbr.DownAll, reason+s.change())
	default:
		return s.choose(sbr.DownUnreachable, reason)
	}
}

// keeps is the rule itself: this side stays if it has the oldest member, unless that member is alone against
// two or more.
func (k KeepOldest) keeps(oldestHere bool, here, there int) bool {
	if oldestHere {
		return !k.alone(here, there)
	}
	return k.alone(there, here)
}

// alone applies the exception to the counts of the oldest member's side and of the other one.
func (k KeepOldest) alone(its, others int) bool { return k.DownIfAlone && its == 1 && others >= 2 }

// surelyKeeps repeats the rule as the other side may see it: there, members that leave may be gone, also the
// oldest; and members that join may be up, which matters only to whether the oldest member is alone.
func (k KeepOldest) surelyKeeps(s *survey, oldestUp *sbr.Member) bool {
	if oldestUp == nil {
		return false
	}
	here, there := s.here.Up, s.there.Up
	if k.DownIfAlone {
		here, there = here+s.here.Joining, there+s.there.Joining
	}
	return k.keeps(!oldestUp.Unreachable, here, there)
}

func (k KeepOldest) where(s *survey, oldest *sbr.Member) string {
	its, others, place := s.here.Base(), s.there.Base(), "on this side"
	if oldest.Unreachable {
		its, others, place = others, its, "on the other side"
	}
	if k.alone(its, others) {
		place += ", but alone"
	}
	return "the oldest member (" + label(oldest) + ") is " + place + "; " + s.reach("")
}

func (s *survey) change() string {
	return fmt.Sprintf(", but the other side may see it otherwise: %d leaving may be gone and %d joining may be up",
		s.here.Leaving+s.there.Leaving, s.here.Joining+s.there.Joining)
}

// Validate reports every problem of the settings, one line each.
func (k KeepOldest) Validate() error { return validRole("keep-oldest", k.Role) }
