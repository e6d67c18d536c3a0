package explore

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// twoSides is a cluster that is cut in two and has no time to decide, so S1 is broken; it has more steps and
// members than that needs.
func twoSides(t testing.TB, nodes int) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("two.yaml", fmt.Appendf(nil, `
cluster:
  nodes: %d
  split-brain-resolver: {stable-after: 10m, down-all-when-unstable: off}
steps:
  - {at: 8s, leave: n3}
  - {at: 10s, partition: [[n1, n2], [n4]]}
  - {at: 11s, pause: n1, for: 1s}
run-for: 120s
`, nodes))
	require.NoError(t, err)
	return s
}

func quiet(t testing.TB) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("quiet.yaml", []byte("run-for: 20s"))
	require.NoError(t, err)
	return s
}

// mixed fails in S1 with seeds that end in 3, expects in vain with those that end in 5, and panics with those
// that end in 7.
func mixed(t testing.TB) func(seed uint64) *scenario.Scenario {
	none := []string{}
	return func(seed uint64) *scenario.Scenario {
		switch seed % 10 {
		case 3:
			return twoSides(t, 4+int(seed/10))
		case 5:
			s := quiet(t)
			s.Expect.Survivors = &none
			return s
		case 7:
			panic(fmt.Sprintf("seed %d is out of cheese", seed))
		default:
			return quiet(t)
		}
	}
}

// Failures of one promise that differ in names, times and numbers are one, that of the lowest seed, with how
// many runs show it.
func TestRandom_OneFailureOfEachKind(t *testing.T) {
	f := Random(t.Context(), RandomOptions{From: 1, To: 30, Generate: mixed(t)})
	require.True(t, f.Complete)
	require.EqualValues(t, 30, f.Runs)
	require.EqualValues(t, 9, f.Failed)
	all := f.Failures()
	require.Len(t, all, 3)
	for i, want := range []struct {
		promise string
		seed    uint64
		text    string
	}{{"S1", 3, "S1 broken at 120.000s: n1#1 and n4#1 are both up"},
		{"expect", 5, "survivors: expected [], found"}, {"panic", 7, "the run panicked: seed 7"}} {
		require.Equal(t, want.promise, all[i].Promise)
		require.Equal(t, want.seed, all[i].Seed)
		require.EqualValues(t, 3, all[i].Runs)
		require.Contains(t, all[i].Text, want.text)
	}
	require.NotZero(t, f.Coverage.Len())
}

// Nothing that is found depends on the number of cores.
func TestRandom_FindsTheSameOnOneCore(t *testing.T) {
	o := RandomOptions{From: 1, To: 60, Generate: mixed(t)}
	all := Random(t.Context(), o)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	require.Equal(t, all, Random(t.Context(), o))
}

// A budget is a context: when it ends, so does exploring, after the run that is being played.
func TestRandom_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := Random(ctx, RandomOptions{From: 1, To: MaxSeed, Generate: mixed(t), Ran: func(f *Findings) {
		if f.Runs == 2 {
			cancel()
		}
	}})
	require.GreaterOrEqual(t, f.Runs, uint64(2))
	require.Less(t, f.Runs, uint64(10_000))
	require.False(t, f.Complete)
	require.Zero(t, Random(ctx, RandomOptions{From: 1, To: 9, Generate: mixed(t)}).Runs)
}

// The scenario of a failure becomes small, and still fails in the same way when it is played alone.
func TestRandom_Shrink(t *testing.T) {
	f := Random(t.Context(), RandomOptions{From: 3, To: 3,
		Generate: func(uint64) *scenario.Scenario { return twoSides(t, 7) }}).Failures()[0]
	original, err := f.Shrink(t.Context(), func(uint64) *scenario.Scenario { return twoSides(t, 7) }, 500)
	require.NoError(t, err)
	require.Equal(t, string(scenario.Format(twoSides(t, 7))), original)
	require.Equal(t, 1, f.Steps)
	require.Equal(t, 2, f.Members)
	small, err := scenario.Parse("small.yaml", []byte(f.Scenario))
	require.NoError(t, err)
	require.Contains(t, scenario.Judge(small, f.Seed).Failures[0], "S1 broken")
	require.GreaterOrEqual(t, small.RunFor-10*time.Second, 30*time.Second, "there must be time to decide")
}

// One try only looks, and nobody waits once it is over: the scenario stays as it is. A generator that panics
// has none.
func TestRandom_ShrinkWithoutTries(t *testing.T) {
	f := &Failure{Promise: "S1", Seed: 3}
	original, err := f.Shrink(t.Context(), func(uint64) *scenario.Scenario { return twoSides(t, 7) }, 1)
	require.NoError(t, err)
	require.Equal(t, original, f.Scenario)
	require.Equal(t, 3, f.Steps)
	require.Equal(t, 7, f.Members)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	f = &Failure{Promise: "S1", Seed: 3}
	original, err = f.Shrink(done, func(uint64) *scenario.Scenario { return twoSides(t, 7) }, 500)
	require.NoError(t, err)
	require.Equal(t, original, f.Scenario)
	f = &Failure{Promise: "panic", Seed: 7}
	_, err = f.Shrink(t.Context(), mixed(t), 10)
	require.ErrorContains(t, err, "the scenario of seed 7: making it panicked: seed 7 is out of cheese")
}

func TestRandom_Kinds(t *testing.T) {
	for _, same := range [][2]string{
		{"n1#1 and n4#1 are both up", "n12#3 and n2#1 are both up"},
		{"n1#1 decides none after 1.5s of a stable view, stable-after is 1m30s",
			"n2#1 decides none after 20s of a stable view, stable-after is 2s"},
		{"survivors: expected [n1], found []", "survivors: expected [n1 n2], found [n3]"},
	} {
		require.Equal(t, shapeOf(same[0]), shapeOf(same[1]))
	}
	require.NotEqual(t, shapeOf("n1#1 and n2#1 are both up"), shapeOf("n1#1 and n2#1 have downed each other"))
	require.Equal(t, map[kind]string{
		{"S1", "n…"}: "S1 broken at 1.000s: n1", {"S2", "n…"}: "S2 broken at 0.000s: n1",
		{"expect", "n…"}: "n3", {"panic", "internal error: the run panicked: x"}: "internal error: the run panicked: x",
	}, kindsOf(&scenario.Result{
		Broken: []scenario.Violation{
			{At: time.Second, Promise: "S1", Text: "n1"}, {Promise: "S1", Text: "n2"}, {Promise: "S2", Text: "n1"},
		},
		Unmet: []string{"n3", "internal error: the run panicked: x"},
	}))
}

// What became of singletons and shards is added up.
func TestRandom_TotalsOfSingletonsAndShards(t *testing.T) {
	whole := Random(t.Context(), RandomOptions{From: 1, To: 60, Generate: simulator.Random})
	for _, x := range []scenario.Totals{whole.Singletons, whole.Shards} {
		require.Positive(t, x.Runs)
		require.Less(t, uint64(x.Runs), whole.Runs, "some have none")
		require.Greater(t, x.Slots, x.Leases)
		require.Greater(t, x.Starts, x.Slots/2)
		require.Positive(t, x.HandedOver)
		require.Greater(t, x.Writes, x.Starts)
	}
	require.Positive(t, whole.Shards.Coordinators)
}

// One line says it all.
func TestTotals_AreOneLine(t *testing.T) {
	x := scenario.Totals{Runs: 2, Slots: 9, Leases: 4, SlotCounts: scenario.SlotCounts{
		Starts: 20, HandedOver: 3, Writes: 500, Rejected: 1, Overlaps: 3, Why: map[string]int{"a": 1, "b": 2},
	}}
	require.Equal(t, "9 in 2 runs, 4 with a lease; started 20 times, handed over 3; writes 500, refused as late 1; overlaps without the fence 3: 1 because a, 2 because b",
		x.String())
}
