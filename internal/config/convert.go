package config

import (
	"cmp"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sbr/timing"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// deadlineOperations is how many lease operations fit into the decision deadline.
const deadlineOperations = 3

// Strategy returns the active strategy with its settings.
func (r *SplitBrainResolver) Strategy() (sbr.Strategy, error) {
	return strategies.New(r.ActiveStrategy, r.Settings())
}

// Settings returns the settings of all strategies.
func (r *SplitBrainResolver) Settings() strategies.Settings {
	return strategies.Settings{
		StaticQuorum: r.StaticQuorum, KeepMajority: r.KeepMajority, KeepReferee: r.KeepReferee,
		KeepOldest: strategies.KeepOldest{DownIfAlone: bool(r.KeepOldest.DownIfAlone), Role: r.KeepOldest.Role},
		LeaseMajority: strategies.LeaseMajority{
			Role: r.LeaseMajority.Role, AcquireLeaseDelayForMinority: r.LeaseMajority.AcquireLeaseDelayForMinority,
			IndirectlyConnected: r.IndirectlyConnected,
		},
	}
}

// NeedsLease reports whether the active strategy asks for the lease. False for an unknown strategy.
func (r *SplitBrainResolver) NeedsLease() bool {
	s, err := r.Strategy()
	return err == nil && sbr.NeedsLease(s)
}

// Resolver returns the rules of the resolver.
func (f *File) Resolver() sbr.Config {
	c := f.SplitBrainResolver.Resolver(f.Lease.Settings(f.SplitBrainResolver.LeaseMajority.LeaseImplementation))
	return f.over(c, "")
}

// over gives rules the failure detector of a profile; empty: serf.profile.
func (f *File) over(c sbr.Config, profile string) sbr.Config {
	if gossip, ok := timing.Profile(cmp.Or(profile, f.Serf.Profile)); ok && c.StableAfter == sbr.Auto {
		c.StableFor = timing.StableFor(gossip, f.SplitBrainResolver.Probe)
	}
	return c
}

// Resolver returns the rules of the resolver over a lease with those times, and Serf's LAN settings: three
// operations fit into the decision deadline, and an unreachable holder is looked at once a heartbeat.
func (r *SplitBrainResolver) Resolver(times lease.Settings) sbr.Config {
	c := sbr.DefaultConfig()
	switch c.StableAfter = time.Duration(r.StableAfter); {
	case c.StableAfter != sbr.Auto:
	case r.NeedsLease():
		c.StableFor = timing.StableFor(timing.LAN(), r.Probe)
	default:
		c.StableAfter = sbr.DefaultConfig().StableAfter
	}
	c.DownAllWhenUnstable = r.unstable(c.StableAfter)
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

func (r *SplitBrainResolver) unstable(stableAfter time.Duration) time.Duration {
	switch {
	case !r.DownAllWhenUnstable.On:
		return r.DownAllWhenUnstable.For
	case stableAfter == sbr.Auto:
		return sbr.Auto
	default:
		return sbr.UnstableAfter(stableAfter)
	}
}

// LeaseName is lease-name, or <system>-sbr if that is blank.
func (f *File) LeaseName() string {
	if name := strings.TrimSpace(f.SplitBrainResolver.LeaseMajority.LeaseName); name != "" {
		return name
	}
	return f.System + "-sbr"
}

// Settings returns the times of a lease implementation, with the heartbeat interval computed: what its own
// block sets, then what the block lease sets, then the defaults. A block that sets the timeout alone gets an
// interval that fits it.
func (l *Lease) Settings(implementation string) lease.Settings {
	s := l.Times.settings().Or(lease.DefaultSettings())
	for _, own := range l.blocks() {
		if own.implementation == implementation {
			s = own.times.settings().Or(s)
		}
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

// leaseBlock is the block of an implementation.
type leaseBlock struct {
	implementation string
	times          *Times
	block          any // a pointer to it
}

// isSet reports whether something stands in it.
func (b leaseBlock) isSet() bool { return !reflect.ValueOf(b.block).Elem().IsZero() }

func (l *Lease) blocks() []leaseBlock {
	return []leaseBlock{
		{ImplementationKubernetes, &l.Kubernetes.Times, &l.Kubernetes},
		{ImplementationFile, &l.File.Times, &l.File},
		{ImplementationEtcd, &l.Etcd.Times, &l.Etcd},
		{ImplementationPostgres, &l.Postgres.Times, &l.Postgres},
		{ImplementationMongoDB, &l.MongoDB.Times, &l.MongoDB},
	}
}

// Times returns the times of a cluster of so many members, and what they follow from. 0 members: it is not
// known how many; then it is 5, or min-members if that is more. An empty profile is serf.profile. The warnings
// are those of the settings as well; they are never nil.
func (f *File) Times(members int, profile string) (timing.Input, timing.Report) {
	r, warnings := &f.SplitBrainResolver, f.Warnings(members)
	members = cmp.Or(members, max(usualMembers, min(r.MinMembers, MaxMembers)))
	rules, times := f.over(f.Resolver(), profile), f.Lease.Settings(r.LeaseMajority.LeaseImplementation)
	gossip, _ := timing.Profile(cmp.Or(profile, f.Serf.Profile)) // validated
	in := timing.Input{
		Members: members, Gossip: gossip, Probes: r.Probe,
		StableAfter: rules.StableIn(members), Auto: rules.StableAfter == sbr.Auto,
		Unstable: rules.UnstableIn(members),
		Lease:    r.NeedsLease(), MinorityDelay: r.LeaseMajority.AcquireLeaseDelayForMinority,
		LeaseTimeout: rules.LeaseTimeout, LeaseDeadline: rules.LeaseDeadline, LeaseRetry: rules.LeaseRetry,
		HeartbeatTimeout: times.HeartbeatTimeout, HeartbeatInterval: times.HeartbeatInterval,
		Watch: bool(r.LeaseMajority.Watch),
	}
	report := timing.Compute(in)
	warnings = slices.Concat(warnings, f.timeWarnings(&in, &report), report.Warnings)
	report.Warnings = append([]timing.Warning{}, warnings...)
	return in, report
}

const (
	// MaxMembers is the size of the largest cluster that times are computed for.
	MaxMembers   = 100_000
	usualMembers = 5
)

const implementationKey = "split-brain-resolver.lease-majority.lease-implementation"

// LeaseStore returns the key of the implementation that keeps the resolver's lease, empty where none is
// needed. It is an error where one is needed and none is named: every host would fall back to a place of its
// own, and each would win there. Named means lease-implementation, a block lease.kubernetes, or the account
// of the pod that this process runs in. KUBECONFIG names nothing: the shell of an operator has it and the
// agent's service has not, or the other way round.
func (f *File) LeaseStore() (string, error) {
	m := &f.SplitBrainResolver.LeaseMajority
	switch {
	case f.DowningProvider != ProviderResolver || !f.SplitBrainResolver.NeedsLease():
		return "", nil
	case f.leaseNamed || f.Lease.Kubernetes != (kubernetesLease{}) || os.Getenv("KUBERNETES_SERVICE_HOST") != "":
		return m.LeaseImplementation, nil
	}
	return "", strictyaml.Problem{Name: f.name, Path: implementationKey,
		Text: "is not set, and this is no pod: write kubernetes " +
			"(and where the cluster is, as lease.kubernetes.kubeconfig), etcd, postgres or mongodb (and its block under lease), or file " +
			"(and lease.file.path) where all members run on one machine"}
}

// LeaseBlock returns a function that fills a struct with yaml tags from the block of a lease implementation,
// times excepted: what lease.Spec.Decode wants. Nil: the implementation has no block.
func (f *File) LeaseBlock(implementation string) func(into any) error {
	lease := f.Lease // a copy, whose times go
	for _, b := range lease.blocks() {
		if b.implementation == implementation {
			*b.times = Times{}
			return decoder(b.block)
		}
	}
	return nil
}

func decoder(block any) func(into any) error {
	return func(into any) error {
		data, err := yaml.Marshal(block)
		if err != nil {
			return err
		}
		return yaml.Unmarshal(data, into)
	}
}
