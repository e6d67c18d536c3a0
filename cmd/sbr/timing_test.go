package main

import (
	"testing"

	"github.com/hashicorp/memberlist"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr/timing"
)

// The presets that times are computed from are those of the memberlist that the program is built with.
func TestProfilesAreMemberlistsDefaults(t *testing.T) {
	for profile, conf := range map[string]*memberlist.Config{
		"lan": memberlist.DefaultLANConfig(), "wan": memberlist.DefaultWANConfig(), "local": memberlist.DefaultLocalConfig(),
	} {
		got, ok := timing.Profile(profile)
		require.True(t, ok)
		require.Equal(t, timing.Gossip{
			ProbeInterval: conf.ProbeInterval, ProbeTimeout: conf.ProbeTimeout,
			SuspicionMult: conf.SuspicionMult, SuspicionMaxTimeoutMult: conf.SuspicionMaxTimeoutMult,
			AwarenessMaxMultiplier: conf.AwarenessMaxMultiplier, IndirectChecks: conf.IndirectChecks,
			GossipInterval: conf.GossipInterval, GossipNodes: conf.GossipNodes,
		}, got, profile)
	}
}
