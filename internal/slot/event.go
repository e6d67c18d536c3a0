package slot

import (
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Event is something that happened to a machine.
type Event interface{ isEvent() }

// Effect is something that a machine wants done: the driver carries effects out in order.
type Effect interface{ isEffect() }

// Tick lets time pass. It is due at the deadline of NextDeadline, after a Viewed with the newest view.
type Tick struct{}

// Viewed replaces the view of the cluster. The machine keeps Peers: do not change them.
type Viewed struct{ View View }

// Asked is a request of another member. It is answered by the effect Answer with the same Ref, perhaps much
// later, perhaps never.
type Asked[M any] struct {
	Ref     uint64
	From    sbr.ID
	Message M
}

// Answered is another member's answer to an effect Ask.
type Answered[M any] struct {
	From    sbr.ID
	Message M
	// Unserved says that the member has no manager for the topic: its provider has answered. Message is then
	// the request.
	Unserved bool
}

// LeaseAnswer is the outcome of an AcquireLease effect. A driver that can wait for the lease may take as long
// as it likes.
type LeaseAnswer struct {
	// Shard is the number of a machine's slot, here and in the events and effects below. A singleton is slot
	// 0.
	Shard   int
	Attempt uint64
	Outcome sbr.Outcome
	// Token is the lease's fencing token when it was granted.
	Token uint64
	// Why names the holder, or says why the outcome is unknown.
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

// RunEnded says that nothing of a run is left.
type RunEnded struct {
	Shard int
	Run   uint64
	// State is for the next run, at most MaxState bytes: more is left out.
	State []byte
	// Again asks for another run here after the pause Rest, if the run of a singleton ended by itself. A
	// shard is always run again.
	Again bool
	Rest  time.Duration
	// Newer is the token of a run elsewhere, or that of this run if it can do nothing more under it: with Again
	// the next run gets a larger token, unless this run's is larger than Newer. Zero: none is known.
	Newer uint64
	// Why says how the run ended, where it ended by itself.
	Why string
}

// Resign makes the member hand over its runs, and take nothing again.
type Resign struct {
	// Patience is how long others may take to ask for the runs. Zero: they are stopped at once.
	Patience time.Duration
}

// Downed says that the member was downed.
type Downed struct{ Why string }

func (Tick) isEvent()          {}
func (Viewed) isEvent()        {}
func (Asked[M]) isEvent()      {}
func (Answered[M]) isEvent()   {}
func (LeaseAnswer) isEvent()   {}
func (LeaseLost) isEvent()     {}
func (LeaseReleased) isEvent() {}
func (RunEnded) isEvent()      {}
func (Resign) isEvent()        {}
func (Downed) isEvent()        {}

// Ask sends a request to one member, or to every other member if To is empty. Answers are reported for as
// long as possible, at least for twice Rules.HandOverRetryInterval, so that a repeated request always finds
// one open.
type Ask[M any] struct {
	To      sbr.ID
	Message M
}

// Answer answers a request.
type Answer[M any] struct {
	Ref     uint64
	Message M
}

// AcquireLease requests a slot's lease. Answer with LeaseAnswer, and report a later loss with LeaseLost.
type AcquireLease struct {
	Shard   int
	Attempt uint64
}

// ReleaseLease gives up an attempt, whatever its outcome. Answer with LeaseReleased, in bounded time.
type ReleaseLease struct {
	Shard   int
	Attempt uint64
}

// Start starts a run. Report its end with RunEnded.
type Start struct {
	Shard int
	// Run numbers the slot's runs here.
	Run   uint64
	Token uint64
	// State is the state left by the last run; nil if there is none.
	State []byte
	// From is the member that handed over; empty after a crash, a partition or at the first start.
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

// GiveUp ends this run of a coordinator: it has to be run again, under a term larger than Term. The machine
// does nothing from then on.
type GiveUp struct {
	Term uint64
	Why  string
}

// Explain carries a sentence for people about what a machine just did.
type Explain struct {
	Topic Topic
	// Shard is the slot of the sentence; negative: all, or none.
	Shard int
	Text  string
}

func (Ask[M]) isEffect()       {}
func (Answer[M]) isEffect()    {}
func (AcquireLease) isEffect() {}
func (ReleaseLease) isEffect() {}
func (Start) isEffect()        {}
func (Stop) isEffect()         {}
func (GiveUp) isEffect()       {}
func (Explain) isEffect()      {}

// Cause is why a run has to end, in the word that logs and agents use. It is the error of a run's context.
type Cause string

// Error is the word.
func (c Cause) Error() string { return string(c) }

// The causes.
const (
	// CauseHandOver: another member takes over.
	CauseHandOver Cause = "hand-over"
	// CauseOrdered: the coordinator has given the shard to another member, stops it, or does not know it.
	CauseOrdered Cause = "ordered"
	// CauseResigned: this member leaves, or its manager was stopped.
	CauseResigned Cause = "resigned"
	// CauseLeaseLost: the lease is lost.
	CauseLeaseLost Cause = "lease-lost"
	// CauseUnsure: membership was not confirmed for Rules.Trust.
	CauseUnsure Cause = "unsure"
	// CauseDown: this member was downed.
	CauseDown Cause = "down"
)

// Topic says what a sentence is about.
type Topic string

// The topics that singletons and shards have in common.
const (
	TopicTaking   Topic = "taking"
	TopicWaiting  Topic = "waiting"
	TopicLease    Topic = "lease"
	TopicStarted  Topic = "started"
	TopicStopping Topic = "stopping"
	TopicEnded    Topic = "ended"
	// TopicOrdered and TopicArrived: the coordinator gives a shard to a member, and sees it run there. The
	// log has them for debugging: TopicMove and TopicStarted tell the same.
	TopicOrdered Topic = "ordered"
	TopicArrived Topic = "arrived"
	// TopicStuck: something makes no progress, and an operator should look.
	TopicStuck Topic = "stuck"
)
