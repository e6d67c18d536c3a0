package slots_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator/internal/walktest"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walktest/slots"
)

// TestWalk_KeepsEveryPromise walks everything that the plan allows; see package walktest for its flags.
func TestWalk_KeepsEveryPromise(t *testing.T) {
	walktest.Walk(slots.Walk).Keeps(t, walktest.Walks{Normal: slots.Normal(), Thorough: slots.Thorough(), Short: 20000})
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

func TestOptions_EveryProblemIsReported(t *testing.T) {
	o := walktest.Default()
	o.Members, o.Cuts, o.Losses, o.Margin = 9, -1, 1, o.Step/2
	_, err := slots.Walk(t.Context(), o)
	require.Len(t, strings.Split(err.Error(), "\n"), 4, "%v", err)
}

func TestWalk_EndsWhenItIsCancelled(t *testing.T) {
	short := walktest.Plan(true, "a cut")[0]
	walktest.Walk(slots.Walk).Ends(t, walktest.Plan(false, "a cut, a pause")[0], short)
}
