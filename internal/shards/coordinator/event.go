package coordinator

import "github.com/serf-sbr/serf-sbr/internal/slot"

// The topics that only a coordinator has.
const (
	// TopicRecovering: it finds out what runs where.
	TopicRecovering slot.Topic = "recovering"
	// TopicMember: a member cannot be used, or can again.
	TopicMember slot.Topic = "member"
	// TopicMove: a shard goes somewhere.
	TopicMove slot.Topic = "move"
	// TopicArrived: a shard runs where it should.
	TopicArrived slot.Topic = "arrived"
	// TopicConflict: two members say that they have a shard.
	TopicConflict slot.Topic = "conflict"
)
