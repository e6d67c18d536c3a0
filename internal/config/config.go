package config

import (
	"cmp"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sbr/reachability"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// File is a whole sbr.yaml. Start from Default; the zero File does not validate. keys.yaml says what each key
// means.
type File struct {
	System             string             `yaml:"system"`
	DowningProvider    string             `yaml:"downing-provider"`
	SplitBrainResolver SplitBrainResolver `yaml:"split-brain-resolver"`
	Lease              Lease              `yaml:"lease"`
	Serf               Serf               `yaml:"serf"`
	HTTP               HTTP               `yaml:"http"`
	Hooks              Hooks              `yaml:"hooks"`
	Singleton          singletons         `yaml:"singleton"`

	name       string // of the input, for errors
	leaseNamed bool   // lease-implementation stands in the input
}

// SplitBrainResolver is the block of that name. Its keys and defaults are those of the reference resolver,
// with additions.
type SplitBrainResolver struct {
	ActiveStrategy                 string                         `yaml:"active-strategy"`
	StableAfter                    strictyaml.AutoDuration        `yaml:"stable-after"`
	DownAllWhenUnstable            strictyaml.OnOffDuration       `yaml:"down-all-when-unstable"`
	DownAllWhenIndirectlyConnected strictyaml.OnOffFraction       `yaml:"down-all-when-indirectly-connected"`
	IndirectlyConnected            strategies.IndirectlyConnected `yaml:"indirectly-connected"`
	MinMembers                     int                            `yaml:"min-members"`
	SettleAfter                    time.Duration                  `yaml:"settle-after"`
	Probe                          reachability.Settings          `yaml:"probe"`

	StaticQuorum  strategies.StaticQuorum `yaml:"static-quorum"`
	KeepMajority  strategies.KeepMajority `yaml:"keep-majority"`
	KeepOldest    keepOldest              `yaml:"keep-oldest"`
	KeepReferee   strategies.KeepReferee  `yaml:"keep-referee"`
	LeaseMajority leaseMajority           `yaml:"lease-majority"`
}

// keepOldest is strategies.KeepOldest, written with on and off.
type keepOldest struct {
	DownIfAlone strictyaml.Switch `yaml:"down-if-alone"`
	Role        string            `yaml:"role"`
}

// leaseMajority are the settings of that strategy and of everything that has to do with its lease.
type leaseMajority struct {
	LeaseImplementation          string            `yaml:"lease-implementation"`
	LeaseName                    string            `yaml:"lease-name"`
	AcquireLeaseDelayForMinority time.Duration     `yaml:"acquire-lease-delay-for-minority"`
	ReleaseAfter                 time.Duration     `yaml:"release-after"`
	Role                         string            `yaml:"role"`
	WhenLeaseUnknown             string            `yaml:"when-lease-unknown"`
	SuspendTimeout               time.Duration     `yaml:"suspend-timeout"`
	Watch                        strictyaml.Switch `yaml:"watch"`
}

// Lease is the block of that name: times for all implementations, and a block for each, which may override
// them.
type Lease struct {
	Times      `yaml:",inline"`
	Kubernetes kubernetesLease `yaml:"kubernetes"`
	File       fileLease       `yaml:"file,omitempty"`
	Etcd       etcdLease       `yaml:"etcd,omitempty"`
	Postgres   postgresLease   `yaml:"postgres,omitempty"`
	MongoDB    mongoLease      `yaml:"mongodb,omitempty"`
}

// Times are the times of a lease. Nil: not set here.
type Times struct {
	HeartbeatTimeout      *strictyaml.Span `yaml:"heartbeat-timeout,omitempty"`
	HeartbeatInterval     *time.Duration   `yaml:"heartbeat-interval,omitempty"`
	LeaseOperationTimeout *time.Duration   `yaml:"lease-operation-timeout,omitempty"`
}

type kubernetesLease struct {
	Times      `yaml:",inline"`
	Namespace  string `yaml:"namespace"`
	Kubeconfig string `yaml:"kubeconfig"`
	Context    string `yaml:"context,omitempty"`
	API        string `yaml:"api,omitempty"`
}

type fileLease struct {
	Times `yaml:",inline"`
	Path  string `yaml:"path"`
}

type etcdLease struct {
	Times        `yaml:",inline"`
	Endpoints    []string `yaml:"endpoints"`
	Prefix       string   `yaml:"prefix"`
	Username     string   `yaml:"username"`
	PasswordFile string   `yaml:"password-file"`
	TLS          struct {
		CA   string `yaml:"ca"`
		Cert string `yaml:"cert"`
		Key  string `yaml:"key"`
	} `yaml:"tls"`
}

type postgresLease struct {
	Times   `yaml:",inline"`
	URL     string `yaml:"url"`
	URLFile string `yaml:"url-file"`
	Table   string `yaml:"table"`
}

type mongoLease struct {
	Times      `yaml:",inline"`
	URI        string `yaml:"uri"`
	URIFile    string `yaml:"uri-file"`
	Database   string `yaml:"database"`
	Collection string `yaml:"collection"`
}

// Serf says how `sbr agent` takes part: beside a stock agent (the RPC keys and Probe), or as a node of its
// own (all others but the last two).
type Serf struct {
	RPC        string        `yaml:"rpc"`
	RPCAuthKey string        `yaml:"rpc-auth-key"`
	RPCTimeout time.Duration `yaml:"rpc-timeout"`
	Probe      string        `yaml:"probe"`

	Node        string            `yaml:"node,omitempty"`
	Bind        string            `yaml:"bind,omitempty"`
	Advertise   string            `yaml:"advertise,omitempty"`
	Join        []string          `yaml:"join,omitempty"`
	Encrypt     string            `yaml:"encrypt,omitempty"`
	KeyringFile string            `yaml:"keyring-file,omitempty"`
	Snapshot    string            `yaml:"snapshot,omitempty"`
	Rejoin      strictyaml.Switch `yaml:"rejoin,omitempty"`
	UniqueNode  strictyaml.Switch `yaml:"unique-node,omitempty"`
	Tags        map[string]string `yaml:"tags,omitempty"`

	Profile          string            `yaml:"profile"`
	LeaveOnTerminate strictyaml.Switch `yaml:"leave-on-terminate"`
}

// OwnNode reports whether the agent is a node of its own instead of running beside a stock agent.
func (s *Serf) OwnNode() bool {
	return s.Node != "" || s.Bind != "" || s.Advertise != "" || len(s.Join) > 0 && s.RPC == "" ||
		s.Encrypt != "" || s.KeyringFile != "" ||
		s.Snapshot != "" || bool(s.Rejoin) || bool(s.UniqueNode) || len(s.Tags) > 0
}

// RPCAddress is serf.rpc with its default.
func (s *Serf) RPCAddress() string { return cmp.Or(s.RPC, defaultRPC) }

// HTTP is where the agent can be looked at.
type HTTP struct {
	Listen      string `yaml:"listen"`
	TLSCertFile string `yaml:"tls-cert-file,omitempty"`
	TLSKeyFile  string `yaml:"tls-key-file,omitempty"`
	TokenFile   string `yaml:"token-file,omitempty"`
}

// Hooks are the programs of an operator that are told what becomes of this member (package hook).
type Hooks struct {
	OnSuspend []string      `yaml:"on-suspend"`
	OnResume  []string      `yaml:"on-resume"`
	OnDown    []string      `yaml:"on-down"`
	Timeout   time.Duration `yaml:"timeout"`
	Grace     time.Duration `yaml:"grace"`
	PIDFile   string        `yaml:"pid-file,omitempty"`
	Signal    string        `yaml:"signal"`
}

// Signals are the values of hooks.signal: those that every Unix has.
func Signals() []string {
	return strings.Fields("SIGTERM SIGINT SIGHUP SIGQUIT SIGUSR1 SIGUSR2 SIGKILL SIGABRT SIGALRM SIGBUS SIGCHLD " +
		"SIGCONT SIGFPE SIGILL SIGIO SIGPIPE SIGPROF SIGSEGV SIGSTOP SIGSYS SIGTRAP SIGTSTP SIGTTIN SIGTTOU SIGURG " +
		"SIGVTALRM SIGWINCH SIGXCPU SIGXFSZ")
}

type singletons struct {
	UseLease              string                   `yaml:"use-lease"`
	LeaseRetryInterval    time.Duration            `yaml:"lease-retry-interval"`
	HandOverRetryInterval time.Duration            `yaml:"hand-over-retry-interval"`
	NumberOfRetries       int                      `yaml:"number-of-retries"`
	RemovalMargin         strictyaml.OnOffDuration `yaml:"removal-margin"`
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

// SingletonLease returns what LeaseBlock does for the lease of the singleton called name: where leases are
// files it is one beside lease.file.path.
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
	d := slot.DefaultRules()
	return File{
		DowningProvider:    ProviderResolver,
		SplitBrainResolver: DefaultSplitBrainResolver(),
		Serf: Serf{Profile: "lan", RPCTimeout: 15 * time.Second, Probe: ":7947",
			LeaveOnTerminate: true},
		HTTP:  HTTP{Listen: "127.0.0.1:7380"},
		Hooks: Hooks{Timeout: 10 * time.Second, Grace: 15 * time.Second, Signal: "SIGTERM"},
		Singleton: singletons{
			LeaseRetryInterval: d.LeaseRetryInterval, HandOverRetryInterval: d.HandOverRetryInterval,
			NumberOfRetries: d.NumberOfRetries,
		},
	}
}

// DefaultSplitBrainResolver returns the defaults of that block, for files that hold it alone. Decode into it.
func DefaultSplitBrainResolver() SplitBrainResolver {
	rules, strategy := sbr.DefaultConfig(), strategies.DefaultSettings()
	return SplitBrainResolver{
		ActiveStrategy:                 "lease-majority",
		StableAfter:                    strictyaml.AutoDuration(rules.StableAfter),
		DownAllWhenUnstable:            strictyaml.OnOffDuration{On: true},
		DownAllWhenIndirectlyConnected: strictyaml.OnOffFraction(rules.DownAllWhenIndirectlyConnected),
		MinMembers:                     rules.MinMembers,
		SettleAfter:                    rules.SettleAfter,
		IndirectlyConnected:            strategy.LeaseMajority.IndirectlyConnected,
		Probe:                          reachability.DefaultSettings(),
		KeepOldest:                     keepOldest{DownIfAlone: strictyaml.Switch(strategy.KeepOldest.DownIfAlone)},
		KeepReferee:                    strategy.KeepReferee,
		LeaseMajority: leaseMajority{
			LeaseImplementation:          ImplementationKubernetes,
			AcquireLeaseDelayForMinority: strategy.LeaseMajority.AcquireLeaseDelayForMinority,
			ReleaseAfter:                 rules.ReleaseAfter,
			WhenLeaseUnknown:             unknownDown,
			SuspendTimeout:               rules.SuspendTimeout,
			Watch:                        true,
		},
	}
}

// maxDuration bounds the durations that are not the resolver's as well.
const maxDuration = sbr.MaxDuration
