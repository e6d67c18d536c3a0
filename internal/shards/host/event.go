package host

import "github.com/serf-sbr/serf-sbr/internal/slot"

// The topics that only shards have.
const (
	TopicCoordinator slot.Topic = "coordinator"
	TopicGivenUp     slot.Topic = "given-up"
)
