package explore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// What became of singletons and shards is added up, whoever plays the seeds.
func TestRandom_TotalsOfSingletonsAndShards(t *testing.T) {
	play := func(from, step uint64) *Findings {
		return Random(t.Context(), RandomOptions{From: from, To: 60, Step: step, Generate: simulator.Random})
	}
	whole := play(1, 1)
	for _, x := range []scenario.Totals{whole.Singletons, whole.Shards} {
		require.Positive(t, x.Runs)
		require.Less(t, x.Runs, whole.Runs, "some have none")
		require.Greater(t, x.Slots, x.Leases)
		require.Greater(t, x.Starts, x.Slots/2)
		require.Positive(t, x.HandedOver)
		require.Greater(t, x.Writes, x.Starts)
	}
	require.Positive(t, whole.Shards.Coordinators)
	all := Join(play(1, 2), play(2, 2))
	require.Equal(t, whole.Singletons, all.Singletons)
	require.Equal(t, whole.Shards, all.Shards)
}

// One line says it all.
func TestTotals_AreOneLine(t *testing.T) {
	x := scenario.Totals{Runs: 2, Slots: 9, Leases: 4, Starts: 20, HandedOver: 3, Writes: 500, Rejected: 1, Overlaps: 3, Why: map[string]uint64{"a": 1, "b": 2}}
	require.Equal(t, "9 in 2 runs, 4 with a lease; started 20 times, handed over 3; writes 500, refused as late 1; overlaps without the fence 3: 1 because a, 2 because b",
		x.String())
}
