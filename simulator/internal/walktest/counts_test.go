package walktest_test

import (
	"testing"

	"github.com/serf-sbr/serf-sbr/simulator/internal/walktest"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walktest/shards"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walktest/slots"
)

// counts are the states, edges and starts of a walk.
type counts [3]int

// Small walks, in which everything happens that may, find as many states as ever. What the model, the cluster
// or the packets do otherwise changes that, as do states that are told apart no more, or for no reason.
func TestWalks_FindAsMuchAsEver(t *testing.T) {
	for _, c := range []struct {
		list         string
		lease        bool
		slot, shards counts
	}{
		{"two, a cut, a late message", false, counts{865, 1800, 91}, counts{2741, 4931, 237}},
		{"two, a crash, a lost message", false, counts{87, 125, 3}, counts{128, 171, 9}},
		{"two, a pause, a message twice", false, counts{1844, 3963, 166}, counts{8319, 19128, 629}},
		{"two, a leave, a slow end", false, counts{323, 637, 93}, counts{2782, 7560, 1083}},
		{"three, a crash, a removal", false, counts{1297, 2461, 64}, counts{3754, 6766, 163}},
		{"three, a cut", false, counts{9130, 23986, 273}, counts{18777, 44963, 425}},
		{"two, a resignation, a return", false, counts{452, 780, 126}, counts{1527, 3813, 657}},
		{"two, forming, an end", false, counts{97, 138, 30}, counts{43, 60, 10}},
		{"three, forming, a newcomer", false, counts{164, 335, 18}, counts{428, 876, 21}},
		{"three, an old newcomer", false, counts{218, 375, 18}, counts{36, 56, 1}},
		{"two, a lost lease, a silent store", true, counts{13, 12, 3}, counts{38, 47, 6}},
		{"two, a stranger, a crash", true, counts{96, 167, 3}, counts{425, 645, 91}},
		{"two, a pause", true, counts{990, 1876, 86}, counts{3615, 7687, 816}},
	} {
		for name, w := range map[string]struct {
			walk walktest.Walk
			want counts
		}{"slot": {slots.Walk, c.slot}, "shards": {shards.Walk, c.shards}} {
			t.Run(name+": "+c.list, func(t *testing.T) {
				t.Parallel()
				r := w.walk(t.Context(), walktest.Plan(c.lease, c.list)[0])
				if got := (counts{r.States, r.Edges, r.Starts}); !r.Complete || len(r.Broken) > 0 || got != w.want {
					t.Errorf("%v, complete: %v, broken: %v; as ever would be %v", got, r.Complete, r.Broken, w.want)
				}
			})
		}
	}
}
