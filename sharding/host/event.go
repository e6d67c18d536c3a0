package host

import (
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding/membership"
	"github.com/serf-sbr/serf-sbr/sharding/message"
)

// Event is something that happened to the machine. See Machine.Step.
type Event interface{ isEvent() }

// Viewed replaces the view of the cluster. The machine keeps Peers: do not change them.
type Viewed struct{ View membership.View }

// Asked is a question of a coordinator or another host, one on this member included. It is answered by the effect Answer with the same Ref, perhaps
// later, perhaps never.
type Asked struct {
	Ref     uint64
	From    sbr.ID
	Message message.Message
}

// Answered is another member's answer to an effect Ask.
type Answered struct {
	From    sbr.ID
	Message message.Message
	// Unserved says that the member has no manager for the type: its provider says so. Message is then the question.
	Unserved bool
}

// LeaseAnswer is the outcome of an AcquireLease effect. A driver that can wait for the lease may take as long as it likes.
type LeaseAnswer struct {
	Shard   int
	Attempt uint64
	Outcome sbr.Outcome
	// Token is the lease's fencing token when it was granted.
	Token uint64
	// Why says who holds it, or why nobody knows.
	Why string
}

// LeaseLost says that the lease granted to an attempt is lost.
type LeaseLost struct {
	Shard   int
	Attempt uint64
	Why     string
}

// LeaseReleased says that a ReleaseLease effect is done with, or has taken too long.
type LeaseReleased struct {
	Shard   int
	Attempt uint64
}

// RunEnded says that nothing of a run is left. One that was not asked to stop is started again after the pause Rest.
type RunEnded struct {
	Shard int
	Run   uint64
	// State is for the next run, at most message.MaxState bytes: more is left out.
	State []byte
	Rest  time.Duration
	// Why says how it ended, where it ended by itself.
	Why string
}

// Leave makes the member hand its shards over and take none again.
type Leave struct {
	// Patience is how long others may take to ask for them. Zero: all runs are stopped at once.
	Patience time.Duration
}

// Downed says that the member was downed.
type Downed struct{ Why string }

func (Viewed) isEvent()        {}
func (Asked) isEvent()         {}
func (Answered) isEvent()      {}
func (LeaseAnswer) isEvent()   {}
func (LeaseLost) isEvent()     {}
func (LeaseReleased) isEvent() {}
func (RunEnded) isEvent()      {}
func (Leave) isEvent()         {}
func (Downed) isEvent()        {}

// Effect is something the machine wants done. Effects are values; the driver carries them out in order.
type Effect interface{ isEffect() }

// Ask sends a question to one member, or to every other member if To is empty. To may be this member: the question is then for the coordinator here.
// Answers are reported for as long as possible, at least for twice Config.HandOverRetryInterval.
type Ask struct {
	To      sbr.ID
	Message message.Message
}

// Answer answers a question.
type Answer struct {
	Ref     uint64
	Message message.Message
}

// AcquireLease asks for a shard's lease. Answer with LeaseAnswer, and report a later loss with LeaseLost.
type AcquireLease struct {
	Shard   int
	Attempt uint64
}

// ReleaseLease gives an attempt up, whatever became of it. Answer with LeaseReleased, in bounded time.
type ReleaseLease struct {
	Shard   int
	Attempt uint64
}

// Start starts a run. Report its end with RunEnded.
type Start struct {
	Shard int
	// Run numbers the shard's runs here.
	Run   uint64
	Token uint64
	// State is what the run before has left; nil if there was none, or it could not say.
	State []byte
	// From is the member that handed over; empty otherwise.
	From sbr.ID
}

// Stop asks a run to end.
type Stop struct {
	Shard int
	Run   uint64
	Cause Cause
	// Why is the cause in one sentence.
	Why string
	// To is the member that takes over, where one does.
	To sbr.ID
}

// Explain carries a sentence that explains what the machine just did, for people.
type Explain struct {
	Topic Topic
	// Shard is the one that it is about; negative: all, or none.
	Shard int
	Text  string
}

func (Ask) isEffect()          {}
func (Answer) isEffect()       {}
func (AcquireLease) isEffect() {}
func (ReleaseLease) isEffect() {}
func (Start) isEffect()        {}
func (Stop) isEffect()         {}
func (Explain) isEffect()      {}

// Cause says why a run has to end.
type Cause uint8

// The causes. Nothing stops for the zero Cause.
const (
	// CauseHandOver: another member takes over.
	CauseHandOver Cause = iota + 1
	// CauseOrdered: the coordinator has given the shard to another member, stops it, or does not know it.
	CauseOrdered
	// CauseResigned: this member leaves, or its manager was stopped.
	CauseResigned
	// CauseLeaseLost: the lease is lost.
	CauseLeaseLost
	// CauseUnsure: this member has not been sure of its place for Config.Trust.
	CauseUnsure
	// CauseDown: this member was downed.
	CauseDown
)

var causeNames = [...]string{"none", "hand-over", "ordered", "resigned", "lease-lost", "unsure", "down"}

// String returns the cause as metrics and logs name it.
func (c Cause) String() string { return causeNames[min(int(c), len(causeNames)-1)] }

// Topic says what a sentence is about.
type Topic string

// The topics.
const (
	TopicCoordinator Topic = "coordinator"
	TopicTaking      Topic = "taking"
	TopicLease       Topic = "lease"
	TopicStarted     Topic = "started"
	TopicStopping    Topic = "stopping"
	TopicEnded       Topic = "ended"
	TopicGivenUp     Topic = "given-up"
	// TopicStuck: a shard does not start, and somebody should look.
	TopicStuck Topic = "stuck"
)
