// Package shards tries everything that can happen to the shards of a type (packages coordinator and host) on
// a small cluster: the real machines in every member, and around them an abstract cluster (package walktest)
// of which everything is allowed that the real one might do. It is to shards what package slots is to
// singletons.
//
//	r := shards.Walk(ctx, options) // walktest.Default, with what may happen; or one of Normal or Thorough
//	for _, v := range r.Broken { fmt.Println(v) }
//
// One or two shards are placed by the real allocator. The coordinator runs on the oldest member, as its
// singleton would have it: it goes elsewhere when its member leaves, or was removed and the margin is over,
// and it ends where a member without leases is not sure of its place any more. Options.Changes lets it change
// although nothing is wrong: then the previous coordinator goes on as long as time stands still, and both
// give orders. Options.Whims lets the allocator want a shard elsewhere although it runs well: it stands for
// all that makes the real one move shards to and fro in longer lives.
//
// # Promises
//
//   - A: never are two runs of a shard active at once. A run is active from its start until it is asked to
//     stop or has ended, while its process is not paused and its own check holds: the shard's lease is its
//     own or, without leases, its member's time is not over. No run starts before the run that was handed
//     over to it has ended or, without leases, that of any member that no verdict has removed. Nothing starts
//     or goes on where a member knows that it is down, and nothing starts without its lease.
//   - B: tokens of a shard grow in the order in which its runs start, but for a run that starts again where
//     it has ended. A run whose lease was lost before it has heard of it may be late: its own check says no
//     from the beginning.
//   - C: from every state that was reached, once faults stop (the network is whole or one side has won,
//     messages flow, runs end), each shard is active on exactly one member within Options.Bound, and no other
//     member takes, stops or waits for it.
//   - D: a deadline that has come is over after a tick.
//   - E: a coordinator with a smaller term than a host knows changes nothing on that host, and has it do
//     nothing but refuse.
//   - F: a host that has a shard does not give it away to a member that asks for it by an older order.
//
// # What is left out, and why that is allowed
//
//   - Machines are compared by their AppendState, in which numbers of orders, questions and reports, and
//     tokens, are replaced by their rank (walktest.Canon). Machines only compare such numbers with those of
//     the same shard or member, and each new one is larger than all before under its term. So states with the
//     same ranks go on alike.
//   - Numbers of questions count only where a manager may be closed: what is compared with them is the answer
//     of a provider that has no manager.
//   - Of two packets that are the same, one is tried.
//   - What a member says to itself comes before anything else comes there: in the driver it is next in the
//     queue. The word that a report has been noted, which ends its repetition only, comes at once where no
//     packet may be late, lost or twice.
//   - Who owns what, as callers are told, is not followed: no machine listens to it.
//
// # Non-guarantees
//
//   - Pauses of the machines that are shorter than a step (20 ms to 200 ms) take one step.
//   - A member that leaves is gone only once nothing runs there.
//   - Nobody audits.
//
// # Assumptions
//
//   - Those of package coordinator. Every member notices a change of whom it reaches within half the margin,
//     and is not armed before all others know it.
package shards
