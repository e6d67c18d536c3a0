package serfnet_test

import (
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing/memnet"
	"github.com/serf-sbr/serf-sbr/downing/memnet/serfnet"
)

// hurried makes Serf notice in a second or two what it takes half a minute
// for by default.
func hurried(_ string, c *serf.Config) {
	c.ReconnectInterval = 500 * time.Millisecond
	c.MemberlistConfig = memberlist.DefaultLocalConfig()
	c.MemberlistConfig.ProbeInterval = 100 * time.Millisecond
	c.MemberlistConfig.ProbeTimeout = 50 * time.Millisecond
	c.MemberlistConfig.PushPullInterval = time.Second
	c.MemberlistConfig.TCPTimeout = 5 * time.Second
	c.MemberlistConfig.SuspicionMult = 2
	c.MemberlistConfig.SuspicionMaxTimeoutMult = 1
}

// TestRealTime_PartitionFreezeHealRestart is for the race detector: in a
// synctest bubble the advance of virtual time orders accesses that nothing
// orders outside, and hides their races.
func TestRealTime_PartitionFreezeHealRestart(t *testing.T) {
	n := memnet.New(memnet.Config{Latency: 200 * time.Microsecond, Jitter: 300 * time.Microsecond})
	names := []string{"n1", "n2", "n3"}
	nodes, err := serfnet.StartAll(n, hurried, names...)
	require.NoError(t, err)
	defer func() { require.NoError(t, serfnet.ShutdownAll(nodes...)) }()
	soon := func(cond func() bool, what string) {
		t.Helper()
		start := time.Now()
		require.Eventually(t, cond, 20*time.Second, 20*time.Millisecond, what)
		t.Logf("%s after %v", what, time.Since(start))
	}
	whole := func() bool { return allAlive(nodes) }
	oneLost := func() bool { return allSee(nodes[:2], serf.StatusFailed, 1) }
	soon(whole, "all know all")

	require.NoError(t, n.Partition(names[:2], names[2:]))
	soon(func() bool { return oneLost() && allSee(nodes[2:], serf.StatusFailed, 2) }, "both sides have failed each other")
	n.Heal()
	soon(whole, "healed")

	require.NoError(t, n.Freeze("n3"))
	soon(oneLost, "the frozen node is failed")
	require.NoError(t, n.Thaw("n3"))
	soon(whole, "thawed")

	require.NoError(t, nodes[2].Shutdown())
	soon(oneLost, "the crashed node is failed")
	again, err := serfnet.Start(n, "n3", func(c *serf.Config) { hurried("n3", c) })
	require.NoError(t, err)
	nodes[2] = again
	// Without this join the others may find the node before it finds them, in
	// the answers to their pings, and then do not connect to it any more.
	addr, err := n.Addr("n1")
	require.NoError(t, err)
	_, err = again.Join([]string{addr}, false)
	require.NoError(t, err)
	soon(whole, "the restarted node is back")
}
