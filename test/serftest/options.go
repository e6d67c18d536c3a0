package serftest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Options say how an agent is started. The zero value is a lone agent of the module's flavour, named "agent",
// on loopback.
type Options struct {
	Flavour Flavour
	// Progress is where a build reports; nil: standard error.
	Progress io.Writer
	// Node is the name in the cluster; empty: "agent".
	Node string
	// Bind is where it gossips and RPC where it takes commands, host:port. Start chooses free ports of
	// loopback for what is empty.
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
	// Snapshot is the path of the snapshot file; empty: none. Rejoin lets it rejoin from there even if it had
	// left.
	Snapshot string
	Rejoin   bool
	// Args are further arguments.
	Args []string
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
	add("snapshot", o.Snapshot)
	if o.Rejoin {
		args = append(args, "-rejoin")
	}
	if o.RPCAuth != "" {
		path := filepath.Join(dir, o.Node+"-rpc-auth.json")
		if err := writeJSON(path, map[string]string{"rpc_auth": o.RPCAuth}); err != nil {
			return nil, err
		}
		add("config-file", path)
	}
	return append(args, o.Args...), nil
}

func writeJSON(path string, content any) error {
	raw, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("serftest: %w", err)
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		return fmt.Errorf("serftest: %w", err)
	}
	return nil
}
