// Package walk searches everything that can happen to a small cluster.
//
// Search is the engine of every exhaustive walk. It knows no more of what it searches than a Model says: the
// first state, what can happen next, and what a state is told apart by. The resolver's model is in
// simulator/explore, those of singletons and shards in package walktest.
//
//	search := walk.NewSearch(model, 0) // the model tells it what it finds: search.Broken
//	report := search.Run(ctx)
//
// # Guarantees
//
//   - A search that is complete has visited each state that Model.Moves leads to, once. States are told apart
//     by a hash of 128 bits of what Model.AppendKey writes.
//   - A violation comes with the way to it. That is made again to tell what the machines did.
//   - Nothing reads a clock or a random source, or starts a goroutine: the same search finds the same.
//
// # Non-guarantees
//
//   - The way to a violation is not the shortest one. A search ends at the third.
//
// # Assumptions
//
//   - Models do not change in place what states share.
package walk
