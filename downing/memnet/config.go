package memnet

import (
	"errors"
	"fmt"
	"time"
)

// Port is where every host of a [Network] listens: memberlist's default.
const Port = 7946

// defaultQueueLen outlasts the bursts of a hundred nodes that join at once,
// and is small enough that a node which stopped reading is noticed in Stats.
const defaultQueueLen = 1024

// Config says how a [Network] treats what it carries. The zero value is an
// ideal network: no delay, no loss.
type Config struct {
	// Latency is the delay of one direction. 0 delivers a packet before
	// WriteTo returns. A dial takes a round trip, hence twice of it.
	Latency time.Duration

	// Jitter is added to Latency, drawn evenly from 0 to Jitter for each packet
	// and each write to a stream; 0 adds nothing. Packets overtake each other
	// where their draws say so; bytes of a stream never do.
	Jitter time.Duration

	// Loss is the share of packets that vanish, from 0 (none) to 1 (all).
	// Streams lose nothing: TCP would send again.
	Loss float64

	// Seed starts the generator behind Jitter and Loss. 0 is a seed like any other.
	Seed uint64

	// QueueLen is how many packets wait at a transport that does not read, and,
	// each way, at a frozen host. 0 means 1024.
	QueueLen int
}

// Validate returns nil, or all that is wrong with c, one line for each fault.
func (c Config) Validate() error {
	var errs []error
	if c.Latency < 0 {
		errs = append(errs, fmt.Errorf("memnet: latency %v is negative", c.Latency))
	}
	if c.Jitter < 0 {
		errs = append(errs, fmt.Errorf("memnet: jitter %v is negative", c.Jitter))
	}
	// Written so that NaN fails as well.
	if !(c.Loss >= 0 && c.Loss <= 1) {
		errs = append(errs, fmt.Errorf("memnet: loss %v is not between 0 and 1", c.Loss))
	}
	if c.QueueLen < 0 {
		errs = append(errs, fmt.Errorf("memnet: queue length %d is negative", c.QueueLen))
	}
	return errors.Join(errs...)
}
