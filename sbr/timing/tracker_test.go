package timing_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sbr/reachability"
	"github.com/serf-sbr/serf-sbr/sbr/timing"
)

// The bound speaks of the tracker that does the probing, so it is compared with it: a node that was cut off alone.
func TestProbes_RoundsBoundTheTracker(t *testing.T) {
	for _, neighbours := range []int{1, 3, 5, 8} {
		for _, others := range []int{1, 2, 4, 5, 6, 9, 19, 49, 99, 127, 128} {
			t.Run(fmt.Sprintf("%d neighbours, %d others", neighbours, others), func(t *testing.T) {
				cfg := reachability.DefaultSettings()
				cfg.Neighbours = neighbours
				tracker := reachability.New(cfg, "self")
				for i := range others {
					tracker.Add(sbr.ID(fmt.Sprintf("n%d", i)))
				}
				want := timing.Probes{Interval: cfg.Interval, Timeout: cfg.Timeout, Tries: cfg.Tries, Neighbours: neighbours}.Rounds(others)
				require.LessOrEqual(t, roundsUntilAllMissed(tracker, others), want)
			})
		}
	}
}

func roundsUntilAllMissed(tracker *reachability.Tracker, others int) int {
	for round := 1; round < 1000; round++ {
		for _, id := range tracker.Probes() {
			tracker.Probed(id, false)
		}
		if len(tracker.Form(time.Duration(round)*time.Second).Own) == others {
			return round
		}
	}
	return 1000
}
