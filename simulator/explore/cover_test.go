package explore

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/cores"
	"github.com/serf-sbr/serf-sbr/simulator"
	"github.com/serf-sbr/serf-sbr/simulator/internal/shrink"
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

var (
	update      = flag.Bool("update", false, "write the list of transitions anew")
	updateSeeds = flag.Uint64("update-seeds", 200_000, "how many seeds -update plays")
)

// rareness: a transition is rare if fewer than one run in so many takes it.
// TestTransitions_ChanceTakesTheOthers plays ten times as many runs: it misses a transition that is not rare
// with a probability of 1 in 20,000. Its seeds are the same in every run.
const rareness = 400

const listHead = `# What resolvers are known to do in one step, in what scenario files can say: the state before, the event (or a deadline), the state
# after, and the kinds of effects; chores (telling, removing, releasing) only where there is nothing else.
#
# "sbr explore random --require-coverage" fails if one of them is never taken, and names those that are not in the list.
# Those that chance takes in fewer than one run in 400 name a scenario in the folder provoke that takes them, and the seed to play it with.
#
# This list is written by: go test ./simulator/explore -run TestTransitions_Update -update
# Look at what it changes. A transition that is gone, or new, is a change of what resolvers do.
`

// sighting is the first run that took a transition, and how many did.
type sighting struct{ seed, runs uint64 }

// TestTransitions_Update writes the list from a long run. A rare transition keeps its scenario as long as
// that takes it.
func TestTransitions_Update(t *testing.T) {
	if !*update {
		t.Skip("writes the list of transitions: run with -update")
	}
	seen := sightings(t, *updateSeeds)
	old := make(map[string]KnownTransition)
	for _, k := range KnownTransitions() {
		old[k.Name] = k
		if _, again := seen[k.Name]; !again && provokes(t, k) {
			seen[k.Name] = sighting{seed: k.Seed}
		}
	}
	var known Known
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		k := KnownTransition{Name: name}
		if s := seen[name]; s.runs*rareness < *updateSeeds {
			k.Provoke, k.Seed = slug(name), s.seed
		}
		known = append(known, k)
	}
	provokeAll(t, known, old)
	writeKnown(t, known)
}

// provokeAll writes a scenario for each rare transition, unless the old one still takes it.
func provokeAll(t *testing.T, known Known, old map[string]KnownTransition) {
	t.Helper()
	cores.All(len(known), func(i int) {
		k := &known[i]
		switch o := old[k.Name]; {
		case k.Provoke == "":
		case provokes(t, o):
			*k = o
		default:
			writeProvoke(t, k.Provoke, smallest(k.Name, k.Seed), k.Name)
		}
	})
}

// writeKnown writes the list, and removes the scenarios that are not in it.
func writeKnown(t *testing.T, known Known) {
	t.Helper()
	var b strings.Builder
	b.WriteString(listHead)
	kept := make(map[string]bool)
	for _, k := range known {
		b.WriteString(k.Name)
		if k.Provoke != "" {
			kept[k.Provoke] = true
			fmt.Fprintf(&b, " | %s %d", k.Provoke, k.Seed)
		}
		b.WriteByte('\n')
	}
	require.NoError(t, os.WriteFile(knownList, []byte(b.String()), 0o666))
	files, err := os.ReadDir(knownFolder)
	require.NoError(t, err)
	for _, f := range files {
		if !kept[f.Name()] {
			require.NoError(t, os.Remove(filepath.Join(knownFolder, f.Name())))
		}
	}
}

// sightings plays the seeds up to a last one on all cores. Runs in which something is broken are left out.
func sightings(t *testing.T, last uint64) map[string]sighting {
	t.Helper()
	seen := make(map[string]sighting)
	for r := range cores.InOrder(last, func(i uint64) scenario.Result {
		return scenario.Cover(simulator.Random(1+i), 1+i, new(world.Coverage))
	}) {
		if !r.Passed {
			t.Logf("seed %d is left out: %v", r.Seed, r.Failures)
			continue
		}
		for name := range r.Coverage.Counts() {
			s, known := seen[name]
			if !known {
				s.seed = r.Seed
			}
			s.runs++
			seen[name] = s
		}
	}
	return seen
}

// provokes reports whether the scenario of a rare transition still takes it.
func provokes(t *testing.T, k KnownTransition) bool {
	if k.Provoke == "" {
		return false
	}
	s, err := k.Scenario()
	if err != nil {
		t.Error(err)
		return false
	}
	return takes(s, k.Seed, k.Name)
}

func takes(s *scenario.Scenario, seed uint64, name string) bool {
	var c world.Coverage
	return scenario.Cover(s, seed, &c).Passed && c.Counts()[name] > 0
}

// smallest is the smallest scenario found that takes a transition, with nothing broken, and with time to come
// to rest.
func smallest(name string, seed uint64) *scenario.Scenario {
	longer := func(s *scenario.Scenario) *scenario.Scenario {
		const rest = 3 * time.Minute
		c := *s
		c.RunFor += rest
		return &c
	}
	return longer(shrink.Shrink(simulator.Random(seed),
		func(s *scenario.Scenario) bool { return takes(longer(s), seed, name) }, shrink.Options{Tries: 600}))
}

// slug is the name of the file that provokes a transition.
func slug(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r < 'a' || r > 'z' })
	return strings.Join(words, "-") + ".yaml"
}

func writeProvoke(t *testing.T, file string, s *scenario.Scenario, name string) {
	t.Helper()
	c := *s
	c.Name = name
	text := "# Provokes: " + name + ".\n" + string(scenario.Format(&c))
	if err := os.WriteFile(filepath.Join(knownFolder, file), []byte(text), 0o666); err != nil {
		t.Error(err)
	}
}
