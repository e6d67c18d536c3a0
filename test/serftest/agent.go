package serftest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/serf/client"

	"github.com/serf-sbr/serf-sbr/test/process"
	"github.com/serf-sbr/serf-sbr/test/servers"
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

const (
	pauseTimeout = 5 * time.Second
	rpcTimeout   = 10 * time.Second
)

// Agent is a stock agent on loopback. Its methods may be called from several goroutines, but for Restart.
type Agent struct {
	servers.Server
	tb      testing.TB
	options Options
	binary  string
	dir     string
}

// Start starts an agent and returns when it answers over RPC. It ends with the test; if that has failed, its
// output is shown. The test fails when the agent does not come up.
func Start(tb testing.TB, o Options) *Agent {
	tb.Helper()
	if o.Node == "" {
		o.Node = "agent"
	}
	a := &Agent{tb: tb, options: o, dir: tb.TempDir()}
	var err error
	if a.binary, err = Ensure(tb.Context(), o.Flavour, os.Stderr); err != nil {
		tb.Fatal(err)
	}
	a.Place, a.Command, a.Ping = servers.Loopback(), a.command, a.ping
	tb.Cleanup(a.close)
	a.must(a.StartSomewhere(tb.Context()))
	return a
}

// command takes commands at an address. It gossips at another one, which is chosen with it.
func (a *Agent) command(address string) (process.Command, error) {
	c := process.Command{
		Name: "serf agent " + a.options.Node, Program: a.binary, Dir: a.dir, Log: filepath.Join(a.dir, "serf.log"),
	}
	var err error
	if a.options.RPC != address {
		a.options.RPC = address
		if a.options.Bind, err = a.Place.FreeAddress(); err != nil {
			return c, err
		}
	}
	c.Args, err = a.options.CommandLine(a.dir)
	return c, err
}

func (a *Agent) ping(context.Context) error {
	c, err := a.Dial()
	if err != nil {
		return err
	}
	return c.Close()
}

func (a *Agent) close() {
	a.Kill()
	a.Place.Thread.Close()
	if a.tb.Failed() {
		said, _ := os.ReadFile(filepath.Join(a.dir, "serf.log"))
		a.tb.Logf("output of serf agent %s:\n%s", a.options.Node, said)
	}
}

// Dial returns a client of the agent's RPC. The caller closes it.
func (a *Agent) Dial() (*client.RPCClient, error) {
	return client.ClientFromConfig(&client.Config{Addr: a.options.RPC, AuthKey: a.options.RPCAuth,
		Timeout: rpcTimeout})
}

// Node is its name in the cluster.
func (a *Agent) Node() string { return a.options.Node }

// Bind is where it gossips, host:port: what others join.
func (a *Agent) Bind() string { return a.options.Bind }

// RPC is where it takes commands, host:port.
func (a *Agent) RPC() string { return a.options.RPC }

// Interrupt makes the agent leave the cluster and end. It fails the test if there is none.
func (a *Agent) Interrupt() { a.must(a.Process.Interrupt()) }

// Stop freezes the agent (SIGSTOP): its sockets stay open and silent. It returns when the agent stands still.
func (a *Agent) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), pauseTimeout)
	defer cancel()
	a.must(a.Pause(ctx))
}

// Continue ends Stop.
func (a *Agent) Continue() { a.must(a.Resume()) }

// Restart kills the agent, if it runs, and starts it again with the same name, ports and options. change, if
// not nil, may change these first. It returns when the agent answers; the test fails when it does not.
func (a *Agent) Restart(change func(*Options)) {
	a.tb.Helper()
	a.Kill()
	if change != nil {
		change(&a.options)
	}
	a.must(a.Start(a.tb.Context()))
}

func (a *Agent) must(err error) {
	a.tb.Helper()
	if err != nil {
		a.tb.Fatal(err)
	}
}
