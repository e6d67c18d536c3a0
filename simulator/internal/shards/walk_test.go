package shards_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator/internal/shards"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk/walktest"
)

var model = walktest.Model[shards.Options]{Walk: shards.Walk, Common: func(o *shards.Options) *walk.Options { return &o.Options }}

// TestWalk_KeepsEveryPromise walks everything that the plan allows; see package walktest for its flags.
func TestWalk_KeepsEveryPromise(t *testing.T) {
	model.Keeps(t, walktest.Plan[shards.Options]{Quick: shards.Quick(), Normal: shards.Normal(), Thorough: shards.Thorough(), Short: 4000, ShortQuick: 60_000})
}

// TestWalk_FindsWhatBreaksAPromise walks under settings that packages host and coordinator forbid.
func TestWalk_FindsWhatBreaksAPromise(t *testing.T) {
	model.Finds(t, func() shards.Options { return shards.Plan(false, "three")[0] }, "STARTS shard 0, run 1", walktest.Findings[shards.Options]{
		{"runs that trust their membership for longer than others wait", "A", func(o *shards.Options) { o.Host.Trust, o.Cuts = 10*o.Step, 1 }},
		{"no margin, and a member that notices late", "A", func(o *shards.Options) { o.Host.Margin, o.Cuts, o.Host.Trust = 2*o.Step, 1, 6*o.Step }},
		{"a process that stands still and trusts for too long", "A", func(o *shards.Options) { o.Host.Trust, o.Pauses = 12*o.Step, 1 }},
		{"a bound that cannot be kept", "C", func(o *shards.Options) { o.Bound, o.Crashes = o.Step, 1 }},
	})
}

func TestOptions_EveryProblemIsReported(t *testing.T) {
	o := shards.Default()
	require.NoError(t, o.Validate())
	o.Members, o.Cuts, o.Strangers, o.Host.Margin, o.Shards = 9, -1, 1, o.Step/2, 3
	_, err := shards.Walk(context.Background(), o)
	require.Len(t, strings.Split(err.Error(), "\n"), 5, "%v", err)
	o.Step = 0
	require.ErrorContains(t, o.Validate(), "Step")
}

func TestWalk_EndsWhenItIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	o := shards.Plan(false, "a cut, a pause")[0]
	r, err := shards.Walk(ctx, o)
	require.NoError(t, err)
	require.False(t, r.Complete)
	require.Empty(t, r.Broken)
}

func TestWalk_FindsTheSameAgain(t *testing.T) {
	o := shards.Plan(true, "three, a leave, another coordinator")[0]
	o.Limit = 5000
	first, err := shards.Walk(t.Context(), o)
	require.NoError(t, err)
	again, err := shards.Walk(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, first, again)
}
