package strategies

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// IndirectlyConnected says what becomes of members that some reach and others do not; the names are those of
// the key indirectly-connected.
type IndirectlyConnected string

// The rules for indirectly connected members.
const (
	// KeepLargestGroup keeps a largest set of members that all reach each other (design rule 17).
	KeepLargestGroup IndirectlyConnected = "keep-largest-group"
	// DownIndirectlyConnected downs them all, as Akka and Pekko do.
	DownIndirectlyConnected IndirectlyConnected = "down"
)

// LeaseMajority lets one lease decide: the side that gets it stays and downs the other. The smaller side
// waits before it asks, so that the larger one usually wins. It is the only strategy that is safe whatever
// the two sides know of each other. The zero value counts all members, downs those that are indirectly
// connected, and lets both sides ask at once; DefaultSettings keeps the largest group and has a delay of 2 s.
type LeaseMajority struct {
	// Role limits counting to members with this role; all members of the losing side go down. Empty: count
	// all members.
	Role string
	// AcquireLeaseDelayForMinority is how long the smaller side waits before it asks for the lease. Zero: it
	// does not wait. Default: 2 s. It must be longer than the sides' decisions lie apart for the larger side
	// to win. With KeepLargestGroup it is what the largest minority waits: one of half that size waits twice
	// as long, up to four times.
	AcquireLeaseDelayForMinority time.Duration
	// IndirectlyConnected is the rule for cuts that are not clean. Empty: DownIndirectlyConnected.
	IndirectlyConnected IndirectlyConnected
}

var _ sbr.Strategy = LeaseMajority{}

// Decide follows Akka and Pekko rule by rule where the cut is clean, or IndirectlyConnected says so. Nothing
// is downed on the strength of a count alone, so there is no second look at members that join or leave.
func (l LeaseMajority) Decide(v *sbr.View) sbr.Choice {
	if l.KeepsLargestGroup() {
		if g := v.LargestGroup(l.Role); g != nil {
			return l.keep(v, g)
		}
		clean := *v
		clean.Reports = nil // all that they say is who is unreachable
		v = &clean
	}
	s := look(v, l.Role)
	switch {
	case s.whole():
		return nothing()
	case s.indirect > 0:
		// No delay, even on the smaller side: the counts mean little while members disagree about which
		// members are reachable.
		return s.choose(sbr.AcquireLeaseAndDownIndirectlyConnected, s.indirectly())
	case s.total() == 0:
		return s.choose(sbr.AcquireLeaseAndDownUnreachable, s.nobodyCounts())
	case !s.minority():
		return s.choose(sbr.AcquireLeaseAndDownUnreachable, s.share(""))
	}
	delay := l.delay(s.here.Base(), s.there.Base())
	c := s.choose(sbr.AcquireLeaseAndDownUnreachable,
		s.share(", so this side waits "+delay.String()+" before it asks for the lease"))
	c.Delay = delay
	return c
}

// keep is the choice of a group. All heard members choose the same group; only others may choose another, at
// most as large as they are many.
func (l LeaseMajority) keep(v *sbr.View, g *sbr.Group) sbr.Choice {
	if len(v.Outside(g)) == 0 {
		return sbr.Choice{Kind: sbr.None,
			Reason: "every member is heard, and no broken link between two of them is confirmed"}
	}
	total := g.Kept + g.Gone
	c := sbr.Choice{
		Kind: sbr.AcquireLeaseAndDownIndirectlyConnected, Group: g,
		Minority: g.Kept < g.Gone || g.Kept == g.Gone && total > 0 && !g.Lowest,
	}
	c.Reason = fmt.Sprintf("%s between members that are heard: of those %d, the largest group that all reach each other has %d",
		links(len(g.Broken)), len(g.Heard), len(g.Members))
	if g.Gone > 0 {
		c.Reason += ", " + strconv.Itoa(g.Gone) + " more" + verb(g.Gone) + "not heard"
	}
	if !g.Exact {
		c.Reason += " (the search for a larger one was given up)"
	}
	if c.Minority {
		c.Delay = l.delay(g.Kept, g.Gone)
		c.Reason += ", so this side waits " + c.Delay.String() + " before it asks for the lease"
	}
	return c
}

func links(n int) string {
	if n == 1 {
		return "1 broken link"
	}
	return strconv.Itoa(n) + " broken links"
}

// maxDelays bounds the delay of a small group: so many times that of the largest minority.
const maxDelays = 4

// delay is what a minority waits. With the rule of the largest group a smaller one waits longer, so that of
// several minorities the largest asks first.
func (l LeaseMajority) delay(kept, gone int) time.Duration {
	d := l.AcquireLeaseDelayForMinority
	if !l.KeepsLargestGroup() {
		return d
	}
	switch largest := (kept + gone) / 2; {
	case kept >= largest:
		return d
	case kept == 0:
		return maxDelays * d
	default:
		return min(d*time.Duration(largest)/time.Duration(kept), maxDelays*d)
	}
}

// KeepsLargestGroup tells the resolver that members whose reports arrive count as heard.
func (l LeaseMajority) KeepsLargestGroup() bool { return l.IndirectlyConnected == KeepLargestGroup }

// NeedsLease is true: without a lease store this strategy downs every side.
func (LeaseMajority) NeedsLease() bool { return true }

// Validate reports every problem of the settings, one line each.
func (l LeaseMajority) Validate() error {
	var delay, indirect error
	const key = "lease-majority.acquire-lease-delay-for-minority"
	if d := l.AcquireLeaseDelayForMinority; d < 0 {
		delay = fmt.Errorf("%s is %v: it must not be negative", key, d)
	} else if d > sbr.MaxDuration {
		delay = fmt.Errorf("%s is %v: it must be at most %v", key, d, sbr.MaxDuration)
	}
	switch l.IndirectlyConnected {
	case "", KeepLargestGroup, DownIndirectlyConnected:
	default:
		indirect = fmt.Errorf("indirectly-connected is %q: it must be %s or %s", l.IndirectlyConnected,
			KeepLargestGroup, DownIndirectlyConnected)
	}
	return errors.Join(delay, indirect, validRole("lease-majority", l.Role))
}
