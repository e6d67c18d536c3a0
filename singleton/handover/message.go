package handover

import (
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// MaxState is how many bytes of state a run may hand over: a position, a cursor. What is larger belongs into a store, under the token.
const MaxState = 512

// Kind says what a message means.
type Kind uint8

// The kinds. The zero Kind is none.
const (
	// Take asks whether anything speaks against the sender's running the slot.
	Take Kind = iota + 1
	// HandOver asks a member that runs the slot to stop, and to answer HandedOver once it has.
	HandOver
	// Resigned says that the sender runs nothing and will not: it leaves, or its manager was stopped.
	Resigned
	// Resigning asks the next candidate to take over: the sender runs the slot and is about to leave.
	Resigning
	// Clear answers Take: the sender runs nothing. Wait is how long a margin that it knows of still lasts.
	Clear
	// Running answers Take: the sender runs the slot under Token and will hand over when asked to.
	Running
	// Refuse answers Take and HandOver: the slot is the sender's, who is older, or that of an older one that the sender knows.
	Refuse
	// HandedOver answers HandOver: the run under Token has ended and left State.
	HandedOver
	// Started tells everybody the Token of a run without a lease, so that the next one has a larger one.
	Started
)

var kindNames = [...]string{Take: "take", HandOver: "hand-over", Resigned: "resigned", Resigning: "resigning", Clear: "clear", Running: "running", Refuse: "refuse",
	HandedOver: "handed-over", Started: "started"}

// String returns the kind in lower case.
func (k Kind) String() string {
	if k == 0 || int(k) >= len(kindNames) {
		return "none"
	}
	return kindNames[k]
}

// Message is what one member's machine says to another's. Which fields count depends on Kind.
type Message struct {
	Kind Kind
	// Born is the sender's birth (see Peer), of questions: who is asked may not know the sender yet.
	Born int64
	// Round numbers the sender's attempts; answers repeat it.
	Round uint64
	// Token is the run's, of Running and HandedOver; otherwise the largest that the sender has heard of.
	Token uint64
	// Wait is how long the sender still waits for members that are gone, of Clear.
	Wait time.Duration
	// State is what the sender's last run has left, of HandedOver and Clear; nil where a newer run is known of.
	State []byte
}

// Peer is one member as the machine sees it.
type Peer struct {
	ID sbr.ID
	// Born orders the members by age, smaller is older; ties go by ID. Zero: youngest of all.
	Born int64
	// Candidate says that the member would run the slot.
	Candidate bool
	// Leaving: on its way out. Down: downed by a verdict or an order. Unreachable: from here.
	Leaving, Down, Unreachable bool
}

// older reports whether the first of two members is the older one.
func older(born int64, id sbr.ID, thanBorn int64, than sbr.ID) bool {
	if born == thanBorn {
		return id < than
	}
	return born != 0 && (thanBorn == 0 || born < thanBorn)
}

// View is what the member's resolver says of the cluster.
type View struct {
	// Armed says that the member takes part: before that it runs nothing.
	Armed bool
	// Verdict is the token of the newest verdict that it knows.
	Verdict uint64
	// Sure is the last moment, on the driver's clock, at which nothing was amiss; negative: never. See downing.Peers.
	Sure time.Duration
	// Peers are all members that it knows, itself included or not.
	Peers []Peer
}
