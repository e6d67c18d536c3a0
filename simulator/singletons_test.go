package simulator_test

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// resolvers are the promises of the resolvers alone. Other tests, and sbr explore, look for them.
var resolvers = regexp.MustCompile(`^(S[1-4]|L[1-3]|chain|token|stable|explained) `)

// slotTotals add up what became of the singletons or of the shards of many runs.
type slotTotals struct {
	scenario.Totals
	failed   int
	failures []string
}

func (a *slotTotals) add(r *scenario.Result, t *scenario.Totals) {
	a.Totals.Add(t)
	for i, f := range r.Failures {
		if i == 0 {
			a.failed++
		}
		if !resolvers.MatchString(f) {
			a.failures = append(a.failures, fmt.Sprintf("seed %d: %s", r.Seed, f))
		}
	}
}

// String is for people.
func (a *slotTotals) String() string {
	return fmt.Sprintf("in %d runs something is broken; %s; writes of an older run after a newer one %d, starts under a token that was no larger %d", a.failed,
		&a.Totals, a.Interleaved, a.Unordered)
}

// playSlots plays the random clusters of the seeds that the environment names, or of the first few, as far as they have what is looked for.
func playSlots(t *testing.T, variable string, few uint64, has func(s *scenario.Scenario) bool, totals func(s *scenario.Scenario, r *scenario.Result) scenario.Totals) (
	all slotTotals, seeds uint64) {
	t.Helper()
	from, to := uint64(1), few
	if text := os.Getenv(variable); text != "" {
		_, err := fmt.Sscanf(text, "%d-%d", &from, &to)
		require.NoError(t, err, "%s must be a range such as 1-100000", variable)
	} else if testing.Short() {
		to /= 10
	}
	var (
		mu   sync.Mutex
		wg   sync.WaitGroup
		next = from
	)
	take := func() (seed uint64, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1, next-1 <= to
	}
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed, ok := take(); ok; seed, ok = take() {
				s := simulator.Random(seed)
				if !has(s) {
					continue
				}
				r := scenario.Judge(s, seed)
				sum := totals(s, &r)
				mu.Lock()
				all.add(&r, &sum)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Logf("seeds %d-%d: %s", from, to, &all)
	return all, to - from
}

// leased fails a run in which an overlap with a lease was excused.
func leased(t *testing.T, seed uint64, lease bool, overlaps int) {
	t.Helper()
	if lease && overlaps > 0 {
		t.Errorf("seed %d: an overlap with a lease was excused", seed)
	}
}

// Random clusters with singletons keep the promises X1 to X6. SBR_SINGLETON_SEEDS=1-100000 plays more seeds; overlaps without a lease that are nobody's
// fault are counted and shown.
func TestRandom_SingletonsKeepTheirPromises(t *testing.T) {
	all, seeds := playSlots(t, "SBR_SINGLETON_SEEDS", 2000, func(s *scenario.Scenario) bool { return len(s.Cluster.Singletons) > 0 },
		func(s *scenario.Scenario, r *scenario.Result) scenario.Totals {
			for i, x := range r.Singletons {
				leased(t, r.Seed, bool(s.Cluster.Singletons[i].UseLease), x.Overlaps)
			}
			sum, _ := r.Totals(s)
			return sum
		})
	require.Empty(t, all.failures)
	if enough := uint64(1000); seeds > enough { // otherwise nothing of this need happen
		require.Greater(t, uint64(all.HandedOver), seeds/40)
		require.Greater(t, uint64(all.Rejected), seeds/200)
	}
}

// The builder says what a file says.
func TestScenario_Singleton(t *testing.T) {
	s := simulator.New("x").Singleton("backup", "{use-lease: on, removal-margin: 20s}").Singleton("report", "").
		At(40*time.Second, simulator.Leave("n1")).ExpectSingleton("backup", "n2").ExpectSingleton("report", "n2")
	simulator.Run(t, s, simulator.Seeds(1, 10))
	built, err := s.Build(1)
	require.NoError(t, err)
	text := string(scenario.Format(built))
	require.Contains(t, text, "singletons: [{name: backup, use-lease: on, removal-margin: 20s}, {name: report}]")
	require.Contains(t, text, "singletons: {backup: n2, report: n2}")
	_, err = simulator.New("x").Singleton("A B", "{margin: 3s}").Build(1)
	require.ErrorContains(t, err, "margin")
}
