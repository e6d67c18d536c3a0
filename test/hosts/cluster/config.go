//go:build linux

package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
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
		Node: h.Name(), Tags: c.options.tags(h.Name()), Bind: h.At(gossipPort), RPC: rpcAddress, RetryJoin: c.othersThan(h),
		Encrypt: c.options.Encrypt, Profile: c.options.Profile,
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
