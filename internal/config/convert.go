package config

import (
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sbr/reachability"
	"github.com/serf-sbr/serf-sbr/sbr/timing"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// deadlineOperations is how many lease operations fit into the decision deadline.
const deadlineOperations = 3

// Strategy returns the active strategy with its settings.
func (f *File) Strategy() (sbr.Strategy, error) { return f.SplitBrainResolver.Strategy() }

// Strategy returns the active strategy with its settings.
func (r *SplitBrainResolver) Strategy() (sbr.Strategy, error) {
	return strategies.New(r.ActiveStrategy, r.Settings())
}

// Settings returns the settings of all strategies.
func (r *SplitBrainResolver) Settings() strategies.Settings {
	return strategies.Settings{
		StaticQuorum: strategies.StaticQuorum{QuorumSize: r.StaticQuorum.QuorumSize, Role: r.StaticQuorum.Role},
		KeepMajority: strategies.KeepMajority{Role: r.KeepMajority.Role},
		KeepOldest:   strategies.KeepOldest{DownIfAlone: bool(r.KeepOldest.DownIfAlone), Role: r.KeepOldest.Role},
		KeepReferee: strategies.KeepReferee{
			Address: r.KeepReferee.Address, DownAllIfLessThanNodes: r.KeepReferee.DownAllIfLessThanNodes,
		},
		LeaseMajority: strategies.LeaseMajority{
			Role: r.LeaseMajority.Role, AcquireLeaseDelayForMinority: r.LeaseMajority.AcquireLeaseDelayForMinority,
		},
	}
}

// NeedsLease reports whether the active strategy asks for the lease. False for an unknown strategy.
func (r *SplitBrainResolver) NeedsLease() bool {
	s, err := r.Strategy()
	if err != nil {
		return false
	}
	n, ok := s.(interface{ NeedsLease() bool })
	return ok && n.NeedsLease()
}

// Resolver returns the rules of the resolver.
func (f *File) Resolver() sbr.Config {
	return f.SplitBrainResolver.Resolver(f.LeaseSettings(f.SplitBrainResolver.LeaseMajority.LeaseImplementation))
}

// Resolver returns the rules of the resolver over a lease with those times: three operations fit into the decision deadline, and an
// unreachable holder is looked at once a heartbeat.
func (r *SplitBrainResolver) Resolver(times lease.Settings) sbr.Config {
	c := sbr.DefaultConfig()
	c.StableAfter = r.StableAfter
	c.DownAllWhenUnstable = r.unstable()
	c.DownAllWhenIndirectlyConnected = float64(r.DownAllWhenIndirectlyConnected)
	c.MinMembers = r.MinMembers
	c.SettleAfter = r.SettleAfter
	c.ReleaseAfter = r.LeaseMajority.ReleaseAfter
	c.WhenLeaseUnknown = sbr.UnknownDown
	if r.LeaseMajority.WhenLeaseUnknown == unknownSuspend {
		c.WhenLeaseUnknown = sbr.UnknownSuspend
	}
	c.SuspendTimeout = r.LeaseMajority.SuspendTimeout
	c.LeaseTimeout = times.OperationTimeout
	c.LeaseDeadline = deadlineOperations * times.OperationTimeout
	c.LeaseRetry = min(c.LeaseRetry, times.OperationTimeout/5) // short timeouts must leave room for a second try
	c.HolderRetry = times.Interval()
	c.Watched = bool(r.LeaseMajority.Watch)
	return c
}

func (r *SplitBrainResolver) unstable() time.Duration {
	if r.DownAllWhenUnstable.On {
		return sbr.UnstableAfter(r.StableAfter)
	}
	return r.DownAllWhenUnstable.For
}

// Reachability returns the settings of the own probes.
func (r *SplitBrainResolver) Reachability() reachability.Settings {
	return reachability.Settings{
		Interval: r.Probe.Interval, Timeout: r.Probe.Timeout, Tries: r.Probe.Tries, Neighbours: r.Probe.Neighbours,
	}
}

// LeaseName is lease-name, or <system>-sbr if that is blank.
func (f *File) LeaseName() string {
	if name := strings.TrimSpace(f.SplitBrainResolver.LeaseMajority.LeaseName); name != "" {
		return name
	}
	return f.System + "-sbr"
}

// LeaseSettings returns the times of a lease implementation, with the heartbeat interval computed.
func (f *File) LeaseSettings(implementation string) lease.Settings {
	return f.Lease.Settings(implementation)
}

// Settings returns the times of a lease implementation, with the heartbeat interval computed: what its own block sets, then what
// the block lease sets, then the defaults. A block that sets the timeout alone gets an interval that fits it.
func (l *Lease) Settings(implementation string) lease.Settings {
	s := l.Times.settings().Or(lease.DefaultSettings())
	if own := l.own(implementation); own != nil {
		s = own.settings().Or(s)
	}
	s.HeartbeatInterval = s.Interval()
	return s
}

// settings are the times that are set here; zero: not set.
func (t *Times) settings() (s lease.Settings) {
	set := func(to *time.Duration, from *time.Duration) {
		if from != nil {
			*to = *from
		}
	}
	set(&s.HeartbeatTimeout, (*time.Duration)(t.HeartbeatTimeout))
	set(&s.HeartbeatInterval, t.HeartbeatInterval)
	set(&s.OperationTimeout, t.LeaseOperationTimeout)
	return s
}

// own is the block of an implementation, nil if it has none.
func (l *Lease) own(implementation string) *Times {
	switch implementation {
	case ImplementationKubernetes:
		return &l.Kubernetes.Times
	case ImplementationFile:
		return &l.File.Times
	default:
		return nil
	}
}

// Gossip returns the settings of Serf's failure detector that the profile stands for.
func (f *File) Gossip() timing.Gossip {
	g, _ := timing.Profile(f.Serf.Profile) // validated
	return g
}

// Timing returns what the timing of a cluster of so many members follows from.
func (f *File) Timing(members int, gossip timing.Gossip) timing.Input {
	r := &f.SplitBrainResolver
	rules, times := f.Resolver(), f.LeaseSettings(r.LeaseMajority.LeaseImplementation)
	return timing.Input{
		Members: members, Gossip: gossip,
		Probes: timing.Probes{
			Interval: r.Probe.Interval, Timeout: r.Probe.Timeout, Tries: r.Probe.Tries, Neighbours: r.Probe.Neighbours,
		},
		StableAfter: rules.StableAfter, Unstable: rules.DownAllWhenUnstable,
		Lease: r.NeedsLease(), MinorityDelay: r.LeaseMajority.AcquireLeaseDelayForMinority,
		LeaseTimeout: rules.LeaseTimeout, LeaseDeadline: rules.LeaseDeadline, LeaseRetry: rules.LeaseRetry,
		HeartbeatTimeout: times.HeartbeatTimeout, HeartbeatInterval: times.HeartbeatInterval,
		Watch: bool(r.LeaseMajority.Watch),
	}
}
