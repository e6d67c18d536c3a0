package reachability_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sbr/reachability"
)

func TestSettings_Rounds(t *testing.T) {
	p := reachability.DefaultSettings()
	for others, want := range map[int]int{
		0: 0, 1: 3, 5: 3, 6: 4, 10: 4, 11: 5, 15: 5, 16: 6, 40: 7, 41: 8, 80: 8, 128: 10, 129: 13, 999: 34,
	} {
		require.Equal(t, want, p.Rounds(others), "%d others", others)
	}
	require.Zero(t, reachability.Settings{}.Rounds(7))
}

// The bound speaks of the tracker that does the probing, so it is compared with it: a node that was cut off
// alone.
func TestSettings_RoundsBoundTheTracker(t *testing.T) {
	for _, neighbours := range []int{1, 3, 5, 8} {
		for _, others := range []int{1, 2, 4, 5, 6, 9, 19, 49, 99, 127, 128} {
			t.Run(fmt.Sprintf("%d neighbours, %d others", neighbours, others), func(t *testing.T) {
				cfg := reachability.DefaultSettings()
				cfg.Neighbours = neighbours
				tracker := reachability.New(cfg, "self")
				for i := range others {
					tracker.Add(sbr.ID(fmt.Sprintf("n%d", i)))
				}
				require.LessOrEqual(t, roundsUntilAllMissed(tracker, others), cfg.Rounds(others))
			})
		}
	}
}

func roundsUntilAllMissed(tracker *reachability.Tracker, others int) int {
	for round := 1; round < 1000; round++ {
		for _, id := range tracker.Probes() {
			tracker.Probed(id, false)
		}
		if len(tracker.Form(time.Duration(round)*time.Second, false).Reports) == others {
			return round
		}
	}
	return 1000
}

// A report counts only while its observer can be reached: an observer that was cut off reports all others,
// and its last reports are still here for a while.
func TestTracker_ObserversThatAreCutOffAreNotBelieved(t *testing.T) {
	for name, tc := range map[string]struct {
		cutOff func(t *reachability.Tracker)
		want   bool
	}{
		"two observers that are here agree": {func(*reachability.Tracker) {}, true},
		"Serf calls one of them failed":     {func(tr *reachability.Tracker) { tr.SetFailed("b", true) }, false},
		"one does not answer probes": {func(tr *reachability.Tracker) {
			for range 3 {
				tr.Probed("b", false)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := reachability.DefaultSettings()
			cfg.Neighbours = 2
			tr := reachability.New(cfg, "a")
			for _, id := range []sbr.ID{"b", "c", "d", "e"} {
				tr.Add(id)
			}
			tr.Reported(0, "b", 0, []sbr.ID{"e"}, nil)
			tr.Reported(0, "c", 0, []sbr.ID{"e"}, nil)
			tc.cutOff(tr)
			unreachable := make(map[sbr.ID]bool)
			for _, c := range tr.Form(cfg.Interval, false).Changed {
				unreachable[c.ID] = c.Unreachable
			}
			require.Equal(t, tc.want, unreachable["e"])
		})
	}
}

// On a small side Serf's broadcasts are likely to be missed, so what they carry is repeated sooner.
func TestTracker_RepeatsSoonerInASmallCluster(t *testing.T) {
	small, large := reachability.New(reachability.DefaultSettings(), "self"),
		reachability.New(reachability.DefaultSettings(), "self")
	for i := range 30 {
		large.Add(sbr.ID(fmt.Sprintf("n%d", i)))
		if i < 15 {
			small.Add(sbr.ID(fmt.Sprintf("n%d", i)))
		}
	}
	for round := 1; round <= 4; round++ {
		require.True(t, small.Repeats(round))
		require.Equal(t, round%2 == 0, large.Repeats(round))
	}
	for range reachability.DefaultSettings().Tries {
		small.Probed("n3", false)
	}
	o := small.Form(0, false)
	require.Equal(t, []sbr.ID{"n3"}, o.Bad)
	require.True(t, o.News)
	o = small.Form(0, true)
	require.Equal(t, []sbr.ID{"n3"}, o.Bad)
	require.False(t, o.News, "it has been told")
	small.Probed("n3", true)
	require.True(t, small.Form(0, false).News, "it is reachable again")
}
