package serf_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/race"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

const (
	// maxNodes and maxTime bound what is played: real Serf costs a thousand times what the model costs.
	maxNodes = 20
	maxTime  = 15 * time.Minute
)

// timed are files whose outcome depends on the detection times that they fix, by name, with the reason.
var timed = map[string]string{
	"heal-just-before": "the heal is timed to the file's detection times; Serf's own may be too slow to see it in time",
	"holder-crashes":   "the crash is timed to the file's detection times; with Serf's own it may come before the verdict",
}

// promisesOnly says why the expectations of a file do not hold over real Serf, where only the promises are
// checked then; empty: they do.
func promisesOnly(name string) string {
	return timed[name]
}

// short are the files that are played with -short, and under the race detector.
var short = []string{"three-two", "halves", "lone-node", "one-way-cut", "restart-same-name", "singleton-holder-loses", "shards-lease-lost"}

// unplayable says why a file is not played here; empty: it is.
func unplayable(s *scenario.Scenario) string {
	if n := len(s.Members()); n > maxNodes {
		return fmt.Sprintf("%d nodes; real Serf is played up to %d", n, maxNodes)
	}
	if s.RunFor > maxTime {
		return fmt.Sprintf("it runs for %v; real Serf is played up to %v", s.RunFor, maxTime)
	}
	skewed, ended := make(map[string]bool), make(map[string]bool)
	for i := range s.Steps {
		st := &s.Steps[i]
		if st.Crash != nil {
			ended[*st.Crash] = true
		}
		switch {
		case st.Restart != nil && len(ended) == len(s.Members()):
			return "what members remember after all of them have ended is in state folders, and nodes have none here"
		case st.As != nil, st.State != nil:
			return "what a state folder proves of a predecessor is the agent's business, and nodes have none here"
		case st.Clock != nil && st.Clock.Rate != nil && *st.Clock.Rate != 1:
			return "a clock runs at another rate, and virtual time has one clock for all"
		case st.Clock != nil:
			skewed[st.Clock.Node] = true
		}
	}
	for i := range s.Steps { // a skew is seen only by a process that starts under it
		for _, name := range []*string{s.Steps[i].Restart, s.Steps[i].Join} {
			if name != nil && skewed[*name] {
				return *name + " starts under a wall clock of its own, and virtual time has one clock for all"
			}
		}
	}
	return ""
}

// without says which parts of a file are left out when it is played here, with the reason.
func without(s *scenario.Scenario) (parts []string) {
	if s.Cluster.Detection.Profile == "" {
		parts = append(parts, "detection: Serf has times of its own, so resolved-within is not checked")
	}
	return parts
}

// library parses the scenario files.
func library(t *testing.T) map[string]*scenario.Scenario {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "simulator", "scenarios", "*.yaml"))
	require.NoError(t, err)
	all := make(map[string]*scenario.Scenario)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		s, err := scenario.Parse(file, data)
		require.NoError(t, err)
		all[strings.TrimSuffix(filepath.Base(file), ".yaml")] = s
	}
	return all
}

// seeds is how often each file is played; SBR_SEEDS changes it.
func seeds() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("SBR_SEEDS"), 10, 16); err == nil && n > 0 {
		return n
	}
	return 1
}

// row is one line of the table of TestScenarios.
type row struct{ file, model, serf, agree, why string }

// Each scenario file has the outcome over real Serf that it has in the model, or another that the file
// allows; and no promise is broken there either.
func TestScenarios(t *testing.T) {
	var mu sync.Mutex
	var rows []row
	t.Run("files", func(t *testing.T) {
		for name, s := range library(t) {
			if (testing.Short() || race.Enabled) && !slices.Contains(short, name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for seed := range seeds() {
					r := row{file: name, agree: "NO", why: "it was not played to the end"}
					func() {
						defer func() {
							mu.Lock()
							defer mu.Unlock()
							rows = append(rows, r)
						}()
						r = compare(t, name, s, seed+1)
					}()
				}
			})
		}
	})
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.file, b.file) })
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "file\tmodel\tserf\tagree?")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.file, r.model, r.serf, r.agree)
	}
	require.NoError(t, w.Flush())
	t.Log("\n" + text.String())
	t.Log("\n" + notPlayed(library(t)))
	for _, r := range rows { // once more, where the end of a long log shows it
		if r.why != "" {
			t.Logf("%s: %s: %s", r.file, r.serf, r.why)
		}
	}
	require.NotEmpty(t, rows)
}

// compare plays one file in both tiers.
func compare(t *testing.T, name string, s *scenario.Scenario, seed uint64) row {
	model := scenario.Judge(s, seed)
	require.True(t, model.Passed, "the model itself: %v", model.Failures)
	r := row{file: name, model: (&outcome{Result: model}).String()}
	why := unplayable(s)
	if why == "" && len(model.Excepted) > 0 {
		why = "it is the one schedule that S1 excepts, and what is checked here knows no exception"
	}
	if why != "" {
		r.serf, r.agree = "not played here: "+why, "-"
		return r
	}
	file := *s
	fixed := s.Cluster.Detection.Profile == ""
	if fixed { // Serf has times of its own
		c := *s
		c.Cluster.Detection = scenario.DefaultDetection()
		s = &c
	}
	o := play(t, s, seed)
	require.NoError(t, o.err)
	r.serf = o.String()
	failures, why := o.broken, promisesOnly(name)
	if why == "" && len(failures) == 0 {
		failures = o.unmet(s, !fixed)
		if len(failures) > 0 {
			met, unmet := again(t, s, seed, !fixed)
			if met > unmet {
				r.agree = fmt.Sprintf("in %d plays of %d; in this one: %s", met, met+unmet, strings.Join(failures, ", "))
				return r
			}
			failures = append(failures, fmt.Sprintf("met in %d plays of %d", met, met+unmet))
		}
	}
	switch {
	case len(failures) > 0:
		r.agree, r.why = "NO", fmt.Sprintf("seed %d: %s", seed, strings.Join(failures, ", "))
		t.Errorf("%s: %s", r.serf, r.why)
	case why != "":
		r.agree = "promises only: " + why
	case slices.Equal(o.Survivors, model.Survivors) && slices.Equal(o.Down, model.Down):
		r.agree = "yes"
	default:
		r.agree = "yes, the file allows both"
	}
	if parts := without(&file); len(parts) > 0 {
		r.agree += "; not all of it was played"
	}
	return r
}

// notPlayed is a table of what is left out of the files here, and why.
func notPlayed(all map[string]*scenario.Scenario) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "file\tnot played")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		if why := unplayable(s); why != "" {
			fmt.Fprintf(w, "%s\tall of it: %s\n", name, why)
			continue
		}
		for _, part := range without(s) {
			fmt.Fprintf(w, "%s\t%s\n", name, part)
		}
	}
	_ = w.Flush() // into memory
	return text.String()
}

// Every key that a file can use is played here, or it is listed why not: a new one is not passed over. These
// are the keys that nothing here looks at in a file that is played.
func TestScenarios_EveryKeyIsPlayedOrListed(t *testing.T) {
	played := map[string][]string{
		"Cluster": {"system", "nodes", "split-brain-resolver", "lease", "network", "reap-after", "settings", "singletons", "shards"},
		"Node":    {"name", "roles", "zone"},
		"Network": {"latency", "jitter", "loss"},
		"Step": {"at", "partition", "cut", "cut-one-way", "link", "link-one-way", "loss", "latency", "heal", "crash", "restart", "leave", "force-leave", "on",
			"down", "by",
			"join", "pause", "lease-store", "rights", "for", "nodes"},
		"StoreChange": {"slow", "restore"},
		"Singleton":   {"name", ",inline"},
		"Shards":      {"type", "count", ",inline", "reopened-after"},
		"SlotRules": {"role", "use-lease", "removal-margin", "hand-over-retry-interval", "number-of-retries", "lease-retry-interval",
			"stop-takes", "ends-after"},
		"Expect": {"survivors", "survivors-one-of", "survivor-count", "down", "lease-holder", "resolved-within", "decisions", "singletons", "shards"},
	}
	listed := map[string][]string{ // by unplayable or without
		"Cluster": {"detection"},
		"Step":    {"as", "state", "clock"},
	}
	for _, of := range []reflect.Type{
		reflect.TypeFor[scenario.Cluster](), reflect.TypeFor[scenario.Node](), reflect.TypeFor[scenario.Network](), reflect.TypeFor[scenario.Step](),
		reflect.TypeFor[scenario.StoreChange](), reflect.TypeFor[scenario.Expect](), reflect.TypeFor[scenario.Singleton](), reflect.TypeFor[scenario.Shards](),
		reflect.TypeFor[scenario.SlotRules](),
	} {
		var keys []string
		for f := range of.Fields() {
			keys = append(keys, f.Tag.Get("yaml"))
		}
		require.ElementsMatch(t, keys, slices.Concat(played[of.Name()], listed[of.Name()]), of.Name())
	}
}

// most is more than half of the plays of a file whose expectations were not met at first.
const most = 5

// again plays such a file until one outcome has come most often. Real goroutines are scheduled by chance that
// no seed decides, and who comes first, or how long it takes, is sometimes what only most plays come to: a
// file whose sides are two seconds apart has the other winner in one play of ten. Promises are not left to
// chance: they hold in every play.
func again(t *testing.T, s *scenario.Scenario, seed uint64, timed bool) (met, unmet int) {
	for unmet = 1; met < most && unmet < most; {
		o := play(t, s, seed+1000*uint64(met+unmet))
		require.NoError(t, o.err)
		require.Empty(t, o.broken)
		if len(o.unmet(s, timed)) > 0 {
			unmet++
		} else {
			met++
		}
	}
	return met, unmet
}

// The files that are named here exist, and the reasons are true of them.
func TestScenarios_ListsAreUpToDate(t *testing.T) {
	all := library(t)
	for name := range timed {
		require.Contains(t, all, name)
		require.Empty(t, all[name].Cluster.Detection.Profile, "%s: a file with Serf's own times can be held to what it expects", name)
	}
	for _, name := range short {
		require.Contains(t, all, name)
		require.Empty(t, unplayable(all[name]), name)
		require.Empty(t, promisesOnly(name), name)
	}
}
