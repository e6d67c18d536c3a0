package serfnet_test

import (
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/downing/memnet"
	"github.com/serf-sbr/serf-sbr/downing/memnet/serfnet"
)

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
