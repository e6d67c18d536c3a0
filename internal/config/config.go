package config

import (
	"time"

	"github.com/serf-sbr/serf-sbr/internal/handover"
	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sbr/reachability"
	"github.com/serf-sbr/serf-sbr/strategies"
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
	// StableAfter is how long the view must not have changed before a decision; auto: what suits the number of members
	// (timing.StableFor), or without a lease, where nothing arbitrates between members that count with other numbers, 20 s.
	StableAfter strictyaml.AutoDuration `yaml:"stable-after"`
	// DownAllWhenUnstable: on is three quarters of StableAfter, at least 4 s.
	DownAllWhenUnstable strictyaml.OnOffDuration `yaml:"down-all-when-unstable"`
	// DownAllWhenIndirectlyConnected is the share of members above which a decision about indirectly connected ones downs all.
	DownAllWhenIndirectlyConnected strictyaml.OnOffFraction `yaml:"down-all-when-indirectly-connected"`
	// IndirectlyConnected is keep-largest-group or down; strategies with a lease only.
	IndirectlyConnected strategies.IndirectlyConnected `yaml:"indirectly-connected"`
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
	Budget     int           `yaml:"budget"`
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
	Etcd       EtcdLease       `yaml:"etcd,omitempty"`
	Postgres   PostgresLease   `yaml:"postgres,omitempty"`
	MongoDB    MongoDBLease    `yaml:"mongodb,omitempty"`
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

// EtcdLease is a lease in an etcd cluster.
type EtcdLease struct {
	Times `yaml:",inline"`
	// Endpoints are URLs or host:port; those of one cluster.
	Endpoints []string `yaml:"endpoints"`
	// Prefix is what the name of the lease is put behind; empty is /serf-sbr/.
	Prefix   string `yaml:"prefix"`
	Username string `yaml:"username"`
	// PasswordFile is a path; empty with a Username is SBR_ETCD_PASSWORD of the environment.
	PasswordFile string  `yaml:"password-file"`
	TLS          EtcdTLS `yaml:"tls"`
}

// EtcdTLS are paths of PEM files. CA empty: the roots of the machine. Cert and Key: both or none.
type EtcdTLS struct {
	CA   string `yaml:"ca"`
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
}

// PostgresLease is a lease in a table of PostgreSQL.
type PostgresLease struct {
	Times `yaml:",inline"`
	// URL is as libpq knows it. Empty, without a URLFile: SBR_POSTGRES_URL of the environment.
	URL     string `yaml:"url"`
	URLFile string `yaml:"url-file"`
	// Table, with its schema or without; empty is sbr_lease.
	Table string `yaml:"table"`
}

// MongoDBLease is a lease in a collection of MongoDB.
type MongoDBLease struct {
	Times `yaml:",inline"`
	// URI, empty without a URIFile: SBR_MONGODB_URI of the environment.
	URI      string `yaml:"uri"`
	URIFile  string `yaml:"uri-file"`
	Database string `yaml:"database"`
	// Collection: empty is sbr_leases.
	Collection string `yaml:"collection"`
}

// OwnNode reports whether the agent is a node of its own instead of running beside a stock agent.
func (s *Serf) OwnNode() bool {
	return s.Node != "" || s.Bind != "" || s.Advertise != "" || len(s.Join) > 0 && s.RPC == "" || s.Encrypt != "" || s.KeyringFile != "" ||
		s.Snapshot != "" || bool(s.Rejoin) || bool(s.UniqueNode) || len(s.Tags) > 0
}

// Serf says how `sbr agent` takes part: beside a stock agent (the RPC keys and Probe), or as a node of its own (all others but the last two).
type Serf struct {
	// RPC is the address of a stock agent. Empty without a node of its own: 127.0.0.1:7373.
	RPC        string `yaml:"rpc"`
	RPCAuthKey string `yaml:"rpc-auth-key"`
	// RPCTimeout is how long the stock agent may be silent or gone before this node goes down.
	RPCTimeout time.Duration `yaml:"rpc-timeout"`
	// Probe is the UDP address at which this agent answers the probes of the others.
	Probe string `yaml:"probe"`

	// Node is the name; empty is the host's.
	Node      string `yaml:"node,omitempty"`
	Bind      string `yaml:"bind,omitempty"`
	Advertise string `yaml:"advertise,omitempty"`
	// Join are members to join. Beside a stock agent, which joins by itself: whom to look for when others are missing.
	Join []string `yaml:"join,omitempty"`
	// Encrypt is the gossip key in base64; KeyringFile is a file with several, in Serf's format.
	Encrypt     string `yaml:"encrypt,omitempty"`
	KeyringFile string `yaml:"keyring-file,omitempty"`
	// Snapshot is the path of Serf's snapshot; Rejoin joins from it again after a leave.
	Snapshot string            `yaml:"snapshot,omitempty"`
	Rejoin   strictyaml.Switch `yaml:"rejoin,omitempty"`
	// UniqueNode adds a random part to the name, anew at each start: a node that comes back at another address is then in no conflict with itself.
	UniqueNode strictyaml.Switch `yaml:"unique-node,omitempty"`
	Tags       map[string]string `yaml:"tags,omitempty"`

	// Profile is lan, wan or local: the settings of the failure detector. Beside a stock agent it must be the agent's profile.
	Profile string `yaml:"profile"`
	// LeaveOnTerminate says that SIGTERM and SIGINT leave: a node of its own leaves the cluster; beside a stock agent, which stays, the
	// tags are taken back.
	LeaveOnTerminate strictyaml.Switch `yaml:"leave-on-terminate"`
}

// HTTP is where the agent can be looked at.
type HTTP struct {
	// Listen is host:port; empty serves nothing.
	Listen string `yaml:"listen"`
	// TLSCertFile and TLSKeyFile are PEM files: both or none.
	TLSCertFile string `yaml:"tls-cert-file,omitempty"`
	TLSKeyFile  string `yaml:"tls-key-file,omitempty"`
	// TokenFile holds the bearer token that everything but the health endpoints then needs.
	TokenFile string `yaml:"token-file,omitempty"`
}

// Hooks are commands with their arguments, empty for none, and what else is done when this member is downed.
type Hooks struct {
	OnSuspend []string `yaml:"on-suspend"`
	OnResume  []string `yaml:"on-resume"`
	OnDown    []string `yaml:"on-down"`
	// Timeout bounds each run of a command.
	Timeout time.Duration `yaml:"timeout"`
	// Grace bounds everything that is done once this member is down; then the process ends, whatever hangs.
	Grace time.Duration `yaml:"grace"`
	// PIDFile names the process that gets Signal when this member is downed.
	PIDFile string `yaml:"pid-file,omitempty"`
	Signal  string `yaml:"signal"`
}

func defaultSerf() Serf {
	return Serf{Profile: "lan", RPCTimeout: 15 * time.Second, Probe: ":7947", LeaveOnTerminate: true}
}

func defaultHooks() Hooks {
	return Hooks{Timeout: 10 * time.Second, Grace: 15 * time.Second, Signal: "SIGTERM"}
}

// RPCAddress is serf.rpc with its default.
func (s *Serf) RPCAddress() string {
	if s.RPC == "" {
		return defaultRPC
	}
	return s.RPC
}

// Singleton are the rules of the singletons that `sbr agent` runs for `sbr run`. All members of a system must use the same.
type Singleton struct {
	// UseLease is where each singleton has a lease of its own: a key of the block lease. Empty: nowhere.
	UseLease           string        `yaml:"use-lease"`
	LeaseRetryInterval time.Duration `yaml:"lease-retry-interval"`
	// HandOverRetryInterval is the pause between two tries to ask the others.
	HandOverRetryInterval time.Duration `yaml:"hand-over-retry-interval"`
	NumberOfRetries       int           `yaml:"number-of-retries"`
	// RemovalMargin is how long after the removal of a member that may have run it nothing starts. Off: sbr.Config.RemovalMargin.
	RemovalMargin strictyaml.OnOffDuration `yaml:"removal-margin"`
}

func defaultSingleton() Singleton {
	d := handover.DefaultConfig()
	return Singleton{LeaseRetryInterval: d.LeaseRetryInterval, HandOverRetryInterval: d.HandOverRetryInterval, NumberOfRetries: d.NumberOfRetries}
}

// Margin is the removal margin in effect.
func (f *File) Margin() time.Duration {
	if m := f.Singleton.RemovalMargin.For; m > 0 {
		return m
	}
	rules := f.Resolver()
	return rules.RemovalMargin()
}

// SingletonLeaseName is the name of the lease of the singleton called name.
func (f *File) SingletonLeaseName(name string) string { return f.System + "-singleton-" + name }

// SingletonLease returns what LeaseBlock does for the lease of the singleton called name: where leases are files it is one beside lease.file.path.
func (f *File) SingletonLease(name string) func(into any) error {
	own := *f
	own.Lease.File.Path += ".singleton-" + name
	return own.LeaseBlock(f.Singleton.UseLease)
}

// Values of downing-provider and of lease-implementation.
const (
	ProviderResolver = "split-brain-resolver"
	ProviderNone     = "none"

	ImplementationKubernetes = "kubernetes"
	ImplementationFile       = "file"
	ImplementationEtcd       = "etcd"
	ImplementationPostgres   = "postgres"
	ImplementationMongoDB    = "mongodb"
)

// Implementations are the stores that have a block under lease, in the order of the file.
func Implementations() (keys []string) {
	for _, b := range new(Lease).blocks() {
		keys = append(keys, b.implementation)
	}
	return keys
}

// Where the stores keep a lease by default; they know it by themselves.
const (
	defaultPrefix     = "/serf-sbr/"
	defaultTable      = "sbr_lease"
	defaultCollection = "sbr_leases"
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
		StableAfter:                    strictyaml.AutoDuration(rules.StableAfter),
		DownAllWhenUnstable:            strictyaml.OnOffDuration{On: true},
		DownAllWhenIndirectlyConnected: strictyaml.OnOffFraction(rules.DownAllWhenIndirectlyConnected),
		MinMembers:                     rules.MinMembers,
		SettleAfter:                    rules.SettleAfter,
		IndirectlyConnected:            strategy.LeaseMajority.IndirectlyConnected,
		Probe: Probe{
			Interval: probe.Interval, Timeout: probe.Timeout, Tries: probe.Tries, Neighbours: probe.Neighbours, Budget: probe.Budget,
		},
		KeepOldest:  KeepOldest{DownIfAlone: strictyaml.Switch(strategy.KeepOldest.DownIfAlone)},
		KeepReferee: KeepReferee(strategy.KeepReferee),
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
