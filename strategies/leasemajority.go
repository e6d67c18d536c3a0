package strategies

import (
	"errors"
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// LeaseMajority lets one lease decide: the side that gets it stays and downs the other. The smaller side
// waits before it asks, so that the larger one usually wins. It is the only strategy that is safe whatever
// the two sides know of each other. The zero value counts all members and lets both sides ask at once;
// DefaultSettings has a delay of 2 s.
type LeaseMajority struct {
	// Role limits counting to members with this role; all members of the losing side go down. Empty: count
	// everybody.
	Role string
	// AcquireLeaseDelayForMinority is how long the smaller side waits before it asks for the lease. Zero: it
	// does not wait. Default: 2 s. It must be longer than the sides' decisions lie apart for the larger side to
	// win.
	AcquireLeaseDelayForMinority time.Duration
}

var _ sbr.Strategy = LeaseMajority{}

// Decide follows Akka and Pekko rule by rule. Nothing is downed on the strength of a count alone, so there is
// no second look at members that join or leave.
func (l LeaseMajority) Decide(v *sbr.View) sbr.Choice {
	s := look(v, l.Role)
	switch {
	case s.whole():
		return nothing()
	case s.indirect > 0:
		// No delay, even on the smaller side: the counts mean little while members disagree about who is reachable.
		return s.choose(sbr.AcquireLeaseAndDownIndirectlyConnected, s.indirectly())
	case s.total() == 0:
		return s.choose(sbr.AcquireLeaseAndDownUnreachable, s.nobodyCounts())
	case !s.minority():
		return s.choose(sbr.AcquireLeaseAndDownUnreachable, s.share(""))
	}
	c := s.choose(sbr.AcquireLeaseAndDownUnreachable, s.share(
		", so this side waits "+l.AcquireLeaseDelayForMinority.String()+" before it asks for the lease"))
	c.Delay = l.AcquireLeaseDelayForMinority
	return c
}

// NeedsLease is true: without a lease store this strategy downs every side.
func (LeaseMajority) NeedsLease() bool { return true }

// Validate reports every problem of the settings, one line each.
func (l LeaseMajority) Validate() error {
	var delay error
	if l.AcquireLeaseDelayForMinority < 0 {
		delay = fmt.Errorf("lease-majority.acquire-lease-delay-for-minority is %v: it must not be negative", l.AcquireLeaseDelayForMinority)
	}
	return errors.Join(delay, validRole("lease-majority", l.Role))
}
