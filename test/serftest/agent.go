package serftest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/serf/client"

	"github.com/serf-sbr/serf-sbr/test/process"
)

const (
	// startTimeout is a bound for a machine under load; alone it takes 50 ms.
	startTimeout = 30 * time.Second
	pauseTimeout = 5 * time.Second
	rpcTimeout   = 10 * time.Second
	pollEvery    = 10 * time.Millisecond
	startTries   = 5
)

// Agent is a stock agent on loopback. Its methods may be called from several goroutines, but for Restart.
type Agent struct {
	tb      testing.TB
	options Options
	binary  string
	dir     string
	thread  *process.Thread
	process *process.Process
}

// Start starts an agent and returns when it answers over RPC. It ends with the test; if that has failed, its
// output is shown. The test fails when the agent does not come up.
func Start(tb testing.TB, o Options) *Agent {
	tb.Helper()
	a, err := newAgent(tb, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(a.close)
	for try := 1; ; try++ {
		if err = a.choosePorts(o); err != nil {
			tb.Fatal(err)
		}
		if err = a.start(); err == nil {
			return a
		}
		// Another process may have taken a port that was free a moment ago.
		if try == startTries || !strings.Contains(a.Output(), "address already in use") || o.Bind != "" && o.RPC != "" {
			tb.Fatal(err)
		}
	}
}

func newAgent(tb testing.TB, o Options) (*Agent, error) {
	if o.Node == "" {
		o.Node = "agent"
	}
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	binary, err := Ensure(tb.Context(), o.Flavour, o.Progress)
	if err != nil {
		return nil, err
	}
	return &Agent{tb: tb, options: o, binary: binary, dir: tb.TempDir(), thread: process.NewThread()}, nil
}

func (a *Agent) choosePorts(o Options) error {
	for _, port := range []struct {
		given  string
		chosen *string
	}{{o.Bind, &a.options.Bind}, {o.RPC, &a.options.RPC}} {
		*port.chosen = port.given
		if port.given != "" {
			continue
		}
		free, err := freeAddress()
		if err != nil {
			return err
		}
		*port.chosen = free
	}
	return nil
}

func (a *Agent) start() error {
	args, err := a.options.CommandLine(a.dir)
	if err != nil {
		return err
	}
	a.process, err = process.Start(a.thread, process.Command{
		Name: "serf agent " + a.options.Node, Program: a.binary, Args: args, Dir: a.dir, Log: filepath.Join(a.dir, "serf.log"),
	})
	if err != nil {
		return fmt.Errorf("serftest: %w", err)
	}
	ctx, cancel := context.WithTimeout(a.tb.Context(), startTimeout)
	defer cancel()
	for {
		c, err := a.Dial()
		if err == nil {
			return c.Close()
		}
		select {
		case <-a.process.Exited():
			return fmt.Errorf("serftest: serf agent %s ended (%s): %s", a.options.Node, a.process.State(), a.process.LastLogLine())
		case <-ctx.Done():
			return fmt.Errorf("serftest: serf agent %s does not answer at %s: %w", a.options.Node, a.options.RPC, err)
		case <-time.After(pollEvery):
		}
	}
}

func (a *Agent) close() {
	a.process.Kill()
	a.thread.Close()
	if a.tb.Failed() {
		a.tb.Logf("output of serf agent %s:\n%s", a.options.Node, a.Output())
	}
}

// Dial returns a client of the agent's RPC. The caller closes it.
func (a *Agent) Dial() (*client.RPCClient, error) {
	return client.ClientFromConfig(&client.Config{Addr: a.options.RPC, AuthKey: a.options.RPCAuth, Timeout: rpcTimeout})
}

// Node is its name in the cluster, Bind where it gossips, RPC where it takes commands.
func (a *Agent) Node() string { return a.options.Node }

// Bind is where it gossips, host:port: what others join.
func (a *Agent) Bind() string { return a.options.Bind }

// RPC is where it takes commands, host:port.
func (a *Agent) RPC() string { return a.options.RPC }

// Pid is the process id of the last start.
func (a *Agent) Pid() int { return a.process.Pid() }

// Kill ends the agent as a crash would. Killing an agent that has ended is fine.
func (a *Agent) Kill() { a.process.Kill() }

// Interrupt makes the agent leave the cluster and end. It fails the test if there is none.
func (a *Agent) Interrupt() { a.must(a.process.Interrupt()) }

// Stop freezes the agent (SIGSTOP): its sockets stay open and silent. It returns when the agent stands still.
func (a *Agent) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), pauseTimeout)
	defer cancel()
	a.must(a.process.Pause(ctx))
}

// Continue ends Stop.
func (a *Agent) Continue() { a.must(a.process.Resume()) }

// Wait returns how the agent has ended, or an error when ctx ends first.
func (a *Agent) Wait(ctx context.Context) (process.Exit, error) { return a.process.Wait(ctx) }

// Alive reports whether the agent has not ended; a stopped one is alive.
func (a *Agent) Alive() bool { return a.process.Alive() }

// Restart kills the agent, if it runs, and starts it again with the same name, ports and options. change, if
// not nil, may change these first. It returns when the agent answers; the test fails when it does not.
func (a *Agent) Restart(change func(*Options)) {
	a.tb.Helper()
	a.process.Kill()
	if change != nil {
		change(&a.options)
	}
	a.must(a.start())
}

// Output is what the agent has written so far, all its starts together.
func (a *Agent) Output() string {
	all, err := os.ReadFile(filepath.Join(a.dir, "serf.log"))
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	if err != nil {
		return err.Error()
	}
	return string(all)
}

func (a *Agent) must(err error) {
	a.tb.Helper()
	if err != nil {
		a.tb.Fatal(err)
	}
}

// Ports are taken from below the ephemeral range: while an agent is away, an outgoing connection of anybody
// could take an ephemeral port for its own end, and the agent could not come back.
const (
	firstPort = 30000
	portCount = 2000
	portTries = 100
)

// freeAddress finds a loopback address where nobody listens, for TCP nor for UDP.
func freeAddress() (string, error) {
	for range portTries {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+rand.IntN(portCount)))
		listener, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		packets, err := net.ListenPacket("udp", address)
		_ = listener.Close()
		if err != nil {
			continue
		}
		return address, packets.Close()
	}
	return "", fmt.Errorf("serftest: no free port among %d tried in %d-%d; end what listens there", portTries, firstPort, firstPort+portCount-1)
}
