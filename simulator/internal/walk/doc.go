// Package walk searches everything that can happen to a small cluster.
//
// Search is the engine of every exhaustive walk. It knows no more of what it searches than a Model says: the first state, what can
// happen next, and what a state is told apart by. The resolver's model is in simulator/explore, those of singletons and shards in the
// packages slots and shards.
//
//	search := walk.NewSearch(model, 0, nil) // the model tells it what it finds: search.Broken
//	report := search.Run(ctx)
//
// Slots and shards run on an abstract cluster (World): members (Cluster) and messages under way (Packets). What both do with runs, and
// with leases, is a Walker; what is their own is a Runner. The cluster is what a resolver shows to
// what runs on top of it, and no more: members join and are armed, a cut divides them, the verdict goes to either side or the cut
// heals, members crash, are paused, resign, open a manager again, leave, and notice all that sooner or later. Which side a verdict
// goes to is not decided by any rule: either may win.
//
// # Guarantees
//
//   - A search that is complete has visited each state that Model.Moves leads to, once. States are told apart by a hash of 128 bits of
//     what Model.AppendKey writes.
//   - A violation comes with the way to it. That is made again to tell what the machines did.
//   - Nothing reads a clock or a random source, or starts a goroutine: the same search finds the same.
//
// # Non-guarantees
//
//   - The way to a violation is not the shortest one. A search ends at the third.
//   - A member of a World joins only a whole cluster, or what a verdict has left of one.
//
// # Assumptions
//
//   - Models do not change in place what states share.
//   - Every member of a World notices a change of whom it reaches, and a verdict, within Options.Notice. A side without an armed member
//     decides nothing. A member is not armed before all others know it; one that joins knows whom those know whom it reaches, until
//     they have all heard of the newest verdict.
package walk
