// Package host runs the shards of one type on one member, as a coordinator (package
// internal/shards/coordinator) orders. It is a pure state machine, like package sbr: time is an argument,
// effects are returned as values.
//
//	for effects := m.Step(now, event) { carry them out; report back with further events }
//	when NextDeadline() comes: m.Step(now, slot.Tick{})
//
// An order names the shard, its old owner and its new owner. The new owner asks the old owner to hand over.
// The old owner stops, waits until its run has really ended, releases its lease, and answers with the state
// that the run has left; then the new owner starts. The host reports to the coordinator in the answer to its
// request. Other changes it sends in a request of its own, repeated until the coordinator acknowledges it.
//
// # Guarantees
//
//   - Orders of a coordinator with a smaller term than the largest known are refused, and so are orders older
//     than the newest one on the same shard. An order from before the host has first reported under the term
//     is not followed: it was not meant for this host. If it is repeated after the report it is answered like
//     an order without effect.
//   - A shard that another member has is started only once that member has answered the request for this very
//     order.
//   - An order that gives a shard to another member stops it here: at once, unless it is to be handed over
//     from here.
//   - With Config.UseLease nothing runs without the shard's lease. A run whose lease is lost is stopped at
//     once; the lease is requested again Config.LeaseRetryInterval after the run has ended. A lease is
//     released unused if its token is not larger than those of the last run here and of the run that was
//     handed over.
//   - Without leases all runs are stopped when membership was not confirmed for Config.Trust. Until returns
//     that moment in advance. The runs do not start again by themselves: other members may have been ordered
//     to.
//   - A member that is down stops everything before it does anything else, takes nothing, and sends nothing
//     any more.
//   - A member that leaves takes nothing, and runs its shards until another member asks for them, or its
//     patience is over.
//
// # Non-guarantees
//
//   - Stop asks a run to end, which may take any time. Nothing else starts meanwhile, as long as this member
//     can answer.
//   - The host does not know where else a shard runs: the coordinator does. Its doc says why no shard runs
//     twice.
//
// # Assumptions
//
//   - A machine that follows an earlier machine of the same incarnation gets its knowledge (Config.Known),
//     and begins when nothing of the earlier one runs.
package host
