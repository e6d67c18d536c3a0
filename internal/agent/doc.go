// Package agent is what `sbr agent` does: it takes an sbr.yaml and protects one Serf node with it, a stock
// agent's or its own.
//
//	status, err := agent.Run(ctx, agent.Options{File: f, Logger: log})
//	os.Exit(status) // 0 left, 1 internal, 2 wrong configuration, 70 downed
//
// # Guarantees
//
//   - Nothing joins or is tagged before the whole configuration, the hooks, the addresses and the lease were
//     found to work. An error in the configuration is a Problem that says what to do, one line each, and ends
//     the process. Every other problem is logged once, shown in readiness and status, and retried for ever.
//   - Once this member is down the process ends with status 70 within hooks.grace and two seconds, even if
//     something hangs.
//   - A hook that hangs or fails delays neither the downing nor the next hook beyond its time-out.
//   - The member is ready only while it is in the cluster, at least min-members are there, and nothing is
//     suspicious.
//   - The state directory remembers the incarnation, whether it was downed, and which members it could not
//     reach: a stock agent that still carries its tags does not bring it back, and its successor proves that
//     it has ended.
//
// # Non-guarantees
//
//   - While this process does not run its node is unprotected. The other members see that its probes fail,
//     and down it like any other member.
//   - With a lease in a file only the members on this machine are protected from each other.
//   - hooks.on-suspend runs for a start that waits for the lease, not for a start that waits for a port or a
//     folder.
//
// # Assumptions
//
//   - A supervisor (systemd, the kubelet) starts the process again after every end but status 2, and the
//     stock agent too.
package agent
