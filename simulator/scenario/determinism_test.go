package scenario

import (
	"maps"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/race"
)

// one is one run: a file of the library and a seed.
type one struct {
	file string
	seed uint64
}

// pairs are at least a hundred runs, and one of each file.
func pairs(all map[string]*Scenario) (runs []one) {
	files := slices.Sorted(maps.Keys(all))
	for seed := uint64(1); len(runs) < max(100, len(files)); seed++ {
		for _, f := range files {
			if seed == 1 || len(all[f].Names().Nodes) <= 50 {
				runs = append(runs, one{f, seed})
			}
		}
	}
	return runs
}

// Same file, same seed, same hash: twice each on one processor and on two, several runs at once in one
// process, in any time zone.
func TestDeterminism_SameSeedSameTrace(t *testing.T) {
	all := library(t)
	runs := pairs(all)
	require.GreaterOrEqual(t, len(runs), 100)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	defer func(l *time.Location) { time.Local = l }(time.Local)
	seen := make(map[one]string)
	for _, cores := range []int{1, 2} {
		runtime.GOMAXPROCS(cores)
		time.Local = time.FixedZone("far", cores*5*3600)
		for again := range 2 {
			play := runs
			if race.Enabled && again == 1 {
				play = slices.DeleteFunc(slices.Clone(runs),
					func(r one) bool { return len(all[r.file].Names().Nodes) > 50 })
			}
			judge := Judge
			if again == 1 {
				judge = Run // which records
			}
			for run, hash := range together(all, play, judge) {
				first, ok := seen[run]
				if !ok {
					seen[run], first = hash, hash
				}
				require.Equal(t, first, hash, "%v on %d processors, time %d", run, cores, again+1)
			}
		}
	}
	require.Len(t, seen, len(runs))
	distinct := slices.Compact(slices.Sorted(maps.Values(seen)))
	require.Greater(t, len(distinct), len(runs)*9/10, "the hash tells runs apart")
}

// together plays the runs in several goroutines.
func together(all map[string]*Scenario, runs []one, judge func(*Scenario, uint64) Result) map[one]string {
	var mu sync.Mutex
	var wg sync.WaitGroup
	hashes, next := make(map[one]string), 0
	for range 4 {
		wg.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			for next < len(runs) {
				run := runs[next]
				next++
				mu.Unlock()
				hash := judge(all[run.file], run.seed).TraceHash
				mu.Lock()
				hashes[run] = hash
			}
		})
	}
	wg.Wait()
	return hashes
}
