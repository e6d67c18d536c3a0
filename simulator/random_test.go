package simulator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// Every seed gives a scenario that validates, is the same each time, differs from all others, and is the same
// after it was a file. Everything that a file can say is said now and then.
func TestRandom_SaysEverythingInAFile(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 2,000 files: run without -short")
	}
	const seeds = 1000
	different, said := make(map[string]bool), make(map[string]int)
	least := map[string]int{
		"nodes: 2": 50, "nodes: 3": 50, "nodes: 5": 30, "nodes: 9": 5, "zone: zone-a": 100, "roles: ": 100, "detection: serf-": 50, "reap-after: ": 200,
		"when-lease-unknown: suspend": 100, "watch: off": 100, "probe: {neighbours: 0": 50, "down-all-when-unstable: off": 100, "down-all-when-unstable: ": 150,
		"min-members: ": 50, "singletons:": 500, "shards:": 350, "use-lease: on": 300, "ends-after: ": 200, "reopened-after: ": 50, "count: 1": 20,
		" partition: ": 500, "[zone-a]": 20, " cut: ": 100, " cut-one-way: ": 20, " heal: ": 500, " crash: ": 100, " restart: ": 200, " leave: ": 50, " join: ": 50,
		" pause: ": 50, " clock: ": 100, " force-leave: ": 300, " on: [": 100, " as: ": 50, " state: lost": 50, " rights: none": 40, " link: ": 40, " down: n": 300,
		"lease-store: down": 50, "lease-store: lose-requests": 50, "lease-store: lose-responses": 50, "lease-store: conflict": 50, "{slow: ": 50,
		"lease-store: forget": 20, "{restore: ": 20,
	}
	for seed := range uint64(seeds) {
		s := simulator.Random(seed)
		require.NoError(t, s.Validate())
		text := string(scenario.Format(s))
		require.Equal(t, text, string(scenario.Format(simulator.Random(seed))))
		first, body, _ := strings.Cut(text, "\n")
		require.Equal(t, fmt.Sprintf("name: random %d", seed), first)
		different[body] = true
		for what := range least {
			if strings.Contains(body, what) {
				said[what]++
			}
		}
		again, err := scenario.Parse("x.yaml", []byte(text))
		require.NoError(t, err)
		require.Equal(t, text, string(scenario.Format(again)))
		if seed%20 == 0 {
			require.Equal(t, scenario.Judge(s, seed), scenario.Judge(again, seed))
		}
	}
	require.Len(t, different, seeds, "each seed is another one")
	for what, n := range least {
		require.GreaterOrEqual(t, said[what], n, "%q in %d of %d", what, said[what], seeds)
	}
}

// Most runs come to a decision, many leave survivors, and when they end nothing more would happen.
func TestRandom_ThingsHappen(t *testing.T) {
	seeds := 300
	if testing.Short() {
		seeds /= 5
	}
	var decided, left, again int
	var virtual time.Duration
	for seed := range uint64(seeds) {
		s := simulator.Random(seed)
		r := scenario.Judge(s, seed)
		virtual += s.RunFor
		longer := *s
		longer.RunFor += 20 * time.Minute
		l := scenario.Judge(&longer, seed)
		require.Equal(t, r.Survivors, l.Survivors, "seed %d", seed)
		require.Equal(t, r.Down, l.Down, "seed %d", seed)
		if len(r.Down) > 0 {
			decided++
			if len(r.Survivors) > 0 {
				left++
			}
		}
		if len(s.Steps) > 8 {
			again++
		}
	}
	require.Greater(t, decided, seeds/2)
	require.Greater(t, left, seeds/3)
	require.Greater(t, again, seeds/4)
	require.Less(t, virtual, time.Duration(seeds)*30*time.Minute)
}

func BenchmarkRandom(b *testing.B) {
	for seed := uint64(1); b.Loop(); seed++ {
		simulator.Random(seed)
	}
}
