package config

import (
	"time"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
)

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
