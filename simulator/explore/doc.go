// Package explore looks for runs that break a promise, over the states of the real resolvers.
//
// Exhaustive plans, and Family and Walk search, everything that can happen to a small cluster that is cut
// once. Random plays clusters and faults that chance makes up.
//
// # Guarantees
//
//   - Nothing reads a clock or uses the global random source: the same search finds the same. A walk starts
//     no goroutine; to use several cores, run several families at once, which share nothing. Random uses all
//     cores, and finds the same on one.
//   - A walk that is complete has seen every interleaving of what it allows. Each state is visited once, by a
//     hash of 128 bits.
//
// # What makes it fast, and why nothing is missed
//
//   - Resolvers are numbered by their encodings (sbr.Resolver.AppendState). Equal encodings behave alike,
//     so whatever a resolver did once in a state, in any run, is looked up the next time.
//     TestWalk_EqualEncodingsBehaveAlike follows chance paths with resolvers that have histories of their
//     own.
//   - Something is called late only when nothing else keeps the clock from moving. Until then it may arrive
//     at any time anyhow, so every run in which it is called late sooner passes the same states when the
//     clock moves. What is late and never comes is lost. A search that lets anything be late or lost at any
//     moment rests in the same states: TestWalk_ReductionLosesNothing.
//   - The news of the cut that reach members at one moment come in one order. They touch one member each, and
//     a member that hears of several at one moment decides nothing before the last of them
//     (Config.StableAfter is more than zero).
//   - Walks that differ in names only are made once: see Family, and TestFamily_CoveredWalksAreAlike, which
//     makes them all.
//
// # Non-guarantees
//
//   - A walk is about one clean cut. All members of a side notice it at one moment, but for members that
//     Walk.LateCut lets be late. Nothing heals, no member joins, leaves or restarts.
//   - Messages and the store need no time, but for what is late; there are as many of those as Walk.Lost
//     says.
//   - A holder that does not run counts as having been silent for long enough, at once.
//
// # Assumptions
//
//   - The strategy is pure, and sees addresses, ages and statuses, but no clock.
//   - Config.StableAfter is more than zero.
package explore
