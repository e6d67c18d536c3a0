package serftest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Options say how an agent is started. The zero value is a lone agent of the module's flavour, named "agent",
// on loopback.
type Options struct {
	Flavour Flavour
	// Node is the name in the cluster; empty: "agent".
	Node string
	// Bind is where it gossips and RPC where it takes commands, host:port. Start chooses ports of loopback.
	Bind, RPC string
	// Join are members to join; none that answers ends the agent.
	Join []string
	// RetryJoin are members to join, tried each second until one answers.
	RetryJoin []string
	// Encrypt is the gossip key, base64; RPCAuth the key that RPC clients must show.
	Encrypt, RPCAuth string
	Tags             map[string]string
	// Profile is lan, wan or local; empty: lan.
	Profile string
}

// CommandLine returns the arguments of `serf` that start such an agent. What has no flag is written into a
// file of dir. It serves callers that run the agent elsewhere than on loopback.
func (o Options) CommandLine(dir string) ([]string, error) {
	args := []string{"agent", "-node=" + o.Node, "-bind=" + o.Bind, "-rpc-addr=" + o.RPC}
	add := func(flag, value string) {
		if value != "" {
			args = append(args, "-"+flag+"="+value)
		}
	}
	for _, member := range o.Join {
		add("join", member)
	}
	for _, member := range o.RetryJoin {
		add("retry-join", member)
	}
	if len(o.RetryJoin) > 0 {
		add("retry-interval", "1s")
	}
	add("encrypt", o.Encrypt)
	for _, name := range slices.Sorted(maps.Keys(o.Tags)) {
		add("tag", name+"="+o.Tags[name])
	}
	add("profile", o.Profile)
	if o.RPCAuth != "" {
		path := filepath.Join(dir, o.Node+"-rpc-auth.json")
		content, err := json.Marshal(map[string]string{"rpc_auth": o.RPCAuth})
		if err == nil {
			err = os.WriteFile(path, content, 0o600)
		}
		if err != nil {
			return nil, fmt.Errorf("serftest: %w", err)
		}
		add("config-file", path)
	}
	return args, nil
}
