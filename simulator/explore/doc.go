// Package explore looks for runs that break a promise: Walk tries every order of events of a small cluster, over the states of the
// real resolvers.
//
// # Guarantees
//
//   - Nothing reads a clock, starts a goroutine or uses the global random source: the same walk finds the same.
//   - A walk that is complete has seen every interleaving of what it allows.
//
// # Non-guarantees
//
//   - A walk is about one clean partition that everybody has noticed, with a store that needs no time.
package explore
