package coordinator

import (
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding/membership"
	"github.com/serf-sbr/serf-sbr/sharding/message"
)

// Event is something that happened to the machine. See Machine.Step.
type Event interface{ isEvent() }

// Viewed replaces the view of the cluster. The machine keeps Peers: do not change them.
type Viewed struct{ View membership.View }

// Asked is a question of a host, that on this member included: State, or Resigned. The machine ignores all others.
type Asked struct {
	Ref     uint64
	From    sbr.ID
	Message message.Message
}

// Answered is a host's answer to an effect Ask.
type Answered struct {
	From    sbr.ID
	Message message.Message
	// Unserved says that the member has no manager for the type: its provider says so. Message is then the question.
	Unserved bool
}

func (Viewed) isEvent()   {}
func (Asked) isEvent()    {}
func (Answered) isEvent() {}

// Effect is something the machine wants done. Effects are values; the driver carries them out in order.
type Effect interface{ isEffect() }

// Ask sends a question to one member, or to every member if To is empty. The host on the coordinator's own member is one of them. Answers are
// reported for as long as possible, at least for twice Config.HandOverRetryInterval.
type Ask struct {
	To      sbr.ID
	Message message.Message
}

// Answer answers a question.
type Answer struct {
	Ref     uint64
	Message message.Message
}

// Resign says that this run of the coordinator is of no use any more: the singleton has to be run again, under a term larger than Term. The machine
// does nothing from then on.
type Resign struct {
	Term uint64
	Why  string
}

// Explain carries a sentence that explains what the machine just did, for people.
type Explain struct {
	Topic Topic
	// Shard is the one that it is about; negative: all, or none.
	Shard int
	Text  string
}

func (Ask) isEffect()     {}
func (Answer) isEffect()  {}
func (Resign) isEffect()  {}
func (Explain) isEffect() {}

// Topic says what a sentence is about.
type Topic string

// The topics.
const (
	// TopicRecovering: it finds out what runs where.
	TopicRecovering Topic = "recovering"
	// TopicMember: a member cannot be used, or can again.
	TopicMember Topic = "member"
	// TopicMove: a shard goes somewhere.
	TopicMove Topic = "move"
	// TopicArrived: a shard runs where it should.
	TopicArrived Topic = "arrived"
	// TopicWaiting: a shard waits for a removal margin.
	TopicWaiting Topic = "waiting"
	// TopicStuck: something does not get on, and somebody should look.
	TopicStuck Topic = "stuck"
	// TopicConflict: two members say that they have a shard.
	TopicConflict Topic = "conflict"
)
