// Package downing protects a Serf node: it watches the reachability of the members, and when a partition has
// been stable for long enough it keeps one side up and downs the other.
//
// A Provider is attached to an embedded *serf.Serf, in this order:
//
//	p, err := downing.New(cfg)    // cfg: DefaultConfig, with System and Store set; or LoadConfig
//	err = p.Prepare(ctx, conf)    // conf is the *serf.Config; reads the lease once
//	s, err := serf.Create(conf)   // as before
//	err = p.Start(ctx, s)         // watches from here on
//	<-p.Downed()                  // this node must not work any more
//
// The provider "split-brain-resolver" drives one sbr.Resolver, a pure state machine, over the node and the
// lease: one goroutine steps it, everything that may block runs elsewhere and reports back. The deciding is
// not here; it is in packages sbr and strategies. The provider "none" does nothing.
//
// What runs on top sees the members (Peers, Follow), tells them what it serves (Offer), and talks to them
// (Serve, Ask), past the resolver.
//
// # Guarantees
//
//   - Downed is closed first, then the callbacks run, the side is told, and Serf leaves and shuts down; then,
//     at the latest when Config.Grace is over, the process exits with the status ExitDowned. Config.Exit
//     replaces the exit, nothing replaces the rest.
//   - A node whose resolver fails goes down instead of running on unprotected: a panic in it or in what it
//     calls, a loop that is stuck, Serf shut down under it.
//   - An incarnation that a verdict or an order has downed is refused by the merge delegate, gets the
//     decision when it tries to rejoin, and is removed again should it appear all the same. A node that
//     restarts is another incarnation, and is welcome.
//   - A node does not join before it has read the last verdict from the lease.
//   - Nothing is written to the lease while nobody is unreachable, but for the release of an earlier
//     decision, and what Down asks for. (Prepare tries the rights with dry runs, where the store can do
//     that.)
//   - A member is removed only if Serf calls it failed at that moment: a live node would become a ghost.
//   - Start fails if s is not the node that was prepared, or if the event channel or the merge delegate was
//     replaced after Prepare.
//   - The application's event channel gets every event in order, but for this package's own queries; a slow
//     reader no longer blocks Serf.
//   - Handlers, followers and questions of what runs on top, and a flood of other members' questions, hold
//     neither the resolver nor Serf up: they run on goroutines of their own, in bounded numbers, and panics
//     in them are logged.
//   - Peers.Sure is never later than the last step in which this member looked at the members and saw nothing
//     amiss.
//   - After Stop no goroutine is left but the reader of Serf's events, which ends when Serf is shut down.
//
// # Non-guarantees
//
//   - Between the cut and the decision both sides run. OnSuspend tells when that begins; what must not run
//     twice waits, or is fenced.
//   - Serf's own member list may go on showing a downed member as alive until Serf's failure detector catches
//     up, on a small side minutes later. Status has the view that decides.
//   - Members without a provider are not counted, receive no messages, and may admit any member. Status names
//     them.
//   - Messages between members are Serf queries, as safe as the gossip key.
//   - Strategies without a lease count members, and counting can be wrong; see package strategies.
//   - Questions and answers are lost like any datagram. A question is gossiped to all members and takes a
//     share of what the resolver's messages use; this package bounds what its own member asks, not what
//     others ask.
//   - A callback that hangs is left behind when Config.Grace is over.
//
// # Assumptions
//
//   - All members run the same configuration, which the tag sbr_cfg shows, and reach each other directly by
//     UDP, for the probes.
//   - Each node has a Store of its own, and a serf.Config that serves one serf.Create.
//   - There is room for about 60 bytes among the node's tags, and for what is offered.
//   - No clock is set back within a process: Go's monotonic clock is used. A pause shorter than
//     Config.PauseAfter goes unnoticed, and Peers.Sure may be that much too late.
package downing
