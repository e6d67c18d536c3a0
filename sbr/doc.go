// Package sbr is the vocabulary and the heart of a split brain resolver: members and what one of them sees of
// the others, decisions, verdicts, and the Resolver, a pure state machine that says what one member does
// about a partition.
//
// The package imports the standard library alone and knows no clock, goroutine, I/O, logger or random source.
// Time is an argument, effects are values. Production, the simulator and the command line drive the same
// Resolver:
//
//	for effects := r.Step(now, event) { carry them out; report back with further events }
//	when NextDeadline() comes: r.Tick(now)
//
// # Guarantees
//
//   - With a strategy that needs the lease, a verdict is proposed only by a member that stands in the last
//     verdict, over exactly that verdict. Its survivors are survivors of the last verdict, or members that
//     had read it when they started. Over a store with compare-and-swap, no two sides that were ever downed
//     by each other both go on, whatever is lost, late, paused or crashed.
//   - An incarnation that a known verdict leaves out goes down at the next step, for good; nothing makes it a
//     member again.
//   - An unknown outcome is never treated as granted, nor as denied: it is retried inside
//     Config.LeaseDeadline.
//   - While no member is unreachable nothing is written to the lease, but for its release. The lease is read
//     once after arming, and during and after a check (a pause, a heal), because it may have a verdict that
//     no member here knows.
//   - Every decision comes with one sentence that explains it.
//
// # Non-guarantees
//
//   - Between the cut and the decision both sides run. Work that must not run twice needs the fencing token,
//     or waits.
//   - Strategies without a lease decide by counting: sides that see different members, or decide at different
//     times, may both stay.
//   - A write that was committed but whose answer was lost, followed by the loss of the store for the whole
//     winning side, leaves no survivor under WhenLeaseUnknown: down. UnknownSuspend waits instead.
//   - Without a watch of the lease, a write that was committed long after its sender gave it up is found by
//     the next race or check, not at once.
//   - Two groups that never knew of each other, because the members that knew both left without a decision,
//     are two clusters.
//
// # Assumptions
//
//   - An incarnation id is never used twice, and Member.Seen is what that incarnation read from the store
//     before it started.
//   - The driver's clock does not go back, and the driver reports a pause of its process with Resumed.
//   - All members run the same Config and strategy.
package sbr
