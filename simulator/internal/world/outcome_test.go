package world

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

func TestAddress_InTheOrderOfTheNodes(t *testing.T) {
	require.Equal(t, "10.0.0.9:7946", address(9))
	require.Equal(t, "10.0.1.10:7946", address(10))
	require.Equal(t, "10.0.2.100:7946", address(100))
	for n := 1; n < 10_000; n++ {
		a, b := sbr.Member{Addr: address(n)}, sbr.Member{Addr: address(n + 1)}
		require.Negative(t, sbr.CompareMembers(&a, &b), "%s and %s", a.Addr, b.Addr)
	}
}

func healthy(t *testing.T, change func(o *Options)) *World {
	t.Helper()
	o := DefaultOptions()
	o.Strategy = strategies.LeaseMajority{AcquireLeaseDelayForMinority: 2 * time.Second}
	o.Trace = true
	if change != nil {
		change(&o)
	}
	w, err := New(o)
	require.NoError(t, err)
	return w
}

// A world is settled while it is whole, unsettled from the cut on, and settled again once one side is gone.
func TestSettled_FollowsTheTruth(t *testing.T) {
	w := healthy(t, nil)
	w.Run(20 * time.Second)
	require.True(t, w.Settled())
	require.Zero(t, w.Stirred())
	w.Partition([]int{0, 1, 2}, []int{3, 4})
	require.False(t, w.Settled(), "before anybody has noticed")
	w.Run(30 * time.Second)
	require.False(t, w.Settled(), "before anybody has decided")
	w.Run(3 * time.Minute)
	require.True(t, w.Settled())
	require.Equal(t, []string{"n4", "n5"}, w.Down())
	require.Greater(t, w.Stirred(), 40*time.Second)
	require.Less(t, w.Stirred(), time.Minute)
}

// What a clock shows does not jump when its rate changes, and the next deadline moves with the rate.
func TestSetClock_ChangesTheRateOfARunningProcess(t *testing.T) {
	w := healthy(t, nil)
	w.Run(10 * time.Second)
	p := w.Nodes()[0].proc
	w.Nodes()[0].SetClock(0.5)
	require.Equal(t, 10*time.Second, p.clock())
	w.Run(20 * time.Second)
	require.Equal(t, 15*time.Second, p.clock())
	require.Equal(t, 30*time.Second, p.wall(20*time.Second))
}
