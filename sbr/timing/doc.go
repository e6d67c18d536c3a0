// Package timing computes what a configuration means in seconds: how long each side of a partition takes to
// notice it, how long a decision takes, and how long both sides may be up after the winner's verdict was
// written.
//
// These times depend on the settings of Serf's failure detector, on the resolver's own probes, on
// stable-after and on the number of members, in ways that are hard to compute by hand; a stable-after that
// suits five members is wrong for fifty. Compute does it, recommends a stable-after and names what is unsafe.
//
// # Guarantees
//
//   - Pure arithmetic; total: every input gives a report, none panics.
//   - Span.Fastest is a lower bound and Span.Worst an upper bound, under the assumptions below. They are
//     bounds, not typical times: a majority usually notices in a third of its bound.
//   - The safety of lease-majority does not rest on any of these numbers (the chain of verdicts does that).
//     The time during which both sides are up does, and so does every strategy that works without a lease.
//
// # Non-guarantees
//
//   - Serf's bound for a side of several members is a quantile: one cut in a thousand may take longer (see
//     Gossip.Detection).
//   - A partition that changes while it is being noticed starts anew with each change.
//
// # Assumptions
//
//   - A clean cut at one instant; every node was healthy before it (Lifeguard's score 0) and gets the
//     processor when it needs it.
//   - Members agree on these settings.
//   - A round trip to the lease store takes 20 ms unless the store is said to be unreachable.
package timing
