//go:build linux

package cluster

import (
	"cmp"
	"maps"
	"time"

	"github.com/serf-sbr/serf-sbr/test/serftest"
)

// Settings are keys of sbr.yaml that differ from the defaults: blocks as nested maps.
type Settings struct {
	// Resolver is the block split-brain-resolver, Lease the block lease; the places of the lease are added.
	Resolver, Lease map[string]any
	// Serf are further keys of the block serf.
	Serf map[string]any
}

// Fast shortens what real time would make long, for rules that do not need the defaults: some 6 s from a cut
// to the verdict instead of 24.
func Fast() Settings {
	return Settings{
		Resolver: map[string]any{
			"stable-after": "4s", "settle-after": "1s", "down-all-when-unstable": "16s",
			"probe":          map[string]any{"interval": "300ms", "timeout": "200ms", "tries": 3},
			"lease-majority": map[string]any{"acquire-lease-delay-for-minority": "1s", "release-after": "5s"},
		},
		Lease: map[string]any{"heartbeat-timeout": "20s", "heartbeat-interval": "2s", "lease-operation-timeout": "1s"},
		Serf:  map[string]any{"rpc-timeout": "4s"},
	}
}

// Brief is Fast with leases that expire after half the time without a renewal.
func Brief() Settings {
	s := Fast()
	s.Lease["heartbeat-timeout"], s.Lease["heartbeat-interval"] = "10s", "1s"
	return s
}

// With returns the settings with one key of the resolver's block set.
func (s Settings) With(key string, value any) Settings {
	s.Resolver = maps.Clone(s.Resolver)
	if s.Resolver == nil {
		s.Resolver = make(map[string]any)
	}
	s.Resolver[key] = value
	return s
}

// Options say what runs on the hosts.
type Options struct {
	// Hosts are the names, in the order of their addresses.
	Hosts []string
	// Later are further hosts, which Start does not boot: Boot does.
	Later []string
	// Nodes are the names in Serf of nodes of their own that differ from their host's, by host.
	Nodes map[string]string
	// Roles are the roles of hosts, by name.
	Roles map[string][]string
	// Stagger is the time between two boots, for rules that go by age; zero: all at once.
	Stagger time.Duration
	// Own lets `sbr agent` be a node of its own; false: it runs beside a stock agent of the Flavour.
	Own     bool
	Flavour serftest.Flavour
	// Join names the other hosts in sbr.yaml beside a stock agent, too, whose own command line names them
	// anyway.
	Join bool
	// SBR and Serf are the programs. Serf is not needed for Own.
	SBR, Serf string
	// Settings go into sbr.yaml.
	Settings Settings
	// Args are further arguments of `sbr agent`, Env further variables of its environment.
	Args, Env []string
	// Profile is Serf's, Encrypt its gossip key in base64; empty: lan, and none.
	Profile, Encrypt string
	// RestartAfter is when what has ended is started again; zero: never.
	RestartAfter time.Duration
	// Singleton is a program that runs in one place; nil: none does.
	Singleton *Singleton
	// Shards replaces `sbr agent` by an application with shards, which is a node of its own; nil: there are
	// none.
	Shards *Shards
}

// nodeOn is the name in Serf of what runs on a host.
func (o *Options) nodeOn(host string) string { return cmp.Or(o.Nodes[host], host) }
