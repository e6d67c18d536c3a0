package strategies

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// StaticQuorum keeps a side that has at least QuorumSize members and downs any other. It suits clusters of a
// fixed size. With more than 2 x QuorumSize - 1 members two sides could both be large enough, so then all
// members go down. The zero value does not validate.
type StaticQuorum struct {
	// QuorumSize is the smallest number of reachable counted members that may go on, at least 1. There is no
	// default.
	QuorumSize int `yaml:"quorum-size"`
	// Role limits counting to members with this role; all members of the losing side go down. Empty: count
	// all members.
	Role string `yaml:"role"`
}

var _ sbr.Strategy = StaticQuorum{}

// Decide follows Akka and Pekko rule by rule: the check for too many members comes first.
func (q StaticQuorum) Decide(v *sbr.View) sbr.Choice {
	s := look(v, q.Role)
	switch {
	case s.whole():
		return nothing()
	case q.tooMany(s.total()):
		return s.choose(sbr.DownAll, q.excess(&s))
	case s.indirect > 0:
		return s.choose(sbr.DownIndirectlyConnected, s.indirectly())
	case s.here.Base() >= q.QuorumSize:
		return s.choose(sbr.DownUnreachable, s.reach(", the quorum is "+strconv.Itoa(q.QuorumSize)))
	default:
		return s.choose(sbr.DownReachable, s.reach(", fewer than the quorum of "+strconv.Itoa(q.QuorumSize)))
	}
}

// tooMany is n > 2q-1, written so that no quorum overflows.
func (q StaticQuorum) tooMany(n int) bool { return n-q.QuorumSize >= q.QuorumSize }

func (q StaticQuorum) excess(s *survey) string {
	n := s.total()
	return fmt.Sprintf("%d%s%smore than %d, the most that a quorum of %d can decide between",
		n, s.noun(n), verb(n), 2*q.QuorumSize-1, q.QuorumSize)
}

// Warning returns one sentence when the cluster has grown too large for the quorum, so that the next
// partition would down all members. Empty: all is well. The reference logs it on each member that becomes up.
func (q StaticQuorum) Warning(v *sbr.View) string {
	s := look(v, q.Role)
	if !q.tooMany(s.total()) {
		return ""
	}
	return q.excess(&s)
}

// Validate reports every problem of the settings, one line each.
func (q StaticQuorum) Validate() error {
	var size error
	if q.QuorumSize < 1 {
		size = fmt.Errorf("static-quorum.quorum-size is %d: it must be at least 1", q.QuorumSize)
	}
	return errors.Join(size, validRole("static-quorum", q.Role))
}
