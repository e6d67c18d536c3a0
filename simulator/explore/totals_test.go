package explore

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// What became of singletons and shards is added up, whoever plays the seeds, and is the same after it was a file.
func TestRandom_TotalsOfSingletonsAndShards(t *testing.T) {
	play := func(shard Shard) *Report {
		r := &Report{Schema: Schema, Version: "v1", From: 1, To: 60, Shard: shard}
		r.Take(Random(t.Context(), RandomOptions{From: 1, To: 60, Shard: shard, Generate: simulator.Random}))
		return r
	}
	whole := play(Shard{Index: 1, Of: 1})
	for _, x := range []scenario.Totals{whole.Singletons, whole.Shards} {
		require.Positive(t, x.Runs)
		require.Less(t, x.Runs, whole.Runs, "some have none")
		require.Greater(t, x.Slots, x.Leases)
		require.Greater(t, x.Starts, x.Slots/2)
		require.Positive(t, x.HandedOver)
		require.Greater(t, x.Writes, x.Starts)
	}
	require.Positive(t, whole.Shards.Coordinators)

	var parts []NamedReport
	for i := 1; i <= 2; i++ {
		data, err := json.Marshal(play(Shard{Index: i, Of: 2}))
		require.NoError(t, err)
		read, err := ReadReport("part.json", data)
		require.NoError(t, err)
		parts = append(parts, NamedReport{Name: "part.json", Report: read})
	}
	all, err := Merge(parts)
	require.NoError(t, err)
	require.Equal(t, whole.Singletons, all.Singletons)
	require.Equal(t, whole.Shards, all.Shards)

	whole.Shards.Runs = whole.Runs + 1
	whole.Singletons.Why["a flood"] = maxCount + 1
	data, err := json.Marshal(whole)
	require.NoError(t, err)
	_, err = ReadReport("whole.json", data)
	require.ErrorContains(t, err, "shards.runs: are 61 of 60")
	require.ErrorContains(t, err, "singletons: count up to")
}

// One line says it all.
func TestTotals_AreOneLine(t *testing.T) {
	x := scenario.Totals{Runs: 2, Slots: 9, Leases: 4, Starts: 20, HandedOver: 3, Writes: 500, Rejected: 1, Overlaps: 3, Why: map[string]uint64{"a": 1, "b": 2}}
	require.Equal(t, "9 in 2 runs, 4 with a lease; started 20 times, handed over 3; writes 500, refused as late 1; overlaps without the fence 3: 1 because a, 2 because b",
		x.String())
}
