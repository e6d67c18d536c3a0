// Package serfnet starts real Serf nodes on a memnet network, in one process, for tests and demonstrations:
//
//	network := memnet.New(memnet.Config{})
//	nodes, err := serfnet.StartAll(network, nil, "n1", "n2", "n3")
//	err = network.Partition([]string{"n1", "n2"}, []string{"n3"})
//
// It keeps nothing: what it returns are plain *serf.Serf, which the caller shuts down. A name may be
// started again afterwards; it comes back at its old address, behind its old cuts, unless told otherwise
// (see [Start]).
//
// # Guarantees
//
//   - Settings are Serf's and memberlist's LAN defaults, except for the log, and for what the caller
//     changes.
//   - When a start fails nothing of it keeps running.
//
// # Non-guarantees
//
//   - Serf's own background work ends a while after Shutdown (removals 6 s, queries at their timeout). In a
//     synctest bubble, let that time pass before the bubble ends.
//   - Start joins no node, on a restart neither. The others may then count the node as alive, from its
//     answers to their pings, while it knows none of them until the next exchange of full states (30 s). Call
//     Join.
//   - Gossip is a matter of chance in Serf: now and then a node learns of a join only at that next
//     exchange. Give convergence a minute, not a second.
//   - A caller that sets EventCh has to read it until after Shutdown: a full channel stops Serf while it
//     holds its locks, and with that virtual time.
//
// # Assumptions
//
// One network is used by one cluster.
package serfnet
