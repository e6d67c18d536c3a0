package strategies

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// KeepReferee keeps the side that reaches one named member and downs the other.
// It suits clusters with a node that they cannot work without; when that node is gone, so is the cluster.
// The zero value does not validate.
type KeepReferee struct {
	// Address is the referee's address (host:port) or its name. Required. It is a referee only while it is up
	// or leaving.
	Address string `yaml:"address"`
	// DownAllIfLessThanNodes downs all members when the referee's side has fewer counted members than this.
	// Zero and one: no limit. Default: 1.
	DownAllIfLessThanNodes int `yaml:"down-all-if-less-than-nodes"`
}

var _ sbr.Strategy = KeepReferee{}

// Decide follows Akka.NET, where this strategy is from; indirectly connected members go first, as in the
// other strategies.
func (k KeepReferee) Decide(v *sbr.View) sbr.Choice {
	s := look(v, "")
	referee := k.referee(v)
	switch {
	case s.whole():
		return nothing()
	case s.indirect > 0:
		return s.choose(sbr.DownIndirectlyConnected, s.indirectly())
	case referee == nil || referee.Unreachable:
		return s.choose(sbr.DownReachable, "the referee ("+k.Address+") is not on this side; "+s.reach(""))
	case s.here.Base() < k.DownAllIfLessThanNodes:
		return s.choose(sbr.DownAll, "the referee ("+k.Address+") is on this side, but "+
			s.reach(", fewer than the limit of "+strconv.Itoa(k.DownAllIfLessThanNodes)))
	default:
		return s.choose(sbr.DownUnreachable, "the referee ("+k.Address+") is on this side; "+s.reach(""))
	}
}

// referee is the counted member that Address means, nil if there is none. Where a name was used again and the
// older incarnation is still listed, the youngest is meant: two sides must never both find a referee of their
// own. An empty address names no member.
func (k KeepReferee) referee(v *sbr.View) *sbr.Member {
	var found *sbr.Member
	if k.Address == "" {
		return nil
	}
	for i := range v.Members {
		m := &v.Members[i]
		if m.Addr != k.Address && m.Name != k.Address || m.Status != sbr.Up && m.Status != sbr.Leaving {
			continue
		}
		if found == nil || sbr.Older(found, m) {
			found = m
		}
	}
	return found
}

// Validate reports every problem of the settings, one line each.
func (k KeepReferee) Validate() error {
	var address, limit error
	if strings.TrimSpace(k.Address) == "" {
		address = errors.New("keep-referee.address is empty: it must be the address (host:port) or the name of the referee")
	}
	if k.DownAllIfLessThanNodes < 0 {
		limit = fmt.Errorf("keep-referee.down-all-if-less-than-nodes is %d: it must not be negative",
			k.DownAllIfLessThanNodes)
	}
	return errors.Join(address, limit)
}
