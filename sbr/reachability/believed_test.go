package reachability_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sbr/reachability"
)

// A report counts only while its observer can be reached: one that was cut off reports everybody, and what it said last is still
// here for a while.
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
			tr.Reported(0, "b", []sbr.ID{"e"}, nil)
			tr.Reported(0, "c", []sbr.ID{"e"}, nil)
			tc.cutOff(tr)
			unreachable := make(map[sbr.ID]bool)
			for _, c := range tr.Form(cfg.Interval).Changed {
				unreachable[c.ID] = c.Unreachable
			}
			require.Equal(t, tc.want, unreachable["e"])
		})
	}
}
