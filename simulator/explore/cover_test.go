package explore

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator"
	"github.com/serf-sbr/serf-sbr/simulator/internal/world"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// The list is in order, each rare transition has a scenario, and each scenario belongs to one.
func TestTransitions_ListIsWhole(t *testing.T) {
	known := KnownTransitions()
	require.Greater(t, len(known), 200)
	var named []string
	for _, k := range known {
		require.Regexp(t, `^[a-z-]+ \+ [A-Za-z() ]+ -> [a-z-]+(: [A-Za-z(), -]+)?$`, k.Name)
		if k.Provoke != "" {
			named = append(named, k.Provoke)
		}
	}
	slices.Sort(named)
	require.Equal(t, slices.Compact(slices.Clone(named)), named)
	files, err := os.ReadDir(knownFolder)
	require.NoError(t, err)
	var there []string
	for _, f := range files {
		there = append(there, f.Name())
	}
	require.Equal(t, named, there)
}

// Each rare transition is taken by the scenario that the list names, and nothing breaks in it.
func TestTransitions_RareOnesAreProvoked(t *testing.T) {
	for _, k := range KnownTransitions() {
		if k.Provoke == "" {
			continue
		}
		s, err := k.Scenario()
		require.NoError(t, err)
		var c world.Coverage
		r := scenario.Cover(s, k.Seed, &c)
		require.Empty(t, r.Failures, k.Provoke)
		require.NotZero(t, c.Counts()[k.Name], "%s does not take %q: go test ./simulator/explore -run TestTransitions_Update -update", k.Provoke, k.Name)
	}
}

// Chance takes all others, in a run that is short for a night.
func TestTransitions_ChanceTakesTheOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("plays thousands of seeds: run without -short")
	}
	f := Random(t.Context(), RandomOptions{From: 1, To: 10 * rareness, Generate: simulator.Random})
	require.True(t, f.Complete)
	for _, name := range KnownTransitions().Never(f.Coverage.Counts()) {
		k, _ := KnownTransitions().find(name)
		require.NotEmpty(t, k.Provoke, "%q was never taken", name)
	}
}

func TestTransitions_Parse(t *testing.T) {
	k, err := parseKnown("# words\n\na + B -> c: D\nb + B -> c | x.yaml 7\n")
	require.NoError(t, err)
	require.Equal(t, Known{{Name: "a + B -> c: D"}, {Name: "b + B -> c", Provoke: "x.yaml", Seed: 7}}, k)
	for text, why := range map[string]string{
		"b\na\n":     "line 2: a is out of order",
		"a\na\n":     "line 2: a is out of order",
		"a | x.yaml": "line 1: strconv",
	} {
		_, err := parseKnown(text)
		require.ErrorContains(t, err, why)
	}
}

func TestTransitions_NeverAndNew(t *testing.T) {
	k := Known{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	taken := map[string]uint64{"b": 1, "d": 1, "a": 0}
	require.Equal(t, []string{"a", "c"}, k.Never(taken))
	require.Equal(t, []string{"d"}, k.New(taken))
}

// Scenarios that provoke bring the rare transitions that were never taken into a report, marked as such, and
// no others.
func TestTransitions_Provoke(t *testing.T) {
	r := &Report{Coverage: map[string]uint64{}}
	r.compare()
	var rare, common []string
	for _, k := range KnownTransitions() {
		if k.Provoke != "" {
			rare = append(rare, k.Name)
		} else {
			common = append(common, k.Name)
		}
	}
	require.NotEmpty(t, rare)
	require.NoError(t, r.Provoke())
	require.Equal(t, rare, r.Provoked)
	require.Equal(t, common, r.Never)
	require.Zero(t, r.Failed)
	require.Len(t, r.Coverage, len(rare))
}
