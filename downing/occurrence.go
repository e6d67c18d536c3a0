package downing

import (
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Occurrence is something that happened to a member, for people who watch: a timeline, a page, a test.
type Occurrence struct {
	// At is the wall clock time.
	At time.Time
	// Member is the name of the member it happened to.
	Member string
	// Kind is one of the Occurred constants.
	Kind string
	// Text says it in words.
	Text string
	// Subject is the other member, where there is one.
	Subject string
	// Verdict is set for OccurredVerdict.
	Verdict *sbr.Verdict
}

// The kinds of occurrence. Those of sbr.Topic occur as well.
const (
	OccurredUnreachable = "unreachable"
	OccurredReachable   = "reachable"
	OccurredSuspended   = "suspended"
	OccurredResumed     = "resumed"
	OccurredAsking      = "asking-for-the-lease"
	OccurredGranted     = "lease-granted"
	OccurredHeld        = "lease-held"
	OccurredUnknown     = "lease-unknown"
	OccurredReleased    = "lease-released"
	OccurredVerdict     = string(sbr.TopicVerdict)
	OccurredTold        = "told"
	OccurredRemoved     = "removed"
	OccurredRefused     = "refused"
	OccurredDown        = "down"
)
