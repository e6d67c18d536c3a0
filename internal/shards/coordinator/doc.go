// Package coordinator decides which member runs which shard of one type. It is a pure state machine, like
// package sbr: time is an argument, effects are returned as values. It runs as a singleton (package
// singleton); package internal/shards/host is its counterpart on every member.
//
//	for effects := m.Step(now, event) { carry them out; report back with further events }
//	when NextDeadline() comes: m.Step(now, slot.Tick{})
//
// A run of the coordinator begins with a request to all members: what do you run? Each answers at once, and
// from then on refuses every older coordinator. Once all have answered, and the margins of members that are
// gone are over, a shard that no member has claimed runs nowhere. Only then the coordinator gives shards to
// members, as package sharding/allocation decides and no more at once than it allows. Each order goes to all
// members in one request, and is repeated until it is carried out. When the singleton's run is stopped, the
// machine is dropped: its successor asks again.
//
// # Why a shard never runs twice
//
// For each shard the coordinator keeps the claims of members: a member that runs, stops or takes the shard,
// or may have received an order to take it, has a claim. A claim ends only by a report of the member, newer
// than all its earlier ones, that it neither has the shard nor will take it by any order so far; by a report
// of the next owner that it runs the shard by the very order to take it from this member; by a verdict and
// the margin after it; or when the member has no manager, which is closed only when nothing of it runs. An
// order to take a shard names the one member that may still have it; if it names none, all members have
// reported that they do not. The named member stops, waits until its run has really ended, and answers that
// one order; only then the new owner starts. So while two hosts reach each other they take turns; when they
// do not, one of them is removed, and has stopped before the margin is over (or the lease decides).
//
// The coordinator's token, its Term, keeps an old coordinator out: the first request under a new term makes a
// host refuse orders of older terms, and the new coordinator gives no orders on shards without owner before
// all hosts have received that request. An order that was already followed is in the report. Numbers of
// orders are Term<<18|n, so a later order of any coordinator has a larger number: it is the order's fence,
// and without leases also the run's token. When all n of a term are spent, the coordinator resigns; it never
// counts from the beginning.
//
// # Guarantees
//
//   - At most one member has an order to run a shard without having to wait for another member that may run
//     it.
//   - Tokens of a shard grow with each owner.
//   - No more shards are under way at once than the allocator's configuration allows, apart from those that
//     an earlier coordinator left under way.
//   - A member with another list of shards gets none, and is named. It stops its runs; until it has, shards
//     without owner wait.
//   - A member that offers to serve again is asked what it runs before it gets anything: its manager may be a
//     new one.
//   - A shard whose member does not take it is explained. It goes to another member as soon as that is safe:
//     once the member has given it up.
//
// # Non-guarantees
//
//   - Without leases, a live member that does not answer keeps its shards, and no shard without owner starts.
//     With leases the member is passed over after Config.NumberOfRetries, and the leases decide.
//   - Two coordinators, in clusters that do not know each other, run the shards twice. When they meet, the
//     shards of the older orders are stopped.
//   - Hand-over of state is best effort: after a crash, or an order that was given twice, the next run may
//     begin without it.
//
// # Assumptions
//
//   - There is one run of the coordinator at a time, and each has a larger Term than all earlier runs. If a
//     term is too small, hosts that know a larger one report it, and the machine asks for another run
//     (Resign).
//   - All members have the same Config, and their clocks' rates differ by less than one eighth.
//   - Config.Margin is longer than twice the time in which a member of a downed side notices the partition,
//     or leases are used.
package coordinator
