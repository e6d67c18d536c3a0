package memnet

import "time"

// Port is where every host of a [Network] listens: memberlist's default.
const Port = 7946

// queueLen is how many packets wait at a transport that does not read, and, each way, at a frozen host:
// enough for the bursts of a hundred nodes that join at once.
const queueLen = 1024

// Config says how a [Network] treats what it carries. The zero value delays nothing.
type Config struct {
	// Latency is the delay of one direction. 0 delivers a packet before WriteTo returns. A dial takes a round
	// trip, hence twice of it.
	Latency time.Duration

	// Jitter is added to Latency, drawn evenly from 0 to Jitter for each packet and each write to a stream; 0
	// adds nothing. Packets overtake each other where their draws say so; bytes of a stream never do.
	Jitter time.Duration

	// Loss is the share of packets that vanish, from 0 to 1. A stream loses none: what is lost of it is sent
	// again, which takes longer, as in TCP.
	Loss float64

	// Seed starts the generator behind Jitter and Loss. 0 is a seed like any other.
	Seed uint64
}

// possible reports whether a network can be so.
func (c Config) possible() bool { return c.Latency >= 0 && c.Jitter >= 0 && c.Loss >= 0 && c.Loss <= 1 }
