package simulator

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// walkRules are the default rules with as few deadlines as they allow: every one multiplies the states.
func walkRules() sbr.Config {
	c := sbr.DefaultConfig()
	c.StableAfter, c.SettleAfter, c.DownAllWhenUnstable = 4*time.Second, 0, 0
	c.LeaseTimeout, c.LeaseRetry, c.LeaseDeadline, c.HolderRetry = 4*time.Second, time.Second, 9*time.Second, 10*time.Second
	c.ReleaseAfter, c.SuspendTimeout = 20*time.Second, 20*time.Second
	return c
}

func TestWalk_EveryInterleaving(t *testing.T) {
	limit := 60_000
	if testing.Short() {
		limit = 3_000
	}
	if *seedCount > 0 {
		limit = int(*seedCount)
	}
	halves, alone, three := [][]int{{0, 1}, {2, 3}}, [][]int{{0, 1, 2}, {3}}, [][]int{{0, 1}, {2}}
	for _, tc := range []struct {
		name string
		walk Walk
	}{
		{"2-1 no fault", Walk{Sides: three}},
		{"2-1 watch", Walk{Sides: three, Watch: true}},
		{"2-1 lost", Walk{Sides: three, Lost: 1}},
		{"2-1 late", Walk{Sides: three, Late: 1}},
		{"2-1 crash", Walk{Sides: three, Crashes: 1}},
		{"2-1 pause", Walk{Sides: three, Pauses: 1}},
		{"2-1 lost and crash", Walk{Sides: three, Lost: 1, Crashes: 1}},
		{"2-1 leader without store, lost", Walk{Sides: three, NoStore: []int{0}, Lost: 1}},
		{"halves no fault", Walk{Sides: halves}},
		{"halves lost", Walk{Sides: halves, Lost: 1}},
		{"halves late", Walk{Sides: halves, Late: 1}},
		{"halves crash", Walk{Sides: halves, Crashes: 1}},
		{"halves leaders without store", Walk{Sides: halves, NoStore: []int{0, 2}}},
		{"3-1 lost", Walk{Sides: alone, Lost: 1}},
		{"3-1 crash", Walk{Sides: alone, Crashes: 1}},
		{"3-1 late", Walk{Sides: alone, Late: 1}},
	} {
		for _, skew := range []time.Duration{-3 * time.Second, 0, 3 * time.Second} {
			t.Run(tc.name+" "+skew.String(), func(t *testing.T) {
				o := tc.walk
				o.Skew, o.Limit = skew, limit
				o.Resolver, o.Strategy = walkRules(), strategies.LeaseMajority{AcquireLeaseDelayForMinority: time.Second}
				r := o.Run()
				t.Logf("%d states, %d at rest, complete: %v", r.States, r.Rests, r.Complete)
				for _, b := range r.Broken {
					t.Error(b)
				}
				require.Positive(t, r.Rests)
			})
		}
	}
}
