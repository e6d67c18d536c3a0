package shards_test

import (
	"testing"

	"github.com/serf-sbr/serf-sbr/simulator/internal/walktest"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walktest/shards"
)

// TestWalk_KeepsEveryPromise walks everything that the plan allows; see package walktest for its flags.
func TestWalk_KeepsEveryPromise(t *testing.T) {
	walktest.Walk(shards.Walk).Keeps(t, walktest.Walks{
		Quick: shards.Quick(), Normal: shards.Normal(), Thorough: shards.Thorough(), Short: 4000,
		ShortQuick: 60_000,
	})
}

// TestWalk_FindsWhatBreaksAPromise walks under settings that packages host and coordinator forbid.
func TestWalk_FindsWhatBreaksAPromise(t *testing.T) {
	walktest.Walk(shards.Walk).Finds(t, walktest.Findings{
		{"runs that trust their membership for longer than others wait", "A", func(o *walktest.Options) { o.Trust, o.Cuts = 10*o.Step, 1 }},
		{"no margin, and a member that notices late", "A", func(o *walktest.Options) { o.Margin, o.Cuts, o.Trust = 2*o.Step, 1, 6*o.Step }},
		{"a process that stands still and trusts for too long", "A", func(o *walktest.Options) { o.Trust, o.Pauses = 12*o.Step, 1 }},
		{"a bound that cannot be kept", "C", func(o *walktest.Options) { o.Bound, o.Crashes = o.Step, 1 }},
	})
}

func TestWalk_EndsWhenItIsCancelled(t *testing.T) {
	walktest.Walk(shards.Walk).Ends(t, walktest.Plan(false, "a cut, a pause")[0])
}
