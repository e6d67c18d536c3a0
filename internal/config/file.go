package config

import (
	"time"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
)

// File is a whole sbr.yaml. Start from Default; the zero File does not validate.
type File struct {
	// System names the cluster. Required: the lease is named after it, so two clusters that share it would share a lease.
	System string `yaml:"system"`
	// DowningProvider is split-brain-resolver, or none to watch without ever acting.
	DowningProvider string `yaml:"downing-provider"`
	// SplitBrainResolver holds the rules. All members of a system must use the same.
	SplitBrainResolver SplitBrainResolver `yaml:"split-brain-resolver"`
	// Lease holds the times and the places of the lease stores.
	Lease Lease `yaml:"lease"`
	// Serf, HTTP, Hooks and Singleton are for `sbr agent`.
	Serf      Serf      `yaml:"serf"`
	HTTP      HTTP      `yaml:"http"`
	Hooks     Hooks     `yaml:"hooks"`
	Singleton Singleton `yaml:"singleton"`

	name       string // of the input, for errors
	leaseNamed bool   // lease-implementation stands in the input
}

// SplitBrainResolver is the block of that name. Its keys and defaults are those of the reference resolver, with additions.
type SplitBrainResolver struct {
	// ActiveStrategy is a key of package strategies; case does not matter.
	ActiveStrategy string `yaml:"active-strategy"`
	// StableAfter is how long the view must not have changed before a decision.
	StableAfter time.Duration `yaml:"stable-after"`
	// DownAllWhenUnstable: on is three quarters of StableAfter, at least 4 s.
	DownAllWhenUnstable strictyaml.OnOffDuration `yaml:"down-all-when-unstable"`
	// DownAllWhenIndirectlyConnected is the share of members above which a decision about indirectly connected ones downs all.
	DownAllWhenIndirectlyConnected strictyaml.OnOffFraction `yaml:"down-all-when-indirectly-connected"`
	// MinMembers is how many members must have been seen before the resolver arms.
	MinMembers int `yaml:"min-members"`
	// SettleAfter is how long the view must not have changed after the start before the resolver arms.
	SettleAfter time.Duration `yaml:"settle-after"`
	// Probe are the resolver's own reachability probes.
	Probe Probe `yaml:"probe"`

	StaticQuorum  StaticQuorum  `yaml:"static-quorum"`
	KeepMajority  KeepMajority  `yaml:"keep-majority"`
	KeepOldest    KeepOldest    `yaml:"keep-oldest"`
	KeepReferee   KeepReferee   `yaml:"keep-referee"`
	LeaseMajority LeaseMajority `yaml:"lease-majority"`
}

// Probe are the settings of own probes; see package reachability.
type Probe struct {
	Interval   time.Duration `yaml:"interval"`
	Timeout    time.Duration `yaml:"timeout"`
	Tries      int           `yaml:"tries"`
	Neighbours int           `yaml:"neighbours"`
}

// StaticQuorum are the settings of the strategy static-quorum.
type StaticQuorum struct {
	QuorumSize int    `yaml:"quorum-size"`
	Role       string `yaml:"role"`
}

// KeepMajority are the settings of the strategy keep-majority.
type KeepMajority struct {
	Role string `yaml:"role"`
}

// KeepOldest are the settings of the strategy keep-oldest.
type KeepOldest struct {
	DownIfAlone strictyaml.Switch `yaml:"down-if-alone"`
	Role        string            `yaml:"role"`
}

// KeepReferee are the settings of the strategy keep-referee.
type KeepReferee struct {
	Address                string `yaml:"address"`
	DownAllIfLessThanNodes int    `yaml:"down-all-if-less-than-nodes"`
}

// LeaseMajority are the settings of the strategy lease-majority and of everything that has to do with its lease.
type LeaseMajority struct {
	// LeaseImplementation is a key of the block lease.
	LeaseImplementation string `yaml:"lease-implementation"`
	// LeaseName: blank is <system>-sbr.
	LeaseName                    string        `yaml:"lease-name"`
	AcquireLeaseDelayForMinority time.Duration `yaml:"acquire-lease-delay-for-minority"`
	// ReleaseAfter is how long the winner keeps the lease once the last downed member was removed.
	ReleaseAfter time.Duration `yaml:"release-after"`
	Role         string        `yaml:"role"`
	// WhenLeaseUnknown is down or suspend.
	WhenLeaseUnknown string        `yaml:"when-lease-unknown"`
	SuspendTimeout   time.Duration `yaml:"suspend-timeout"`
	// Watch says that every member watches the verdict.
	Watch strictyaml.Switch `yaml:"watch"`
}

// Lease is the block of that name: times for all implementations, and a block for each, which may override them.
type Lease struct {
	Times      `yaml:",inline"`
	Kubernetes KubernetesLease `yaml:"kubernetes"`
	File       FileLease       `yaml:"file,omitempty"`
}

// Times are the times of a lease. Nil: not set here.
type Times struct {
	// HeartbeatTimeout may be infinite: then only an operator frees the lease of a holder that crashed.
	HeartbeatTimeout *strictyaml.Span `yaml:"heartbeat-timeout,omitempty"`
	// HeartbeatInterval, when it is set nowhere, is a tenth of HeartbeatTimeout, at least 5 s.
	HeartbeatInterval     *time.Duration `yaml:"heartbeat-interval,omitempty"`
	LeaseOperationTimeout *time.Duration `yaml:"lease-operation-timeout,omitempty"`
}

// KubernetesLease is where the Lease object lives.
type KubernetesLease struct {
	Times `yaml:",inline"`
	// Namespace: empty is that of the pod, or of the kubeconfig.
	Namespace string `yaml:"namespace"`
	// Kubeconfig is a path; empty is the pod's service account or, outside of a cluster, what kubectl would use.
	Kubeconfig string `yaml:"kubeconfig"`
	// Context of the kubeconfig: empty is its current one.
	Context string `yaml:"context,omitempty"`
	// API is native (or empty), akka or pekko: whose Lease object it is.
	API string `yaml:"api,omitempty"`
}

// FileLease is a lease in a file, for members that all run on one machine.
type FileLease struct {
	Times `yaml:",inline"`
	Path  string `yaml:"path"`
}

// OwnNode reports whether the agent is a node of its own instead of running beside a stock agent.
func (s *Serf) OwnNode() bool {
	return s.Node != "" || s.Bind != "" || s.Advertise != "" || len(s.Join) > 0 && s.RPC == "" || s.Encrypt != "" || s.KeyringFile != "" ||
		s.Snapshot != "" || bool(s.Rejoin) || bool(s.UniqueNode) || len(s.Tags) > 0
}
