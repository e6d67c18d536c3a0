package serfnet_test

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/downing/memnet"
	"github.com/serf-sbr/serf-sbr/downing/memnet/serfnet"
)

func TestStart_RestartElsewhereUnderAnotherName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		nodes := cluster(t, n, "n1", "n2", "n3")
		require.NoError(t, nodes[2].Shutdown())
		moved, err := serfnet.Start(n, "n3", func(c *serf.Config) {
			c.NodeName = "n3-second"
			transport, err := n.TransportAt("n3", netip.MustParseAddr("10.1.0.3"))
			require.NoError(t, err)
			c.MemberlistConfig.Transport = transport
		})
		require.NoError(t, err)
		nodes[2] = moved
		require.Equal(t, "10.1.0.3", moved.LocalMember().Addr.String())
		_, err = moved.Join([]string{"10.0.0.1:7946"}, false)
		require.NoError(t, err)
		within(t, time.Minute, func() bool {
			return allSee(nodes, serf.StatusAlive, 3) && allSee(nodes[:2], serf.StatusFailed, 1)
		}, "the new one is alive, the old one failed")

		require.NoError(t, n.Partition([]string{"n1", "n2"}, []string{"n3"}))
		within(t, 2*time.Minute, func() bool {
			return allSee(nodes[:2], serf.StatusFailed, 2)
		}, "the network cuts by its own names")
	})
}

func TestStart_FailureLeavesTheNameFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		tooLong := func(c *serf.Config) { c.Tags["x"] = strings.Repeat("x", 600) }
		_, err := serfnet.Start(n, "n1", tooLong)
		require.ErrorContains(t, err, `serfnet: start "n1": Encoded length of tags exceeds`)

		nodes := cluster(t, n, "n1")
		_, err = serfnet.Start(n, "n1", nil)
		require.ErrorContains(t, err, `"n1" is running`)
		require.True(t, allAlive(nodes), "the one that runs is left alone")
	})
}

func TestStartAll_FailureLeavesNothingRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		_, err := serfnet.StartAll(n, nil, "n1", "n2", "n1")
		require.ErrorContains(t, err, `"n1" is running`)
		require.ErrorContains(t, n.Freeze("n1"), "is not running")

		require.NoError(t, n.Cut("n1", "n2"))
		_, err = serfnet.StartAll(n, nil, "n1", "n2")
		require.ErrorContains(t, err, `serfnet: join "n2"`)
		require.ErrorContains(t, err, "i/o timeout")
		require.ErrorContains(t, n.Freeze("n1"), "is not running")
		time.Sleep(settle)
	})
}

func TestStart_LogGoesWhereItIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		var logged bytes.Buffer
		nodes, err := serfnet.StartAll(n, func(name string, c *serf.Config) {
			if name == "n2" {
				c.LogOutput = &logged
			}
		}, "n1", "n2")
		require.NoError(t, err)
		require.NoError(t, serfnet.ShutdownAll(nodes...))
		time.Sleep(settle)
		require.Contains(t, logged.String(), "serf: EventMemberJoin: n1")
		require.Contains(t, logged.String(), "memberlist: Initiating push/pull")
		for line := range strings.Lines(logged.String()) {
			require.True(t, strings.HasPrefix(line, "n2 "), line)
		}
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// settle is how much virtual time a bubble gets after its nodes were shut
// down: Serf's longest background work, with room to spare.
const settle = time.Minute

// cluster starts nodes in a synctest bubble, waits until all know all, and
// takes everything down at the end of the test.
func cluster(t *testing.T, n *memnet.Network, names ...string) []*serf.Serf {
	t.Helper()
	nodes, err := serfnet.StartAll(n, nil, names...)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, serfnet.ShutdownAll(nodes...))
		time.Sleep(settle)
	})
	// Gossip is done in a second, or, about once in 200 times, misses somebody
	// who then learns it from the exchange of full states every 30 s.
	within(t, 2*time.Minute, func() bool { return allAlive(nodes) }, "all know all")
	return nodes
}

// within lets virtual time pass until cond holds, at most limit. It is for
// synctest bubbles only: there a sleep costs nothing.
func within(t *testing.T, limit time.Duration, cond func() bool, what string) {
	t.Helper()
	start := time.Now()
	for !cond() {
		require.Less(t, time.Since(start), limit, "%s", what)
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("%s after %v", what, time.Since(start))
}

// seenBy returns the names that node holds in the given status, sorted.
func seenBy(node *serf.Serf, status serf.MemberStatus) []string {
	names := []string{}
	for _, m := range node.Members() {
		if m.Status == status {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return names
}

func allAlive(nodes []*serf.Serf) bool {
	return allSee(nodes, serf.StatusAlive, len(nodes))
}

// allSee reports whether each of nodes holds count members in the given status.
func allSee(nodes []*serf.Serf, status serf.MemberStatus, count int) bool {
	return !slices.ContainsFunc(nodes, func(s *serf.Serf) bool {
		return len(seenBy(s, status)) != count
	})
}
