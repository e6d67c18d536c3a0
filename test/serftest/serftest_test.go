package serftest_test

import (
	"context"
	"testing"
	"time"

	"github.com/hashicorp/serf/client"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/test/buildcache"
	"github.com/serf-sbr/serf-sbr/test/serftest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const gossipKey = "T9jncgl9mbLus+baTTa7q7nPSUrXwbDi2dhbtqir37s="

func statuses(t *testing.T, c *client.RPCClient) map[string]string {
	members, err := c.Members()
	require.NoError(t, err)
	all := make(map[string]string)
	for _, m := range members {
		all[m.Name] = m.Status
	}
	return all
}

func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	require.Eventually(t, check, 30*time.Second, 20*time.Millisecond, what)
}

// Two agents with keys and tags find each other; one is killed, comes back with its options, is stopped,
// continues, and leaves.
func TestAgent_Life(t *testing.T) {
	serftest.EachFlavour(t, func(t *testing.T, f serftest.Flavour) {
		t.Parallel()
		common := serftest.Options{Flavour: f, Encrypt: gossipKey, RPCAuth: "secret", Profile: "local"}
		first, second := common, common
		first.Node, second.Node = "n1", "n2"
		n1 := serftest.Start(t, first)
		second.Join, second.Tags = []string{n1.Bind()}, map[string]string{"role": "web"}
		n2 := serftest.Start(t, second)

		c, err := n1.Dial()
		require.NoError(t, err)
		defer c.Close()
		whole := func() bool { all := statuses(t, c); return all["n1"] == "alive" && all["n2"] == "alive" }
		eventually(t, "both are members", whole)
		members, err := c.MembersFiltered(map[string]string{"role": "web"}, "", "")
		require.NoError(t, err)
		require.Len(t, members, 1)

		n2.Kill()
		eventually(t, "the killed one is missed", func() bool { return statuses(t, c)["n2"] == "failed" })
		pid := n2.Pid()
		n2.Restart(nil)
		require.NotEqual(t, pid, n2.Pid())
		eventually(t, "it is back", whole)

		n2.Stop()
		eventually(t, "the stopped one is missed", func() bool { return statuses(t, c)["n2"] == "failed" })
		n2.Continue()
		eventually(t, "it is back", whole)

		n2.Interrupt()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		exit, err := n2.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, 0, exit.Code)
		eventually(t, "it has left", func() bool { return statuses(t, c)["n2"] == "left" })
	})
}

func TestAgent_RPCNeedsTheKey(t *testing.T) {
	serftest.EachFlavour(t, func(t *testing.T, f serftest.Flavour) {
		t.Parallel()
		agent := serftest.Start(t, serftest.Options{Flavour: f, RPCAuth: "secret"})
		_, err := client.ClientFromConfig(&client.Config{Addr: agent.RPC(), AuthKey: "wrong", Timeout: time.Second})
		require.ErrorContains(t, err, "Invalid authentication token")
	})
}

func TestCommandLine(t *testing.T) {
	o := serftest.Options{
		Node: "n1", Bind: "10.0.0.1:7946", RPC: "127.0.0.1:7373", Join: []string{"a:1"}, RetryJoin: []string{"b:2"},
		Encrypt: "k",
		Tags:    map[string]string{"b": "2", "a": "1"}, Profile: "wan", RPCAuth: "p",
	}
	dir := t.TempDir()
	args, err := o.CommandLine(dir)
	require.NoError(t, err)
	require.Equal(t, []string{
		"agent", "-node=n1", "-bind=10.0.0.1:7946", "-rpc-addr=127.0.0.1:7373", "-join=a:1", "-retry-join=b:2", "-retry-interval=1s",
		"-encrypt=k", "-tag=a=1", "-tag=b=2", "-profile=wan", "-config-file=" + dir + "/n1-rpc-auth.json",
	}, args)
}

func TestEnsure_DebianNeedsApt(t *testing.T) {
	t.Setenv(buildcache.Env, t.TempDir())
	t.Setenv("PATH", "")
	_, err := serftest.Ensure(t.Context(), serftest.Debian, t.Output())
	require.ErrorIs(t, err, serftest.ErrNoApt)
}
