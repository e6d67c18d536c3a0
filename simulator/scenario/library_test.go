package scenario

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/strategies"
)

// library parses the scenario files beside this package.
func library(t testing.TB) map[string]*Scenario {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "scenarios", "*.yaml"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 100)
	all := make(map[string]*Scenario)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		s, err := Parse(file, data)
		require.NoError(t, err)
		all[strings.TrimSuffix(filepath.Base(file), ".yaml")] = s
	}
	return all
}

// small are the scenarios that are played many times over. Thousands of members have a test of their own, and
// are played once here.
func small(s *Scenario) bool { return len(s.Names().Nodes) <= 50 }

func TestLibrary_EveryScenarioPasses(t *testing.T) {
	for name, s := range library(t) {
		seeds := uint64(20)
		switch {
		case !small(s):
			seeds = 1
		case testing.Short():
			seeds = 5
		}
		for seed := uint64(1); seed <= seeds; seed++ {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				t.Parallel()
				if r := Judge(s, seed); !r.Passed {
					t.Error(strings.Join(r.Failures, "\n"))
				}
			})
		}
	}
}

// One sentence on top says what a file proves; no two prove the same, and no two have the same name.
func TestLibrary_EveryScenarioSaysWhatItProves(t *testing.T) {
	names, sentences := make(map[string]string), make(map[string]string)
	for file, s := range library(t) {
		data, err := os.ReadFile(filepath.Join("..", "scenarios", file+".yaml"))
		require.NoError(t, err)
		first, rest, _ := bytes.Cut(data, []byte("\n"))
		require.Regexp(t, `^# \S.{30,220}\.$`, string(first), file)
		require.Regexp(t, `^name: `, string(rest), "%s: the sentence is one line, and then comes the name", file)
		require.Empty(t, names[s.Name], "%s: the name %q is taken", file, s.Name)
		require.Empty(t, sentences[string(first)], "%s: the sentence is taken", file)
		names[s.Name], sentences[string(first)] = file, file
	}
}

// Whatever a file can say is said by one at least, so that the library is also the collection of examples.
func TestLibrary_UsesWhatAFileCanSay(t *testing.T) {
	used := make(map[string]bool)
	for _, s := range library(t) {
		used["strategy "+s.Cluster.SplitBrainResolver.ActiveStrategy] = true
		used["detection "+s.Cluster.Detection.Profile] = true
		for i := range s.Steps {
			keysSet("step", reflect.ValueOf(s.Steps[i]), used)
			if c := s.Steps[i].Clock; c != nil {
				keysSet("clock", reflect.ValueOf(*c), used)
			}
			switch f := s.Steps[i].LeaseStore; {
			case f == nil:
			case f.Change.Slow != nil:
				used["lease-store slow"] = true
			default:
				used["lease-store "+f.Kind] = true
			}
		}
		keysSet("expect", reflect.ValueOf(s.Expect), used)
		for _, x := range s.Cluster.Singletons {
			keysSet("singleton", reflect.ValueOf(x), used)
		}
		for _, x := range s.Cluster.Shards {
			keysSet("shards", reflect.ValueOf(x), used)
		}
		for _, kind := range s.Expect.Decisions {
			used["decision "+kind] = true
		}
		if s.Expect.LeaseHolder != nil {
			used[fmt.Sprintf("lease-holder none: %t", *s.Expect.LeaseHolder == none)] = true
		}
	}
	want := []string{"lease-store slow", "detection ", "lease-holder none: true", "lease-holder none: false",
		"decision none", "decision down-all", "decision down-reachable", "decision down-unreachable", "decision acquire-lease-and-down-unreachable"}
	for _, k := range faultKinds {
		want = append(want, "lease-store "+k)
	}
	for _, k := range strategies.Keys() {
		want = append(want, "strategy "+k)
	}
	for _, p := range profiles() {
		want = append(want, "detection "+p)
	}
	for prefix, of := range map[string]reflect.Type{"step": reflect.TypeFor[Step](),
		"clock": reflect.TypeFor[Clock](), "expect": reflect.TypeFor[Expect](),
		"singleton": reflect.TypeFor[Singleton](), "shards": reflect.TypeFor[Shards]()} {
		for f := range of.Fields() {
			want = append(want, prefix+" "+f.Tag.Get("yaml"))
		}
	}
	for _, w := range want {
		require.True(t, used[w], "no scenario of the library uses %s", w)
	}
}

// keysSet notes which keys of a struct are set.
func keysSet(prefix string, v reflect.Value, used map[string]bool) {
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			used[prefix+" "+v.Type().Field(i).Tag.Get("yaml")] = true
		}
	}
}

// What is expected bounds the run: who survives, who goes down or what is decided is in every file, and a
// time where something is resolved.
func TestLibrary_ExpectationsAreReal(t *testing.T) {
	unresolved := []string{ // nothing that is cut is left to be resolved, or it is never resolved
		"flapping-for-long", "flapping-link", "lossy-links", "missing-link-unseen", "one-node", "orphaned-lease-infinite", "rolling-update-while-whole",
		"shards-lease-lost", "shards-planned-leave", "shards-rolling-update",
		"singleton-lease-lost", "singleton-planned-leave", "singleton-rolling-update", "singleton-two-in-a-row", "store-down-while-whole", "store-forgets-unheard", "swizzle-slow",
	}
	for name, s := range library(t) {
		e := &s.Expect
		require.True(t, e.Survivors != nil || e.SurvivorsOneOf != nil || e.SurvivorCount != nil,
			"%s does not say who survives", name)
		require.Equal(t, slices.Contains(unresolved, name), e.ResolvedWithin == nil, "%s: resolved-within", name)
		if e.Survivors == nil && e.SurvivorsOneOf == nil {
			require.False(t, small(s), "%s: a number of survivors is no side", name)
		}
	}
}
