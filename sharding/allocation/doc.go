// Package allocation says which member owns which shard, and which shards have to move next.
//
// The rule is rendezvous hashing with bounded load, with a preference for the owner that a shard has. Each
// pair of a shard and a member has a score, a hash of both names; the member with the highest one is the
// shard's first choice. A member gets no more than its capacity, ceil(load factor × shards / members). From
// where the shards are now:
//
//	unowned        a shard without owner goes to the member with the highest score that has room
//	owner-leaves   then the shards of members on their way out, likewise
//	preferred      then a member with less than its share (shards / members) takes shards that prefer it to their owners
//	owner-full     then a member with more than its capacity gives away the shards that prefer it least
//
// Where several could be next, the highest score is. The package is pure: no clock, goroutine, I/O, logger or
// random source. A coordinator asks, carries out, and asks again:
//
//	a, err := allocation.New("orders", names, allocation.DefaultConfig())
//	for _, m := range a.Next(members, current) { current[m.Shard] = on its way to m.To; hand it over }
//	when one has arrived, or the members have changed: again
//
// # Why the owner is preferred
//
// Without it (each time allocated anew: where that differs from now is what moves) a change of the capacity
// alone moves shards, and shards that overflow chase each other. With nothing but it (only lost shards move)
// a member that joins gets nothing, and after a rolling restart the last one is empty: from 0 to 66 shards on
// a member instead of 43 to 60 (TestStability_RollingRestart).
//
// Shards of others that move when one of 20 members with 1,000 shards leaves or joins, the mean of 40 draws
// (TestStability_Measured):
//
//	load factor        1      1.1    1.25   2
//	leaves, anew       23.2   6.7    0.5    0
//	leaves, here       2.4    0      0      0
//	joins, anew        20.4   5.8    0.8    0
//	joins, here        15.2   2.5    0.7    0
//
// # Why names are hashed, and incarnations own
//
// A node that restarts is a new incarnation under its old name: it has the same scores, and so gets the same
// shards back, with whatever they left on its disk or in its caches. Its old incarnation's shards are unowned
// all the same, as soon as the old incarnation is gone.
//
// # Guarantees
//
//   - A function of what is given, in any order of members and shards: the same on every machine and in every
//     release.
//   - No move brings a member above its capacity. As long as one member can take shards, there is room for
//     all that can move.
//   - The moves end. Each move lowers the number of shards that have to be recovered, or else what members
//     have above their capacity, or else it raises the shard's score. When all have arrived and nothing
//     changes, there is nothing left to move, for a later coordinator neither.
//   - The later moves of a plan are the same, however many moves are begun at once: the limits change how
//     long it takes, not where the shards end up, unless members change meanwhile.
//   - When one member is gone or leaves, settled shards with their first choice stay; without overflow only
//     its own shards move.
//   - When one joins, a settled shard moves to it, away from a member that has more than the new capacity (no
//     more shards than the excess), or to a member that it prefers and that fell below its share.
//   - An unreachable member keeps its shards and gets none. While a member is unreachable, nothing is
//     rebalanced: a flapping member moves nothing.
//   - The load of a type is independent of other types': the type's name is hashed, too.
//
// # Non-guarantees
//
//   - Where a shard ends up depends on the past, not on the members alone: only the coordinator can compute
//     it.
//   - The lower bound is soft. A member has less than its share if too few shards prefer it (with 1,000
//     shards on 20 members about 40 of 50), and the share is zero with fewer shards than members.
//   - All shards weigh the same, and so do all members, unless Config.Target says where they should be.
//   - While shards are handed over, an owner that gives away may still run more than its capacity.
//   - A shard may move twice when much changes at once: to a second choice, and to a better one when that has
//     room.
//
// # Assumptions
//
//   - Member.ID is unique among the members, and an ID never comes back once it was gone.
//   - The caller makes sure that a shard has stopped before it starts elsewhere. A member that is missing
//     among the members counts as stopped; pass a member of which that is not certain as unreachable.
//   - Names are not chosen by an adversary: the hash is no secret.
//
// # Sources
//
// Thaler and Ravishankar, Using name-based mappings to increase hit rates (IEEE/ACM Transactions on
// Networking, 1998): rendezvous hashing. Mirrokni, Thorup and Zadimoghaddam, Consistent hashing with bounded
// loads (SODA 2018): the capacity; there, too, what overflows goes to the next choice. That the highest score
// takes the last room makes it the stable matching of Gale and Shapley.
package allocation
