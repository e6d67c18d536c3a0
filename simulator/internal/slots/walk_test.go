package slots_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator/internal/slots"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk/walktest"
)

var model = walktest.Model[slots.Options]{Walk: slots.Walk, Common: func(o *slots.Options) *walk.Options { return &o.Options }}

// TestWalk_KeepsEveryPromise walks everything that the plan allows; see package walktest for its flags.
func TestWalk_KeepsEveryPromise(t *testing.T) {
	model.Keeps(t, walktest.Plan[slots.Options]{Normal: slots.Normal(), Thorough: slots.Thorough(), Short: 20000})
}

// TestWalk_FindsWhatBreaksAPromise walks under settings that package handover forbids.
func TestWalk_FindsWhatBreaksAPromise(t *testing.T) {
	model.Finds(t, func() slots.Options {
		o := slots.Default()
		o.Members, o.Formed = 3, true
		return o
	}, "a STARTS run 1", walktest.Findings[slots.Options]{
		{"a run that trusts its membership for longer than others wait", "A", func(o *slots.Options) { o.Handover.Trust, o.Cuts = 10*o.Step, 1 }},
		{"no margin, and a member that notices late", "A", func(o *slots.Options) { o.Handover.Margin, o.Cuts, o.Handover.Trust = 2*o.Step, 1, 6*o.Step }},
		{"a process that stands still and trusts for too long", "A", func(o *slots.Options) { o.Handover.Trust, o.Pauses = 10*o.Step, 1 }},
		{"a bound that cannot be kept", "C", func(o *slots.Options) { o.Bound, o.Crashes = o.Step, 1 }},
	})
}

func TestOptions_EveryProblemIsReported(t *testing.T) {
	o := slots.Default()
	require.NoError(t, o.Validate())
	o.Members, o.Cuts, o.Losses, o.Handover.Margin = 9, -1, 1, o.Step/2
	_, err := slots.Walk(context.Background(), o)
	require.Len(t, strings.Split(err.Error(), "\n"), 4, "%v", err)
	o.Step = 0
	require.ErrorContains(t, o.Validate(), "Step")
}

func TestWalk_EndsWhenItIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	o := slots.Default()
	o.Formed, o.Cuts, o.Pauses = true, 1, 1
	r, err := slots.Walk(ctx, o)
	require.NoError(t, err)
	require.False(t, r.Complete)
	require.Empty(t, r.Broken)
}

func TestWalk_FindsTheSameAgain(t *testing.T) {
	o := slots.Default()
	o.Formed, o.UseLease, o.Cuts = true, true, 1
	first, err := slots.Walk(t.Context(), o)
	require.NoError(t, err)
	require.True(t, first.Complete)
	again, err := slots.Walk(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, first, again)
}
