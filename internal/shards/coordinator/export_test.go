package coordinator

import "github.com/serf-sbr/serf-sbr/internal/shards/message"

// Spend leaves so many numbers under the term.
func (m *Machine) Spend(left uint64) { m.counter = message.MaxCounter - left }
