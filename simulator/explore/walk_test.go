package explore

import (
	"flag"
	"fmt"
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

var deep = flag.Bool("deep", false, "walk with more faults at once: minutes instead of seconds")

func TestWalk_EveryInterleaving(t *testing.T) {
	halves, alone, three, single := [][]int{{0, 1}, {2, 3}}, [][]int{{0, 1, 2}, {3}}, [][]int{{0, 1}, {2}}, [][]int{{0}, {1}, {2}}
	total := 0
	for _, tc := range []struct {
		name string
		walk Walk
		deep bool
	}{
		{"2-1", Walk{Sides: three, Lost: 1, Late: 1, Crashes: 1}, false},
		{"2-1 more", Walk{Sides: three, Lost: 2, Late: 1, Crashes: 1}, true},
		{"2-1 watched", Walk{Sides: three, Watch: true, Lost: 1, Late: 1}, false},
		{"2-1 watched, more", Walk{Sides: three, Watch: true, Lost: 2, Late: 1, Crashes: 1}, true},
		{"2-1 paused", Walk{Sides: three, Pauses: 1}, false},
		{"2-1 paused, lost", Walk{Sides: three, Lost: 1, Pauses: 1}, true},
		{"2-1 paused, watched", Walk{Sides: three, Watch: true, Pauses: 1}, false},
		{"2-1 leader without store", Walk{Sides: three, NoStore: []int{0}, Lost: 2, Crashes: 1}, false},
		{"2-1 one side without store", Walk{Sides: three, NoStore: []int{0, 1}, Lost: 2, Late: 1}, false},
		{"1-1-1", Walk{Sides: single, Lost: 2, Late: 1}, false},
		{"1-1-1 more", Walk{Sides: single, Lost: 2, Late: 1, Crashes: 1, Pauses: 1}, true},
		{"halves", Walk{Sides: halves, Late: 1}, false},
		{"halves, lost", Walk{Sides: halves, Lost: 1, Crashes: 1}, false},
		{"halves, lost and late", Walk{Sides: halves, Lost: 1, Late: 1}, true},
		{"halves, watched", Walk{Sides: halves, Watch: true, Lost: 1, Crashes: 1}, false},
		{"halves, paused", Walk{Sides: halves, Pauses: 1}, false},
		{"halves, paused, lost", Walk{Sides: halves, Lost: 1, Pauses: 1}, true},
		{"halves, leaders without store", Walk{Sides: halves, NoStore: []int{0, 2}, Lost: 1, Crashes: 1}, false},
		{"halves, one side without store", Walk{Sides: halves, NoStore: []int{0, 1}, Lost: 2, Crashes: 1}, false},
		{"3-1", Walk{Sides: alone, Lost: 1, Crashes: 1}, false},
		{"3-1 late", Walk{Sides: alone, Late: 1}, false},
		{"3-1 lost and late", Walk{Sides: alone, Lost: 1, Late: 1}, true},
		{"3-1 watched", Walk{Sides: alone, Watch: true, Lost: 1}, false},
		{"3-1 paused", Walk{Sides: alone, Pauses: 1}, true},
		{"3-1 leader without store", Walk{Sides: alone, NoStore: []int{0}, Lost: 1, Crashes: 1}, false},
	} {
		if tc.deep && !*deep {
			continue
		}
		for _, skew := range []time.Duration{-3 * time.Second, 0, 3 * time.Second} {
			for _, policy := range []sbr.UnknownPolicy{sbr.UnknownDown, sbr.UnknownSuspend} {
				if skew != 0 && (policy == sbr.UnknownSuspend || testing.Short()) {
					continue
				}
				t.Run(fmt.Sprintf("%s %v %v", tc.name, skew, policy), func(t *testing.T) {
					o := tc.walk
					o.Skew, o.Limit = skew, 3_000_000
					o.Resolver, o.Strategy = walkRules(), strategies.LeaseMajority{AcquireLeaseDelayForMinority: time.Second}
					o.Resolver.WhenLeaseUnknown = policy
					r := o.Run()
					for _, b := range r.Broken {
						t.Error(b)
					}
					require.Positive(t, r.Rests)
					t.Logf("%d states, %d at rest, complete: %v", r.States, r.Rests, r.Complete)
					require.True(t, r.Complete || tc.deep)
					total += r.States
				})
			}
		}
	}
	t.Logf("%d states in all", total)
}
