package sbr

import "time"

// Event is something that happened to the resolver: an observation, an answer, a message. See Resolver.Step.
type Event interface{ event() }

// The events.
type (
	// MemberSeen says that a member exists, with its newest facts. Status is what the cluster reports: Up for an alive member
	// (the resolver itself keeps it Joining until it was seen while nobody was unreachable), Joining for one that
	// cannot be counted yet, Leaving, Exiting or Down. Unreachable is ignored: that is Reachability's business.
	MemberSeen struct{ Member Member }

	// MemberGone says that a member left or was removed.
	MemberGone struct{ ID ID }

	// Reachability says that a member can, or cannot, be reached from here. Repeating a fact has no effect.
	Reachability struct {
		ID          ID
		Unreachable bool
	}

	// Observations replaces what is known of who cannot reach whom.
	Observations struct {
		Reports []Report
		SeenBy  []ID
	}

	// LeaseAnswer is the outcome of an AcquireLease effect. An answer to an older attempt is used for what it says of the record.
	LeaseAnswer struct {
		Attempt uint64
		Outcome Outcome
		// Record is what the store holds; meaningless when the outcome is Unknown.
		Record Record
		// Err explains Unknown, in one line.
		Err string
	}

	// LeaseRead is the outcome of a ReadLease effect; Err is empty when Record was read.
	LeaseRead struct {
		Attempt uint64
		Record  Record
		Err     string
	}

	// LeaseObserved is what a watch of the store reported, unasked.
	LeaseObserved struct{ Record Record }

	// LeaseReleased is the outcome of a ReleaseLease effect. Done: this member certainly holds it no longer.
	LeaseReleased struct {
		Attempt uint64
		Done    bool
	}

	// Told is a verdict that another member passed on.
	Told struct {
		From    ID
		Verdict Verdict
	}

	// Ordered is another member's decision that no lease stands behind: Down go down, everybody else keeps them out.
	Ordered struct {
		From  ID
		Order Order
	}

	// Asked says that a member of this side could not reach the lease store and asks this one to race in its place.
	Asked struct{ From ID }

	// Cleared says that another member, which knows of verdicts up to Token, sees nothing against this one. One that is Unsure
	// stood still itself, and does not know its own fate yet.
	Cleared struct {
		From   ID
		Token  uint64
		Unsure bool
	}

	// Resumed says that this process did not run for Gap: whatever it knows may be history.
	Resumed struct{ Gap time.Duration }

	// Failed says that the resolver's own machinery broke: the member fails safe (promise F1).
	Failed struct{ Reason string }

	// Left says that this member leaves the cluster of its own will: nothing is decided any more.
	Left struct{}
)

func (MemberSeen) event()    {}
func (MemberGone) event()    {}
func (Reachability) event()  {}
func (Observations) event()  {}
func (LeaseAnswer) event()   {}
func (LeaseRead) event()     {}
func (LeaseObserved) event() {}
func (LeaseReleased) event() {}
func (Told) event()          {}
func (Ordered) event()       {}
func (Asked) event()         {}
func (Cleared) event()       {}
func (Resumed) event()       {}
func (Failed) event()        {}
func (Left) event()          {}

// Outcome is the answer of a lease store. It has three values, because not knowing is not being denied.
type Outcome uint8

// The outcomes. The zero value is Unknown.
const (
	// Unknown: nobody can tell yet. It is never read as Granted.
	Unknown Outcome = iota
	// Granted: this member holds the lease and the store holds its verdict.
	Granted
	// Held: nothing was written, because another member holds the lease or a newer verdict stands in it.
	Held
)

var outcomeNames = [...]string{"unknown", "granted", "held"}

// String returns the outcome in lower case.
func (o Outcome) String() string { return outcomeNames[o] }

// Order is a decision that no lease stands behind.
type Order struct {
	Kind Kind
	// Down are the members that go down or are kept out.
	Down []ID
	// Reason is the decision in one sentence.
	Reason string
}
