package sbr

import "time"

// Event is something that happened to the resolver: an observation, an answer, a message. See Resolver.Step.
type Event interface{ apply(r *Resolver) }

// The events.
type (
	// MemberSeen says that a member exists, with its newest facts. Status is what the cluster reports: Up for
	// an alive member (it stays Joining here until it was seen while no member was unreachable), Joining for
	// a member that takes no part (yet): it is no suspect, and moves no deadline; Leaving, Exiting or Down.
	// Unreachable is ignored: that is Reachability's business.
	MemberSeen struct{ Member Member }

	// MemberGone says that the cluster lists a member no longer. Ended says that its end is certain: the
	// member had said goodbye before it was suspected, or its successor on the same host proves that it
	// ended. Without that, being removed from a list is no end: it stays, as an unreachable suspect.
	MemberGone struct {
		ID    ID
		Ended bool
	}

	// Suspected names members that could not be reached and were not decided about, as an earlier process of
	// this member remembers them. Members that are known here already stay as they are seen here.
	Suspected struct{ Members []Member }

	// Reachability says that a member can, or cannot, be reached from here. Repeating a fact has no effect.
	Reachability struct {
		ID          ID
		Unreachable bool
	}

	// Observations replaces all known reports that a member cannot reach another one.
	Observations struct{ Reports []Report }

	// LeaseAnswer is the outcome of an AcquireLease effect. Of an older attempt only the record counts.
	LeaseAnswer struct {
		Attempt uint64
		Outcome Outcome
		// Record is what the store holds; meaningless when the outcome is Unknown.
		Record Record
		// Err explains Unknown, in one line.
		Err string
	}

	// LeaseRead is the outcome of a ReadLease or RestoreVerdict effect; Err is empty when Record was read.
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

	// Told is a verdict that another member sent.
	Told struct {
		From    ID
		Verdict Verdict
	}

	// Ordered is another member's decision that no lease stands behind: Down go down, the others keep them
	// out.
	Ordered struct {
		From  ID
		Order Order
	}

	// Asked says that a member of this side could not reach the lease store and asks this one to race in its
	// place. Suspects are those that the sender cannot reach: this one takes over those that it does not
	// know. With Contact the sender was asked by this member, and has contact with the store.
	Asked struct {
		From     ID
		Suspects []ID
		Contact  bool
	}

	// Cleared says that another member, which knows of verdicts up to Token, knows no verdict against this
	// one. An Unsure sender was paused itself, and does not know its own standing yet. Suspects are as in
	// Asked.
	Cleared struct {
		From     ID
		Token    uint64
		Unsure   bool
		Suspects []ID
	}

	// DownRequested is an operator's request to down the member. Reason may be empty. AnswerDownRequest
	// answers.
	DownRequested struct {
		ID     ID
		Reason string
	}

	// Resumed says that this member saw and did nothing for Gap: whatever it knows may be history. Why says
	// what kept it from that; empty: its process did not run.
	Resumed struct {
		Gap time.Duration
		Why string
	}

	// Failed says that what this member needs to decide broke, the resolver or its way to the cluster: the
	// member fails safe (promise F1) with that reason.
	Failed struct{ Reason string }

	// Left says that this member leaves the cluster of its own will: nothing is decided any more.
	Left struct{}
)

func (e MemberSeen) apply(r *Resolver)    { r.onMemberSeen(e.Member) }
func (e MemberGone) apply(r *Resolver)    { r.onMemberGone(e) }
func (e Suspected) apply(r *Resolver)     { r.remember(e.Members) }
func (e Reachability) apply(r *Resolver)  { r.onReachability(e.ID, e.Unreachable) }
func (e Observations) apply(r *Resolver)  { r.onObservations(e.Reports) }
func (e LeaseAnswer) apply(r *Resolver)   { r.onLeaseAnswer(e) }
func (e LeaseRead) apply(r *Resolver)     { r.onLeaseRead(e) }
func (e LeaseObserved) apply(r *Resolver) { r.onLeaseObserved(e.Record) }
func (e LeaseReleased) apply(r *Resolver) { r.onLeaseReleased(e) }
func (e Told) apply(r *Resolver)          { r.onTold(e) }
func (e Ordered) apply(r *Resolver)       { r.onOrdered(e) }
func (e Asked) apply(r *Resolver)         { r.onAsked(e) }
func (e Cleared) apply(r *Resolver)       { r.onCleared(e) }
func (e DownRequested) apply(r *Resolver) { r.onDownRequested(e) }
func (e Resumed) apply(r *Resolver)       { r.onResumed(e) }
func (e Failed) apply(r *Resolver)        { r.goDown(e.Reason) }
func (Left) apply(r *Resolver)            { r.onLeft() }

// Outcome is the answer of a lease store. It has three values, because not knowing is not being denied.
type Outcome uint8

// The outcomes. The zero value is Unknown.
const (
	// Unknown: the outcome is not known yet. It is never read as Granted.
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
	// Suspects are the members that the sender cannot reach; a receiver takes over those that it does not
	// know.
	Suspects []ID
}
