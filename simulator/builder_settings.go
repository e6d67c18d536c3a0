package simulator

import (
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// Config takes over the text of an sbr.yaml: the one that production runs with, or a part of it. It is read and checked as strictly
// as the agent does. What the simulator has no use for (http, hooks, where Serf listens) is left out; serf.profile sets how members notice,
// as DetectAs does. Keys that are absent stay as they are.
func (b *Scenario) Config(yaml string) *Scenario {
	f := config.Default()
	f.System, f.SplitBrainResolver, f.Lease = b.s.Cluster.System, b.s.Cluster.SplitBrainResolver, b.s.Cluster.Lease
	f.Serf.Profile = ""
	if !b.decode("Config", yaml, &f) {
		return b
	}
	checked := f
	if checked.Serf.Profile == "" {
		checked.Serf.Profile = config.Default().Serf.Profile
	}
	if err := checked.Validate(); err != nil {
		b.problem("Config: ", err)
		return b
	}
	if f.DowningProvider != config.ProviderResolver {
		b.problems.add("Config: downing-provider: is %.40q: the simulator plays %s only", f.DowningProvider, config.ProviderResolver)
	}
	b.s.Cluster.System, b.s.Cluster.SplitBrainResolver, b.s.Cluster.Lease = f.System, f.SplitBrainResolver, f.Lease
	if f.Serf.Profile != "" {
		b.DetectAs("serf-" + f.Serf.Profile)
	}
	return b
}

// Resolver takes over keys of the block split-brain-resolver, written as there:
//
//	Resolver("lease-majority: {role: db, when-lease-unknown: suspend}")
func (b *Scenario) Resolver(yaml string) *Scenario {
	r := b.s.Cluster.SplitBrainResolver
	if b.decode("Resolver", yaml, &r) {
		b.s.Cluster.SplitBrainResolver = r
	}
	return b
}

// Lease takes over keys of the block lease, written as there:
//
//	Lease("{heartbeat-timeout: 60s, lease-operation-timeout: 2s}")
func (b *Scenario) Lease(yaml string) *Scenario {
	l := b.s.Cluster.Lease
	if b.decode("Lease", yaml, &l) {
		b.s.Cluster.Lease = l
	}
	return b
}

// decode reads strictly, and keeps what is wrong.
func (b *Scenario) decode(method, yaml string, into any) bool {
	err := strictyaml.Decode([]byte(yaml), into, strictyaml.Options{Name: method})
	if err != nil {
		b.problem("", err)
	}
	return err == nil
}

// problem keeps each line of an error.
func (b *Scenario) problem(prefix string, err error) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		b.problems.add("%s%s", prefix, line)
	}
}

// System names the cluster; the lease is named after it.
func (b *Scenario) System(name string) *Scenario {
	b.s.Cluster.System = name
	return b
}

// Strategy sets active-strategy, such as lease-majority, which is the default, or keep-majority.
func (b *Scenario) Strategy(key string) *Scenario {
	b.s.Cluster.SplitBrainResolver.ActiveStrategy = key
	return b
}

// StableAfter sets how long a view must not have changed before a decision.
func (b *Scenario) StableAfter(d time.Duration) *Scenario {
	b.s.Cluster.SplitBrainResolver.StableAfter = d
	return b
}

// MinorityDelay sets acquire-lease-delay-for-minority of lease-majority.
func (b *Scenario) MinorityDelay(d time.Duration) *Scenario {
	b.s.Cluster.SplitBrainResolver.LeaseMajority.AcquireLeaseDelayForMinority = d
	return b
}

// WhenLeaseUnknown sets what lease-majority does when nobody reaches the store: "down" or "suspend".
func (b *Scenario) WhenLeaseUnknown(what string) *Scenario {
	b.s.Cluster.SplitBrainResolver.LeaseMajority.WhenLeaseUnknown = what
	return b
}

// Detect sets how long members need to notice: a cut after at least after, a repair after heal, and chance adds at most spread.
func (b *Scenario) Detect(after, spread, heal time.Duration) *Scenario {
	b.s.Cluster.Detection = scenario.Detection{Times: scenario.DetectionTimes{After: after, Spread: spread, Heal: heal}}
	return b
}

// DetectAs lets members notice as Serf does: serf-lan, which is the default, serf-wan or serf-local.
func (b *Scenario) DetectAs(profile string) *Scenario {
	b.s.Cluster.Detection = scenario.DefaultDetection()
	b.s.Cluster.Detection.Profile = profile
	return b
}

// Network sets the properties of every link that is not cut: the least time a message takes, and what chance adds at most.
func (b *Scenario) Network(latency, jitter time.Duration) *Scenario {
	b.s.Cluster.Network = scenario.Network{Latency: latency, Jitter: jitter}
	return b
}

// ReapAfter sets when Serf forgets a failed member: its reconnect time-out.
func (b *Scenario) ReapAfter(d time.Duration) *Scenario {
	b.s.Cluster.ReapAfter = d
	return b
}

// Shards adds shards of a type, with the keys of the block shards, written as there:
//
//	Shards("orders", "{count: 4, use-lease: on}")
func (b *Scenario) Shards(kind, yaml string) *Scenario {
	x := scenario.Shards{Type: kind}
	if yaml == "" || b.decode("Shards", yaml, &x) {
		b.s.Cluster.Shards = append(slices.Clip(b.s.Cluster.Shards), x)
	}
	return b
}

// Singleton adds something that runs on one member only, with the keys of the block singletons, written as there:
//
//	Singleton("backup", "{use-lease: on, removal-margin: 20s}")
func (b *Scenario) Singleton(name, yaml string) *Scenario {
	x := scenario.Singleton{Name: name}
	if yaml == "" || b.decode("Singleton", yaml, &x) {
		b.s.Cluster.Singletons = append(slices.Clip(b.s.Cluster.Singletons), x)
	}
	return b
}
