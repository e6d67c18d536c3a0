package memnet

// Stats counts what a [Network] has done since New. All counts only grow.
//
// PacketsSent - PacketsDelivered - Dropped() packets are on their way or wait
// at a frozen host; on a network that is still, none.
type Stats struct {
	// PacketsSent and BytesSent count the packets that WriteTo took, and their
	// payload, lost ones included.
	PacketsSent, BytesSent int

	// PacketsDelivered counts the packets that reached a PacketCh.
	PacketsDelivered int

	// DroppedCut counts packets that met a cut.
	DroppedCut int

	// DroppedLoss counts packets that Config.Loss took.
	DroppedLoss int

	// DroppedFull counts packets that found a full queue: a PacketCh that
	// nobody reads, or a frozen host.
	DroppedFull int

	// DroppedDown counts packets to an address where nothing runs, and those
	// held for or by a frozen host that was shut down.
	DroppedDown int

	// Dials counts attempts to open a stream, DialsRefused and DialsTimedOut
	// those that ended so. The others succeeded, wait, or ended with the
	// shutdown of the dialling transport.
	Dials, DialsRefused, DialsTimedOut int

	// StreamBytes counts the bytes that streams took from their writers.
	StreamBytes int
}

// Dropped is the number of packets that were dropped, for whatever reason.
func (s Stats) Dropped() int {
	return s.DroppedCut + s.DroppedLoss + s.DroppedFull + s.DroppedDown
}

// Stats returns the counts up to now, consistent with each other.
func (n *Network) Stats() Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stats
}
