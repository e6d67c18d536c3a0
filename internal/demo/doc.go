// Package demo shows the main job on real Serf nodes in one process: a cluster is cut, one lease decides, one
// side stays up, and a downed member that comes back is refused.
//
// Membership, failure detection, gossip and the lease protocol are the real ones. What stands in for the
// world is the network (package memnet) and, unless a kubeconfig is given, the lease store (package
// lease/memory).
package demo
