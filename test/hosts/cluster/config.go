//go:build linux

package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/test/buildcache"
	"github.com/serf-sbr/serf-sbr/test/hosts/lab"
	"github.com/serf-sbr/serf-sbr/test/serftest"
)

const (
	gossipPort = 7946
	rpcAddress = "127.0.0.1:7373"
	pageURL    = "http://127.0.0.1:7380"

	majorityBlock = "lease-majority"
)

// note is what the hooks write: one line each time, with the time at which they run.
const note = `printf '%s\t%s\t%s\t%s\t%s\n' "$SBR_EVENT" "$(date +%s.%N)" "$SBR_INCARNATION" "$SBR_TOKEN" "$SBR_REASON" >>"$0"`

// place is what the configuration of one member says of where it is.
type place struct {
	host, bind string
	others     []string
	hooks      string // the file that they write to
	kind       string // lease-implementation
	section    map[string]any
}

// sbrYAML is the configuration of one member. It is JSON, which is YAML too.
func (o *Options) sbrYAML(p place) ([]byte, error) {
	hook := []string{"/bin/sh", "-c", note, p.hooks}
	lease := map[string]any{p.kind: p.section}
	maps.Copy(lease, o.Settings.Lease)
	content := map[string]any{
		"system": System,
		"lease":  lease,
		"serf":   o.serfBlock(p),
		"hooks":  map[string]any{"on-suspend": hook, "on-resume": hook, "on-down": hook},
	}
	if resolver := o.resolverBlock(p.kind); resolver != nil {
		content["split-brain-resolver"] = resolver
	}
	if block := o.Singleton.block(p.kind); block != nil {
		content["singleton"] = block
	}
	raw, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("cluster: sbr.yaml: %w", err)
	}
	return raw, nil
}

// resolverBlock is the block split-brain-resolver; nil: there is none.
func (o *Options) resolverBlock(kind string) map[string]any {
	if kind == kubernetes.Key { // the default
		return o.Settings.Resolver
	}
	majority, _ := o.Settings.Resolver[majorityBlock].(map[string]any)
	if majority = maps.Clone(majority); majority == nil {
		majority = make(map[string]any)
	}
	majority["lease-implementation"] = kind
	return o.Settings.With(majorityBlock, majority).Resolver
}

func (o *Options) serfBlock(p place) map[string]any {
	serf := make(map[string]any)
	maps.Copy(serf, o.Settings.Serf)
	if o.Profile != "" {
		serf["profile"] = o.Profile
	}
	if !o.Own {
		serf["rpc"] = rpcAddress
		if o.Join {
			serf["join"] = p.others
		}
		return serf
	}
	delete(serf, "rpc-timeout") // there is no agent to wait for
	serf["node"], serf["bind"], serf["join"] = o.nodeOn(p.host), p.bind, p.others
	if o.Encrypt != "" {
		serf["encrypt"] = o.Encrypt
	}
	if tags := o.tags(p.host); tags != nil {
		serf["tags"] = tags
	}
	return serf
}

// tags are those of a host's Serf node.
func (o *Options) tags(host string) map[string]string {
	if len(o.Roles[host]) == 0 {
		return nil
	}
	return map[string]string{downing.TagRole: strings.Join(o.Roles[host], ",")}
}

// writeConfig writes the configuration of a host's member, with the lease in a place of a store.
func (c *Cluster) writeConfig(h *lab.Host, name, kind string, k *keep) (string, error) {
	raw, err := c.options.sbrYAML(place{
		host: h.Name(), bind: h.At(gossipPort), others: c.othersThan(h), hooks: h.File("hooks.txt"),
		kind: kind, section: k.section,
	})
	if err != nil {
		return "", err
	}
	path := h.File(name)
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		return "", fmt.Errorf("cluster: %w", err)
	}
	return path, nil
}

// serfArgs is the command line of a host's stock agent.
func (c *Cluster) serfArgs(h *lab.Host) ([]string, error) {
	return serftest.Options{
		Node: h.Name(), Tags: c.options.tags(h.Name()), Bind: h.At(gossipPort), RPC: rpcAddress,
		RetryJoin: c.othersThan(h),
		Encrypt:   c.options.Encrypt, Profile: c.options.Profile,
	}.CommandLine(c.lab.Dir())
}

// othersThan are the addresses to join: those of all hosts there will be, as a name service or a
// configuration management knows them.
func (c *Cluster) othersThan(h *lab.Host) []string {
	var all []string
	for _, name := range slices.Concat(c.options.Hosts, c.options.Later) {
		if name != h.Name() {
			all = append(all, c.lab.Host(name).At(gossipPort))
		}
	}
	return all
}

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
		Lease: map[string]any{"heartbeat-timeout": "20s", "heartbeat-interval": "2s",
			"lease-operation-timeout": "1s"},
		Serf: map[string]any{"rpc-timeout": "4s"},
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

// BinaryEnv names the program under test where that is not to be built here: that of a package, for instance.
const BinaryEnv = "SBR_BINARY"

// BuildSBR builds `sbr` of this repository into dir, unless it is given, and returns its path.
func BuildSBR(ctx context.Context, dir string) (string, error) {
	if path := os.Getenv(BinaryEnv); path != "" {
		return path, nil
	}
	root, err := buildcache.Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "sbr")
	return path, build(ctx, root, path, "./cmd/sbr")
}

// BuildLoad builds the ledger (serve) and what writes to it (write and shardhost) into dir.
func BuildLoad(ctx context.Context, dir string) error {
	root, err := buildcache.Root()
	if err != nil {
		return err
	}
	return build(ctx, filepath.Join(root, "test"), dir+string(filepath.Separator),
		"github.com/serf-sbr/serf-sbr/internal/ledger/serve", "github.com/serf-sbr/serf-sbr/internal/ledger/write", "./hosts/shardhost")
}

// build takes from the go command's cache what its tests have compiled: no flags that change that.
func build(ctx context.Context, module, to string, packages ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-o", to}, packages...)...)
	cmd.Dir, cmd.Env = module, append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %v: %w: %s", packages, err, said)
	}
	return nil
}
