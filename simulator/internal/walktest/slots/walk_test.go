package slots_test

import (
	"testing"

	"github.com/serf-sbr/serf-sbr/simulator/internal/walktest"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walktest/slots"
)

// TestWalk_KeepsEveryPromise walks everything that the plan allows; see package walktest for its flags.
func TestWalk_KeepsEveryPromise(t *testing.T) {
	walktest.Walk(slots.Walk).Keeps(t, walktest.Walks{Normal: slots.Normal(), Thorough: slots.Thorough(),
		Short: 20000})
}

// TestWalk_FindsWhatBreaksAPromise walks under settings that package handover forbids.
func TestWalk_FindsWhatBreaksAPromise(t *testing.T) {
	walktest.Walk(slots.Walk).Finds(t, walktest.Findings{
		{"a run that trusts its membership for longer than others wait", "A", func(o *walktest.Options) { o.Trust, o.Cuts = 10*o.Step, 1 }},
		{"no margin, and a member that notices late", "A", func(o *walktest.Options) { o.Margin, o.Cuts, o.Trust = 2*o.Step, 1, 6*o.Step }},
		{"a process that stands still and trusts for too long", "A", func(o *walktest.Options) { o.Trust, o.Pauses = 10*o.Step, 1 }},
		{"a bound that cannot be kept", "C", func(o *walktest.Options) { o.Bound, o.Crashes = o.Step, 1 }},
	})
}

func TestWalk_EndsWhenItIsCancelled(t *testing.T) {
	walktest.Walk(slots.Walk).Ends(t, walktest.Plan(false, "a cut, a pause")[0])
}
