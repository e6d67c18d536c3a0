package config

import (
	"fmt"
	"strings"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr/timing"
)

// Warnings names settings that are allowed but cannot work as they are in a cluster of so many members.
// Those that follow from times are found by package timing.
func (f *File) Warnings(members int) (ws []timing.Warning) {
	r := &f.SplitBrainResolver
	warn := func(when bool, key, format string, args ...any) {
		if when {
			ws = append(ws, timing.Warning{Key: key, Text: fmt.Sprintf(format, args...)})
		}
	}
	warn(f.DowningProvider == ProviderNone, "downing-provider", "none: nobody is ever downed")
	warn(r.MinMembers > members, "min-members", "%d: a cluster of %d members never arms", r.MinMembers, members)
	if r.NeedsLease() {
		f.leaseWarnings(warn)
	}
	switch strings.ToLower(r.ActiveStrategy) {
	case "static-quorum":
		q := r.StaticQuorum.QuorumSize
		warn(members > 2*q-1, "static-quorum.quorum-size", "%d allows at most %d members: with %d any partition downs them all; use %d",
			q, 2*q-1, members, members/2+1)
		warn(q > members, "static-quorum.quorum-size", "%d is more than the %d members: any partition downs them all", q, members)
	case "keep-majority":
		warn(members == 2, "active-strategy", "keep-majority with 2 members keeps the one with the lowest address, whichever of them works")
	case "keep-referee":
		limit := r.KeepReferee.DownAllIfLessThanNodes
		warn(limit > members, "keep-referee.down-all-if-less-than-nodes", "%d is more than the %d members: any partition downs them all", limit, members)
	}
	return ws
}

func (f *File) leaseWarnings(warn func(when bool, key, format string, args ...any)) {
	implementation := f.SplitBrainResolver.LeaseMajority.LeaseImplementation
	warn(f.LeaseSettings(implementation).HeartbeatTimeout == lease.Infinite, "heartbeat-timeout",
		"infinite: the lease of a holder that crashed stays held until an operator runs sbr lease force-release")
	switch implementation {
	case ImplementationFile:
		warn(true, "lease-implementation", "file: safe only while all members run on this one machine")
	case ImplementationKubernetes:
		api := f.Lease.Kubernetes.API
		warn(api == "akka" || api == "pekko", "lease.kubernetes.api",
			"%s: a program other than serf-sbr that writes the lease takes the verdict out of it; share it for locks, not for a resolver", api)
	}
}
