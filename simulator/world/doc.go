// Package world runs whole clusters of resolvers in virtual time: a network that can be cut, a failure detector, and a lease
// store with every fault a real one has. The resolvers are the real ones (sbr.Resolver); everything around them is a model.
//
//	w, err := world.New(world.Options{Seed: 7, Nodes: 5, …})
//	w.At(10*time.Second, func() { w.Partition([]int{0, 1, 2}, []int{3, 4}) })
//	w.Run(5 * time.Minute)
//	for _, v := range w.Finish() { … }
//
// A World plays one run that a seed decides.
//
// # Guarantees
//
//   - Same options, same seed, same steps, same version: the same run, event by event (World.Hash).
//   - The promises S1, S2, S4 and L3, the growth of the token, the shrinking of the survivors, and that every decision is explained, are checked
//     during every run, and S1 once more when the world has come to rest (World.Finish).
//   - Nothing reads a clock, starts a goroutine or uses the global random source.
//
// # Non-guarantees
//
//   - The detector and the spreading of membership are models of Serf, not Serf. What they leave out is said at their options.
//   - A run shows one interleaving out of many: explore with many seeds.
//
// # Assumptions
//
//   - The strategy needs a lease, or the caller does not expect S1 of it: only a lease makes that promise.
package world
