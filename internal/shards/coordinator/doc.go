// Package coordinator decides which member runs which shard of one type. It is a pure state machine, like
// package sbr: time is an argument, what it wants done is returned as values. It runs as a singleton (package
// singleton); package internal/shards/host is its counterpart on every member.
//
//	for effects := m.Step(now, event) { carry them out; report back with further events }
//	when NextDeadline() comes: m.Tick(now)
//
// A run of the coordinator begins with a question to all members: what do you run? Each answers at once, and
// from then on refuses every older coordinator. Once all have answered, and the margins of those that are
// gone are over, a shard that nobody has claimed runs nowhere. Only then shards are given to members, as
// package sharding/allocation says and no more at once than it allows. Each order goes to all members in one
// question, and is repeated until it is carried out. When the singleton's run is stopped, the machine is
// dropped: its successor asks again.
//
// # Why a shard never runs twice
//
// For each shard the coordinator keeps the claims of members: who runs it, stops it, takes it, or may have
// got an order to. A claim ends only by the member's own word, newer than all it has said before, that it
// neither has the shard nor will take it by any order so far; by the word of the next owner that runs it by
// the very order to take it from there; by a verdict and the margin after it; or when the member has no
// manager, which is closed only when nothing of it runs. An order to take a shard names the one member that
// may still have it; if nobody does, all members have told so. The member that is named stops, waits until
// its run has really ended, and answers that one order; only then the new one starts. So while two hosts can
// talk they take turns; when they cannot, one of them is removed, and has stopped before the margin is over
// (or the lease decides).
//
// The coordinator's token, its Term, keeps an old coordinator out: the first question under a new term makes
// a host refuse orders of older ones, and the new coordinator gives no orders on shards without owner before
// all have had that question. An order that was already followed is in the report. Numbers of orders are
// Term<<18|n, so a later order has a larger number whoever gave it: it is the order's fence, and without
// leases also the run's token. When all n of a term are spent, the coordinator resigns; it never counts from
// the beginning.
//
// # Guarantees
//
//   - At most one member has been told to run a shard without having to wait for another one that may run it.
//   - Tokens of a shard grow with each owner.
//   - No more shards are under way at once than the allocator's configuration allows, apart from those that
//     an earlier coordinator left under way.
//   - A member with another list of shards gets none, and is named. It stops what it runs; until it has,
//     shards without owner wait.
//   - A member that offers to serve anew is asked what it runs before it gets anything: its manager may be
//     another one than before.
//   - A shard whose member does not take it is said loudly. It goes to another one as soon as that is safe:
//     once the member has given it up.
//
// # Non-guarantees
//
//   - Without leases, a live member that does not answer keeps its shards, and no shard without owner starts.
//     With leases it is passed over after Config.NumberOfRetries, and the leases decide.
//   - Two coordinators that never heard of each other, in clusters that do not know each other, run the
//     shards twice. When they meet, the shards of the older orders are stopped.
//   - What a run has left is handed over at best: after a crash, or an order that was given twice, the next
//     run may begin without it.
//
// # Assumptions
//
//   - There is one run of the coordinator at a time, and each has a larger Term than all before. If a term is
//     too small, hosts that know a larger one say so, and the machine asks for another run (Resign).
//   - All members have the same Config, and their clocks' rates differ by less than one eighth.
//   - Config.Margin is longer than twice the time in which a member of a losing side notices that it is cut
//     off, or leases are used.
package coordinator
