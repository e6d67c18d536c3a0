package agent_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/agent"
	"github.com/serf-sbr/serf-sbr/internal/kubetest"
	"github.com/serf-sbr/serf-sbr/internal/logtest"
	"github.com/serf-sbr/serf-sbr/internal/serftest"
)

// fails runs an agent that cannot start, and returns what it says.
func fails(t *testing.T, yaml string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	l := new(logtest.Log)
	status, err := agent.Run(ctx, agent.Options{File: parse(t, yaml), Logger: slog.New(slog.NewTextHandler(l, nil))})
	require.Error(t, err, l.String())
	require.ErrorAs(t, err, new(agent.Problem), err.Error())
	require.Equal(t, 2, status)
	return err.Error()
}

// Everything that an operator has to mend is one line that names the place and the way out, and status 2.
func TestRun_Problems(t *testing.T) {
	dir := home(t)
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	defer udp.Close()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	node := "system: s\nhttp: {listen: ''}\nserf: {node: n1, bind: '127.0.0.1:0'}\n"
	for _, c := range []struct{ name, yaml, want string }{
		{"http port in use", "system: s\nserf: {node: n1, bind: '127.0.0.1:0'}\nhttp: {listen: '" + busy.Addr().String() + "'}", "http: cannot listen on " + busy.Addr().String()},
		{"gossip port in use", "system: s\nhttp: {listen: ''}\nserf: {node: n1, bind: '" + busy.Addr().String() + "'}", "is another Serf running on this address?"},
		{"probe port in use", "system: s\nhttp: {listen: ''}\nserf: {probe: '" + udp.LocalAddr().String() + "'}", udp.LocalAddr().String()},
		{"no such hook", node + "hooks: {on-down: [/no/such/hook]}", `hooks.on-down: "/no/such/hook" does not exist`},
		{"no such signal", node + "hooks: {pid-file: /run/x.pid, signal: SIGNOSUCH}", "hooks.signal"},
		{"no such certificate", "system: s\nserf: {node: n1, bind: '127.0.0.1:0'}\nhttp: {listen: '127.0.0.1:0', tls-cert-file: /no/cert, tls-key-file: /no/key}", "/no/cert"},
		{"no such token", "system: s\nserf: {node: n1, bind: '127.0.0.1:0'}\nhttp: {listen: '127.0.0.1:0', token-file: /no/token}", "/no/token"},
		{"no keyring", "system: s\nhttp: {listen: ''}\nserf: {node: n1, keyring-file: /no/keyring}", "serf.keyring-file: open /no/keyring"},
		{"empty keyring", "system: s\nhttp: {listen: ''}\nserf: {node: n1, keyring-file: " + write("empty", "[]") + "}", "holds no key"},
		{"junk keyring", "system: s\nhttp: {listen: ''}\nserf: {node: n1, keyring-file: " + write("junk", "{") + "}", "must be a JSON list of keys"},
		{"keyring without base64", "system: s\nhttp: {listen: ''}\nserf: {node: n1, keyring-file: " + write("text", `["secret!"]`) + "}", "key 1 is not base64"},
		{"unreadable kubeconfig", node + "lease: {kubernetes: {kubeconfig: /no/kubeconfig}}", "/no/kubeconfig"},
		{"no folder for the lease", node + "lease: {file: {path: /no/folder/lease}}\nsplit-brain-resolver: {lease-majority: {lease-implementation: file}}", "/no/folder"},
		{"name that Serf refuses", "system: s\nhttp: {listen: ''}\nserf: {node: '" + strings.Repeat("x", 200) + "', bind: '127.0.0.1:0'}", "NodeName"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := fails(t, c.yaml)
			require.Contains(t, text, c.want)
			require.NotContains(t, text, "\n")
			require.NotContains(t, text, "secret!")
		})
	}
}

// An API server that refuses what a member needs is said at once, with the right that is missing.
func TestRun_RefusedRights(t *testing.T) {
	cluster := kubetest.Shared(t)
	home(t)
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	ns := cluster.Namespace(t)
	kubeconfig, err := cluster.LeastPrivilegeKubeconfig(ctx, ns, "other-sbr")
	require.NoError(t, err)
	text := fails(t, "system: s\nhttp: {listen: ''}\nserf: {node: n1, bind: '127.0.0.1:0'}\nlease: {kubernetes: {namespace: "+ns+", kubeconfig: "+kubeconfig+"}}")
	require.Contains(t, text, "s-sbr")
	require.Contains(t, text, "forbidden")
}

// A stock agent that wants another key is said at once.
func TestRun_WrongRPCKey(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a stock agent: run without -short")
	}
	home(t)
	a := serftest.Start(t, serftest.Options{Node: "n1", RPCAuth: "sesame"})
	text := fails(t, "system: s\nhttp: {listen: ''}\nserf: {rpc: '"+a.RPC()+"', rpc-auth-key: wrong, probe: '127.0.0.1:0'}")
	require.Contains(t, text, "rpc-auth-key")
	require.NotContains(t, text, "sesame")
}

// An agent that is not there yet is waited for: it may be starting.
func TestRun_WaitsForTheStockAgent(t *testing.T) {
	home(t)
	r := start(t, "system: s\nserf: {rpc: '127.0.0.1:1', probe: '127.0.0.1:0'}\nhttp: {listen: '127.0.0.1:0'}")
	r.becomes("says what it waits for", func() bool {
		_, text := r.get("/healthz/ready")
		return text == "starting: waiting for the Serf node and the lease"
	})
	r.leave()
	status, err := r.ends()
	require.NoError(t, err)
	require.Zero(t, status)
}
