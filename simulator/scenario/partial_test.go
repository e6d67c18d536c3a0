package scenario_test

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/cores"
	"github.com/serf-sbr/serf-sbr/internal/partial"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// Of a cut that is not clean nearly all stay up that can all reach each other, and never two that cannot (the
// promises S1 to S5 are checked in every run). SBR_PARTIAL=N plays N seeds of each shape instead of four,
// with up to 100 members; -v shows the table, beside it indirectly-connected: down.
func TestPartialCuts_NearlyAllStayThatCan(t *testing.T) {
	sizes, seeds := []int{5, 9}, 4
	if _, err := fmt.Sscan(os.Getenv("SBR_PARTIAL"), &seeds); err == nil {
		sizes = []int{5, 9, 20, 50, 100}
	}
	var up, possible int
	for _, n := range sizes {
		for shape := range partial.Shapes {
			kept, of, nobody := playPartial(t, shape, n, seeds, "keep-largest-group")
			before, _, nobodyBefore := playPartial(t, shape, n, seeds, "down")
			t.Logf("%3d members  %-10s %5d of %5d up, nobody in %d; with down: %5d, nobody in %d",
				n, partial.Shapes[shape].Name, kept, of, nobody, before, nobodyBefore)
			require.Zero(t, nobody, "%s of %d", partial.Shapes[shape].Name, n)
			up, possible = up+kept, possible+of
		}
	}
	require.GreaterOrEqual(t, float64(up), 0.97*float64(possible), "%d of %d", up, possible)
}

func playPartial(t *testing.T, shape, n, seeds int, rule string) (up, possible, nobody int) {
	t.Helper()
	var mu sync.Mutex
	cores.All(seeds, func(i int) {
		text, can := partial.File(shape, n, uint64(i+1), rule)
		s, err := scenario.Parse("partial.yaml", []byte(text))
		require.NoError(t, err)
		r := scenario.Judge(s, uint64(i+1))
		mu.Lock()
		defer mu.Unlock()
		if rule != "down" {
			for _, f := range r.Failures {
				t.Errorf("%s of %d, seed %d: %v", partial.Shapes[shape].Name, n, i+1, f)
			}
		}
		up, possible = up+len(r.Survivors), possible+can
		if len(r.Survivors) == 0 {
			nobody++
		}
	})
	return up, possible, nobody
}
