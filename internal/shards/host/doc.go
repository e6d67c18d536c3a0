// Package host runs the shards of one type on one member, as a coordinator (package
// internal/shards/coordinator) orders. It is a pure state machine, like package sbr: time is an argument,
// what it wants done is returned as values.
//
//	for effects := m.Step(now, event) { carry them out; report back with further events }
//	when NextDeadline() comes: m.Tick(now)
//
// An order names the shard, the member that has it and the one that shall run it. The new one asks the old
// one to hand over; that one stops, waits until its run has really ended, gives its lease back, and answers
// with what the run has left; then the new one starts. The coordinator is told by an answer to its question,
// or, where something happens of itself, by a question of the host that is repeated until it is noted.
//
// # Guarantees
//
//   - Orders of a coordinator with a smaller term than the largest known are refused, and so are orders older
//     than the newest one on the same shard. An order from before the host has first reported under the term
//     is not followed: it was not meant for this host. When it is repeated after the report it is answered
//     like one of which nothing comes.
//   - A shard that another member has is started only once that member has answered the very order by which
//     it was asked for.
//   - An order that gives a shard to another member stops it here: at once, unless it is to be handed over
//     from here.
//   - With Config.UseLease nothing runs without the shard's lease. A run whose lease is lost is stopped at
//     once; the lease is asked for again once the run has ended, and Config.LeaseRetryInterval later. A lease
//     is given back unused if its token is not larger than those of the last run here and of the run that was
//     handed over.
//   - Without leases all runs are stopped when the member has not been sure of its place for Config.Trust.
//     Until tells that moment in advance. They do not start again of themselves: others may have been told
//     to.
//   - A member that is down stops everything before it does anything else, takes nothing, and says nothing
//     any more.
//   - A member that leaves takes nothing, and runs what it has until somebody asks for it, or its patience is
//     over.
//
// # Non-guarantees
//
//   - Stop asks a run to end. How long it takes to, is the run's business; nothing else starts meanwhile, if
//     this member can still say so.
//   - The host does not know where else a shard runs: that is for the coordinator, whose doc says why no
//     shard runs twice.
//
// # Assumptions
//
//   - A machine that follows another one in the same incarnation is given what that one knew (Config.Known),
//     and begins when nothing of that one runs.
package host
