// Package world runs whole clusters of resolvers in virtual time: a network that can be cut, a failure
// detector, and a lease store with every fault a real one has. The resolvers are the real ones
// (sbr.Resolver), and so are their observers (reachability.Tracker), the machine of the lease and the codec
// of messages; Serf, the network, the store and the clocks are models.
//
//	w, err := world.New(world.Options{Seed: 7, Nodes: 5, …})
//	w.At(10*time.Second, func() { w.Partition([]int{0, 1, 2}, []int{3, 4}) })
//	w.Run(5 * time.Minute)
//	for _, v := range w.FinishSafety() { … }
//
// A World plays one run that a seed decides.
//
// # Guarantees
//
//   - Same options, same seed, same steps, same version: the same run, event by event (World.Hash).
//   - Checked at every event: S2, S3, S4, L2, L3, the growth of the token, the shrinking of the survivors,
//     that nobody decides before its view is stable, and that every decision is explained. Checked at the end
//     (World.FinishSafety): S1, S2 and L1; in tests also that all has come to rest. One file each:
//     check_*.go.
//   - Options.Slots run on one member each: every process drives the machine of package internal/handover
//     beside its resolver, over the same network, with a lease of its own through the same way to the store.
//     Checked at every event: X1 (two runs of a slot are never active at once), X2 (tokens grow), X3 (a fence
//     keeps out exactly what comes from older runs), X5 (who was downed runs nothing), X6 (questions are
//     answered once); now and then and at the end X4 (once nothing has changed for a bound, the slot runs on
//     the oldest member that would run it). A run is active from its start until nothing of it is left, while
//     its process runs and its own Check says yes; it acts before anything else when a pause ends.
//   - Without slots nothing of them is there: runs are the same as before there were any.
//   - Nothing reads a clock, starts a goroutine or uses the global random source.
//
// # Non-guarantees
//
//   - The detector and the spreading of membership are models of Serf, not Serf. What they leave out is said
//     at their options.
//
//   - A run shows one interleaving out of many: explore with many seeds.
//
//   - A member that was removed from a list (World.ForceLeave, Options.ReapAfter) comes back when a member
//     there hears of it from one that still lists it. That Serf tells of a removal again in each exchange of
//     state is left out: it reaches the members that are reached at that moment. So is that memberlist goes
//     on gossiping to the dead for half a minute: after a short cut it may bring members together that list
//     each other no longer.
//
//   - A process that waits at its start is listed by nobody meanwhile. A real process that waits for the
//     answers of all is listed, as joining, and a verdict can name it as a survivor; here it waits only while
//     nobody is missed.
//
//   - Without a lease X1 is held to what package handover assumes; SlotOutcome.Why counts the overlaps that
//     are excused, by reason: a strategy without a verdict, members that never heard of each other, a network
//     that healed before a downed member heard of it, and a member that noticed later than half the margin
//     allows. What is shown of a slot without a lease is no more than that. With a lease nothing is excused.
//
// # Costs
//
// An event costs time that grows with the logarithm of the number of members at most, besides what the
// resolver itself needs for it. A change of the network costs a look at each member and one at each pair to
// whom it changes something. Memory grows with the pairs of members that know each other: with the square of
// the members.
//
// # Assumptions
//
//   - The strategy needs a lease, or the caller does not expect S1 of it: only a lease makes that promise.
package world
