// Package reachability finds the members that this one cannot reach, from three sources: what Serf says,
// direct probes of some neighbours, and what the neighbours of others report.
//
// Serf's own detector is slow on the losing side of a partition (a lone node condemns its peers one at a
// time) and blind to a cut between two members that a third one sees. Probes have no indirection and no
// slow-down, so both sides notice in bounded time.
//
// A Tracker is pure: it holds no clock, socket or goroutine. The driver asks it which members to probe, feeds
// results and reports, and reads which members are unreachable.
//
// # Guarantees
//
//   - A subject is unreachable when Serf says failed; or when as many observers as could be asked, at most
//     Settings.Neighbours, agree; or when it and another member report each other, which is a cut that others
//     do not see.
//   - One observer with a bad link makes no other member unreachable as long as others can be asked.
//   - With Settings.AllHeard every broken link between two members that are heard becomes known to all that
//     are heard: in peace each pair is probed by one of its members in turn; in unrest by both, each round by
//     as many as Settings.Budget allows; a member that is reported probes its reporters at once.
//   - Probing is bounded: Neighbours and one or two more a round in peace; in unrest it doubles each round up
//     to Settings.Budget. A miss of a sweep, and a report about this member, add at most Settings.Tries
//     probes each.
//
// # Non-guarantees
//
//   - Reports may be lost or late; they expire after Settings.ReportTTL and are repeated meanwhile.
//
// # Assumptions
//
//   - Members agree on the ring, which follows from their ids alone; disagreement for a moment costs time,
//     not safety.
package reachability
