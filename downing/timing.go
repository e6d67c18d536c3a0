package downing

import (
	"github.com/hashicorp/memberlist"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sbr/timing"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// gossipOf reads what detection times follow from out of the node's own settings.
func gossipOf(c *memberlist.Config) timing.Gossip {
	if c == nil {
		return timing.LAN()
	}
	return timing.Gossip{
		ProbeInterval: c.ProbeInterval, ProbeTimeout: c.ProbeTimeout,
		SuspicionMult: c.SuspicionMult, SuspicionMaxTimeoutMult: c.SuspicionMaxTimeoutMult,
		AwarenessMaxMultiplier: c.AwarenessMaxMultiplier, IndirectChecks: c.IndirectChecks,
		GossipInterval: c.GossipInterval, GossipNodes: c.GossipNodes,
	}
}

// Timing is what the times of a cluster of so many members follow from, for package timing. nil stands for Serf's LAN settings.
func (c *Config) Timing(members int, gossip *memberlist.Config) timing.Input {
	s, err := strategies.New(c.Strategy, c.Strategies)
	return timing.Input{
		Members: members, Gossip: gossipOf(gossip),
		Probes:      timing.Probes{Interval: c.Probe.Interval, Timeout: c.Probe.Timeout, Tries: c.Probe.Tries, Neighbours: c.Probe.Neighbours},
		StableAfter: c.Resolver.StableAfter, Unstable: c.Resolver.DownAllWhenUnstable,
		Lease: err == nil && sbr.NeedsLease(s), MinorityDelay: c.Strategies.LeaseMajority.AcquireLeaseDelayForMinority,
		LeaseTimeout: c.Lease.OperationTimeout, LeaseDeadline: c.Resolver.LeaseDeadline, LeaseRetry: c.Resolver.LeaseRetry,
		HeartbeatTimeout: c.Lease.HeartbeatTimeout, HeartbeatInterval: c.Lease.Interval(), Watch: c.Resolver.Watched,
	}
}

// warnOfTiming logs the settings that are unsafe for a cluster of this size, once the size is known.
func (e *engine) warnOfTiming() {
	in := e.cfg.Timing(len(e.resolver.Snapshot().Members), e.gossip)
	for _, w := range timing.Compute(in).Warnings {
		e.log.Warn("sbr: unsafe timing: "+w.String(), "members", in.Members)
	}
}
