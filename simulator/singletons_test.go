package simulator_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// resolvers are the promises of the resolvers alone. Other tests, and sbr explore, look for them.
var resolvers = regexp.MustCompile(`^(S[1-4]|L[1-3]|chain|token|stable|explained) `)

// singletonTotals add up what became of the singletons of many runs.
type singletonTotals struct {
	runs, failed, slots, leases, starts, handedOver, overlaps, writes, rejected, interleaved, unordered int
	why                                                                                                 map[string]int
	failures                                                                                            []string
}

func (a *singletonTotals) add(s *scenario.Scenario, r *scenario.Result) {
	a.runs++
	for i, f := range r.Failures {
		if i == 0 {
			a.failed++
		}
		if !resolvers.MatchString(f) {
			a.failures = append(a.failures, fmt.Sprintf("seed %d: %s", r.Seed, f))
		}
	}
	for i, x := range r.Singletons {
		a.slots++
		if s.Cluster.Singletons[i].UseLease {
			a.leases++
			if x.Overlaps > 0 {
				a.failures = append(a.failures, fmt.Sprintf("seed %d: an overlap with a lease was excused", r.Seed))
			}
		}
		a.starts += x.Starts
		a.handedOver += x.HandedOver
		a.overlaps += x.Overlaps
		a.writes += x.Writes
		a.rejected += x.Rejected
		a.interleaved += x.Interleaved
		a.unordered += x.Unordered
		for why, n := range x.Why {
			a.why[why] += n
		}
	}
}

// String is for people.
func (a *singletonTotals) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d runs, in %d of which something is broken; %d singletons, %d of them with a lease; %d runs of theirs, %d handed over; %d writes, %d from an older run after a newer one, %d rejected; ",
		a.runs, a.failed, a.slots, a.leases, a.starts, a.handedOver, a.writes, a.interleaved, a.rejected)
	fmt.Fprintf(&b, "%d starts with a token that was no larger, %d overlaps, all without a lease", a.unordered, a.overlaps)
	for _, why := range slices.Sorted(maps.Keys(a.why)) {
		fmt.Fprintf(&b, "\n    %d: %s", a.why[why], why)
	}
	return b.String()
}

// Random clusters with singletons keep the promises X1 to X6. SBR_SINGLETON_SEEDS=1-100000 plays more seeds; overlaps without a lease that are nobody's
// fault are counted and shown.
func TestRandom_SingletonsKeepTheirPromises(t *testing.T) {
	from, to := uint64(1), uint64(2000)
	if text := os.Getenv("SBR_SINGLETON_SEEDS"); text != "" {
		_, err := fmt.Sscanf(text, "%d-%d", &from, &to)
		require.NoError(t, err, "SBR_SINGLETON_SEEDS must be a range such as 1-100000")
	} else if testing.Short() {
		to /= 10
	}
	var (
		mu   sync.Mutex
		wg   sync.WaitGroup
		next = from
		all  = singletonTotals{why: make(map[string]int)}
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
				if len(s.Cluster.Singletons) == 0 {
					continue
				}
				r := scenario.Judge(s, seed)
				mu.Lock()
				all.add(s, &r)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Logf("seeds %d-%d: %s", from, to, &all)
	require.Empty(t, all.failures)
	if enough := uint64(1000); to-from > enough { // otherwise nothing of this need happen
		require.Greater(t, all.handedOver, int(to-from)/40)
		require.Greater(t, all.rejected, int(to-from)/200)
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
