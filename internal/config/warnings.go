package config

import (
	"fmt"
	"strings"

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
