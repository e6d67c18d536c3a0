// Command shardhost is an application as its user would write it: a Serf node of its own, protected by
// package downing, with shards on top (package sharding), each of which writes to a ledger under its token
// for as long as it may. It stands in for `sbr agent` on the hosts of package cluster.
//
//	shardhost --config sbr.yaml --node n1 --bind 10.0.0.1:7946 --join 10.0.0.2:7946 --ledger URL [--shards 8] [--leases] [--hooks FILE]
//
//	GET  /status         downing.Status
//	GET  /healthz/ready  200 when the member is up
//	GET  /shards         what the coordinator here knows, if one is here, and who runs what
//	POST /drain          hands everything over, and takes part again
//
// TERM: the shards are handed over, the node leaves, status 0. INT: the node leaves, and its manager finds
// that out, as in an application that forgets to stop it. A member that is downed ends with status 70.
//
// # Guarantees
//
//   - Nothing but the public packages keeps a shard from running twice: no file, no lock, no look at other
//     processes.
//   - A run looks whether it may work (Shard.Check), works for a while, and then writes without looking
//     again.
//
// # Non-guarantees
//
//   - It keeps nothing on disk: a member that was downed is known by the lease alone.
//
// # Assumptions
//
//   - The configuration names a lease in Kubernetes, etcd, PostgreSQL or MongoDB.
package main
