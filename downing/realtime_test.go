package downing_test

import (
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/race"
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

// This one is for the race detector: in a synctest bubble the advance of virtual time orders accesses that
// nothing orders outside, and hides their races. A short cut heals, a longer one is decided, and the loser
// does not come back.
func TestRealTime_SplitAndHeal(t *testing.T) {
	long(t)
	c := newCluster(t, func(_ string, cfg *downing.Config) {
		quick(cfg)
		cfg.Resolver.StableAfter = 1500 * time.Millisecond
		cfg.Resolver.SettleAfter = 300 * time.Millisecond
		cfg.Resolver.ReleaseAfter = 500 * time.Millisecond
		cfg.TellFor = 2 * time.Second
		if race.Enabled {
			cfg.PauseAfter = 30 * time.Second // a busy machine is no pause
		}
	})
	c.Options.Serf = hurried
	defer c.Shutdown()
	names := c.Form(3)
	groups := [][]string{{"n1", "n2"}, {"n3"}}
	state := func(want sbr.State) func() bool {
		return func() bool {
			for _, n := range names {
				if c.provider(n).Status().State != want {
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
				_, _ = c.provider("n1").Status(), c.provider("n3").Reason()
			}
		}
	}()

	require.NoError(t, c.Net.Partition(groups...))
	c.Eventually(30*time.Second, "the cut is not noticed", state(sbr.StateSuspended))
	c.Net.Heal()
	c.Eventually(30*time.Second, "the heal is not noticed", state(sbr.StateUp))
	require.Len(t, c.Up(), 3)
	require.Empty(t, c.Store.History())

	require.NoError(t, c.Net.Partition(groups...))
	c.requireOneSide(groups[:1], 30*time.Second)
	<-c.provider("n3").Done()
	c.Net.Heal()
	c.Eventually(30*time.Second, "the loser is not removed", func() bool {
		s := c.provider("n2").Status()
		return s.State == sbr.StateUp && len(s.Members) == 2
	})
	require.Equal(t, groups[0], c.Up())
	require.Equal(t, uint64(1), c.provider("n2").Status().Verdict.Token)
}

// quick shortens what real time would make long. Both sides still notice, wait and race as with the defaults.
func quick(c *downing.Config) {
	c.Resolver.StableAfter = 2 * time.Second
	c.Resolver.DownAllWhenUnstable = 20 * time.Second
	c.Resolver.SettleAfter = time.Second
	c.Probe.Interval, c.Probe.Timeout, c.Probe.Tries = 300*time.Millisecond, 200*time.Millisecond, 3
	c.Strategies.LeaseMajority.AcquireLeaseDelayForMinority = 10 * time.Second
	c.Grace = 5 * time.Second
}
