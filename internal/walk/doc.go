// Package walk is what exhaustive walks over small clusters have in common: the search itself (Search), an abstract cluster (Cluster), and letters under way in it (Mail). What
// runs on the members is a Model, and a Course of what can happen to it next to what happens to the cluster and its letters (World): see packages slots and shards.
//
//	w.search = walk.NewSearch[state](&options)
//	report := w.search.Run(ctx, w) // w is the Model; what it finds it tells w.search.Broken
//
// The cluster is what a resolver shows to what runs on top of it, and no more: members join and are armed, a cut divides them, the verdict goes to either side or the cut heals,
// members crash, are paused, resign, open a manager again, leave, and notice all that sooner or later. Which side a verdict goes to is not decided by any rule: either may win.
//
// # Guarantees
//
//   - A walk that is complete has visited each state that the Model's Moves lead to, once. States are told apart by a hash of 128 bits of what Model.AppendKey writes.
//   - From each state in which time may pass, the fair way is followed until all is as it should be, and no longer than Options.Bound.
//   - A violation comes with the way to it, which is walked again to tell what the machines did, and with how it goes on where all should become well and does not.
//   - Nothing reads a clock or a random source: the same options find the same.
//
// # Non-guarantees
//
//   - The way to a violation is not the shortest one. A walk ends at the third.
//   - A member joins only a whole cluster, or what a verdict has left of one.
//
// # Assumptions
//
//   - Models do not change in place what states share.
//   - Every member notices a change of whom it reaches, and a verdict, within Options.Notice. A side without an armed member decides nothing. A member is not armed before all others
//     know it; one that joins knows whom those know whom it reaches, until they have all heard of the newest verdict.
package walk
