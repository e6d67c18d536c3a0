package strategies

import (
	"fmt"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// KeepMajority keeps the larger side and downs the other; of two halves it keeps the one with the lowest
// address. It suits clusters whose size changes. In a split into three or more parts without a majority every
// part goes down. The zero value counts all members.
type KeepMajority struct {
	// Role limits counting to members with this role; all members of the losing side go down. Empty: count
	// all members.
	Role string `yaml:"role"`
}

var _ sbr.Strategy = KeepMajority{}

// Decide follows Akka and Pekko rule by rule.
func (k KeepMajority) Decide(v *sbr.View) sbr.Choice {
	s := look(v, k.Role)
	switch {
	case s.whole():
		return nothing()
	case s.indirect > 0:
		return s.choose(sbr.DownIndirectlyConnected, s.indirectly())
	case s.total() == 0:
		return s.choose(sbr.DownAll, s.nobodyCounts())
	case !s.majority():
		return s.choose(sbr.DownReachable, s.share(""))
	case !s.surelyMajority(v.Lowest(k.Role, sbr.Up)):
		return s.choose(sbr.DownAll, s.share(s.doubt()))
	default:
		return s.choose(sbr.DownUnreachable, s.share(""))
	}
}

// surelyMajority repeats the count as the other side may see it: there the members that join may be up
// already, and those that leave here may be gone. Only the keeping side asks: a side that goes down endangers
// no other side.
func (s *survey) surelyMajority(lowestUp *sbr.Member) bool {
	return lowestUp != nil && larger(s.here.Up, s.there.Base()+s.there.Joining, lowestUp)
}

func (s *survey) doubt() string {
	return fmt.Sprintf(", but not for sure: %d leaving on this side may be gone and %d joining on the other may be up", s.here.Leaving, s.there.Joining)
}

// Validate reports every problem of the settings, one line each.
func (k KeepMajority) Validate() error { return validRole("keep-majority", k.Role) }
