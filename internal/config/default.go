package config

import (
	"time"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sbr/reachability"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// Values of downing-provider and of lease-implementation.
const (
	ProviderResolver = "split-brain-resolver"
	ProviderNone     = "none"

	ImplementationKubernetes = "kubernetes"
	ImplementationFile       = "file"
)

// Values of when-lease-unknown.
const (
	unknownDown    = "down"
	unknownSuspend = "suspend"
)

const defaultRPC = "127.0.0.1:7373"

// Default returns the configuration of an empty file. System is empty and must be set before it validates.
func Default() File {
	return File{
		DowningProvider:    ProviderResolver,
		SplitBrainResolver: DefaultSplitBrainResolver(),
		Serf:               defaultSerf(),
		HTTP:               HTTP{Listen: "127.0.0.1:7380"},
		Hooks:              defaultHooks(),
		Singleton:          defaultSingleton(),
	}
}

// DefaultSplitBrainResolver returns the defaults of that block, for files that hold it alone. Decode into it.
func DefaultSplitBrainResolver() SplitBrainResolver {
	rules, strategy, probe := sbr.DefaultConfig(), strategies.DefaultSettings(), reachability.DefaultSettings()
	return SplitBrainResolver{
		ActiveStrategy:                 "lease-majority",
		StableAfter:                    rules.StableAfter,
		DownAllWhenUnstable:            strictyaml.OnOffDuration{On: true},
		DownAllWhenIndirectlyConnected: strictyaml.OnOffFraction(rules.DownAllWhenIndirectlyConnected),
		MinMembers:                     rules.MinMembers,
		SettleAfter:                    rules.SettleAfter,
		Probe: Probe{
			Interval: probe.Interval, Timeout: probe.Timeout, Tries: probe.Tries, Neighbours: probe.Neighbours,
		},
		KeepOldest:  KeepOldest{DownIfAlone: strictyaml.Switch(strategy.KeepOldest.DownIfAlone)},
		KeepReferee: KeepReferee{DownAllIfLessThanNodes: strategy.KeepReferee.DownAllIfLessThanNodes},
		LeaseMajority: LeaseMajority{
			LeaseImplementation:          ImplementationKubernetes,
			AcquireLeaseDelayForMinority: strategy.LeaseMajority.AcquireLeaseDelayForMinority,
			ReleaseAfter:                 rules.ReleaseAfter,
			WhenLeaseUnknown:             unknownDown,
			SuspendTimeout:               rules.SuspendTimeout,
			Watch:                        true,
		},
	}
}

// maxDuration keeps sums and products of durations from overflowing. Nobody waits six weeks for a decision.
const maxDuration = 1000 * time.Hour
