package downing_test

import (
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// hurried makes Serf notice in a second or two what it takes half a minute for by default.
func hurried(_ string, c *serf.Config) {
	c.ReconnectInterval = 500 * time.Millisecond
	c.LeavePropagateDelay = 100 * time.Millisecond
	c.MemberlistConfig = memberlist.DefaultLocalConfig()
	c.MemberlistConfig.ProbeInterval = 200 * time.Millisecond
	c.MemberlistConfig.ProbeTimeout = 100 * time.Millisecond
	c.MemberlistConfig.PushPullInterval = time.Second
	c.MemberlistConfig.TCPTimeout = 2 * time.Second
	c.MemberlistConfig.SuspicionMult = 2
	c.MemberlistConfig.SuspicionMaxTimeoutMult = 1
}

// This one is for the race detector: in a synctest bubble the advance of virtual time orders accesses that nothing orders outside,
// and hides their races. A short cut heals, a longer one is decided, and the loser does not come back.
func TestRealTime_SplitAndHeal(t *testing.T) {
	c := newCluster(t, func(_ string, cfg *downing.Config) {
		quick(cfg)
		cfg.Resolver.StableAfter = 1500 * time.Millisecond
		cfg.Resolver.SettleAfter = 300 * time.Millisecond
		cfg.Resolver.ReleaseAfter = 500 * time.Millisecond
		cfg.TellFor = 2 * time.Second
		if underRace {
			cfg.PauseAfter = 30 * time.Second // a busy machine is no pause
		}
	})
	c.serf = hurried
	defer c.shutdown()
	names := c.startAll(3)
	groups := [][]string{{"n1", "n2"}, {"n3"}}
	state := func(want sbr.State) func() bool {
		return func() bool {
			for _, n := range names {
				if c.members[n].provider.Status().State != want {
					return false
				}
			}
			return true
		}
	}

	// Everybody reads what a status page shows, all the time.
	done := make(chan struct{})
	defer close(done)
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				_, _ = c.members["n1"].provider.Status(), c.members["n3"].provider.Reason()
			}
		}
	}()

	require.NoError(t, c.net.Partition(groups...))
	c.eventually(30*time.Second, state(sbr.StateSuspended), "the cut is not noticed")
	c.net.Heal()
	c.eventually(30*time.Second, state(sbr.StateUp), "the heal is not noticed")
	require.Len(t, c.up(), 3)
	require.Empty(t, c.store.History())

	require.NoError(t, c.net.Partition(groups...))
	c.requireOneSide(groups[:1], 30*time.Second)
	<-c.members["n3"].provider.Done()
	c.net.Heal()
	c.eventually(30*time.Second, func() bool {
		s := c.members["n2"].provider.Status()
		return s.State == sbr.StateUp && len(s.Members) == 2
	}, "the loser is not removed")
	require.Equal(t, groups[0], c.up())
	require.Equal(t, uint64(1), c.members["n2"].provider.Status().Verdict.Token)
}
