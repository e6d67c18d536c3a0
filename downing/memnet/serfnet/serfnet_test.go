package serfnet_test

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing/memnet"
	"github.com/serf-sbr/serf-sbr/downing/memnet/serfnet"
)

var five = []string{"n1", "n2", "n3", "n4", "n5"}

func TestPartition_BothSidesFailEachOtherAndHeal(t *testing.T) {
	for name, cfg := range map[string]memnet.Config{
		"ideal": {},
		"noisy": {Latency: 2 * time.Millisecond, Jitter: 3 * time.Millisecond, Seed: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New(cfg)
				nodes := cluster(t, n, five...)
				require.NoError(t, n.Partition(five[:3], five[3:]))
				within(t, 2*time.Minute, func() bool {
					return allSee(nodes[:3], serf.StatusFailed, 2) && allSee(nodes[3:], serf.StatusFailed, 3)
				}, "both sides have failed each other")
				for i, node := range nodes {
					own, other := five[:3], five[3:]
					if i >= 3 {
						own, other = other, own
					}
					require.Equal(t, own, seenBy(node, serf.StatusAlive))
					require.Equal(t, other, seenBy(node, serf.StatusFailed))
				}

				n.Heal()
				within(t, 3*time.Minute, func() bool { return allAlive(nodes) }, "all alive again")
			})
		})
	}
}

func TestCutOneWay_BetweenTwoGoesUnnoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		nodes := cluster(t, n, five...)
		require.NoError(t, n.CutOneWay("n1", "n2"))
		for range 300 {
			time.Sleep(time.Second)
			require.True(t, allAlive(nodes), "the others vouch for both")
		}
	})
}

func TestCutOneWay_DeafNodeIsFailedByTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		nodes := cluster(t, n, five...)
		for _, name := range five[:4] {
			require.NoError(t, n.CutOneWay(name, "n5"))
		}
		within(t, 2*time.Minute, func() bool {
			return allSee(nodes[:4], serf.StatusFailed, 1)
		}, "the deaf node is failed")
		require.Equal(t, []string{"n5"}, seenBy(nodes[0], serf.StatusFailed))
		n.Heal()
		within(t, 3*time.Minute, func() bool { return allAlive(nodes) }, "all alive again")
	})
}

func TestFreeze_NodeIsFailedAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		nodes := cluster(t, n, five...)
		require.NoError(t, n.Freeze("n5"))
		within(t, 2*time.Minute, func() bool {
			return allSee(nodes[:4], serf.StatusFailed, 1)
		}, "the frozen node is failed")
		require.Equal(t, []string{"n5"}, seenBy(nodes[0], serf.StatusFailed))
		time.Sleep(5 * time.Minute)

		require.NoError(t, n.Thaw("n5"))
		within(t, 3*time.Minute, func() bool { return allAlive(nodes) }, "all alive again")
	})
}

func TestStart_RestartIsTheSameHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		nodes := cluster(t, n, five...)
		before := nodes[1].LocalMember()
		require.NoError(t, nodes[1].Shutdown())
		rest := append(nodes[:1:1], nodes[2:]...)
		within(t, time.Minute, func() bool { return allSee(rest, serf.StatusFailed, 1) }, "the crash is seen")

		again, err := serfnet.Start(n, "n2", nil)
		require.NoError(t, err)
		nodes[1] = again
		require.Equal(t, before.Addr, again.LocalMember().Addr)
		addr, err := n.Addr("n1")
		require.NoError(t, err)
		_, err = again.Join([]string{addr}, false)
		require.NoError(t, err)
		within(t, 3*time.Minute, func() bool { return allAlive(nodes) }, "all alive again")
	})
}

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

// TestShutdown_LeavesNothingBehind needs no look at goroutines: a bubble that
// ends with one of them blocked fails the test.
func TestShutdown_LeavesNothingBehind(t *testing.T) {
	states := map[string]func(*memnet.Network) error{
		"whole":       func(*memnet.Network) error { return nil },
		"partitioned": func(n *memnet.Network) error { return n.Partition(five[:3], five[3:]) },
		"frozen":      func(n *memnet.Network) error { return n.Freeze("n2") },
		"one way":     func(n *memnet.Network) error { return n.CutOneWay("n1", "n2") },
	}
	for name, disturb := range states {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New(memnet.Config{Latency: time.Millisecond})
				nodes, err := serfnet.StartAll(n, nil, five...)
				require.NoError(t, err)
				time.Sleep(time.Minute)
				require.NoError(t, disturb(n))
				time.Sleep(42*time.Second + 345*time.Millisecond)
				require.NoError(t, serfnet.ShutdownAll(nodes...))
				time.Sleep(settle)
				for _, name := range five {
					require.ErrorContains(t, n.Freeze(name), "is not running")
				}
			})
		})
	}
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
