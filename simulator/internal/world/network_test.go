package world

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// The components are those that a search over all links finds.
func TestNetwork_ComponentsWithCuts(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := network{cut: make(map[[2]int]bool)}
		for range 2 + rng.IntN(12) {
			n.group = append(n.group, rng.IntN(2))
		}
		for range rng.IntN(4 * len(n.group)) {
			n.cut[[2]int{rng.IntN(len(n.group)), rng.IntN(len(n.group))}] = true
		}
		for a := range n.group {
			reached := reach(&n, a)
			for b := range n.group {
				require.Equal(t, reached[b], n.connected(a, b), "seed %d: %d and %d", seed, a, b)
			}
		}
	}
}

func reach(n *network, a int) map[int]bool {
	reached := map[int]bool{a: true}
	for todo := []int{a}; len(todo) > 0; {
		x := todo[0]
		todo = todo[1:]
		for y := range n.group {
			if !reached[y] && n.direct(x, y) {
				reached[y] = true
				todo = append(todo, y)
			}
		}
	}
	return reached
}

// What two members report of each other has spread to all that hear them by the time a member decides.
func TestReports_HaveSpreadWhenSomebodyDecides(t *testing.T) {
	w, err := New(large(1, 5))
	require.NoError(t, err)
	w.At(10*time.Second, func() { w.Cut(0, 1, true) })
	w.Run(20 * time.Second)
	for _, p := range w.procs {
		require.Equal(t, []sbr.Report{{Observer: "n1#1", Subject: "n2#1"}, {Observer: "n2#1", Subject: "n1#1"}},
			p.tracker.Form(p.clock(), false).Reports, "%s", p.id)
	}
	w.Run(time.Minute)
	d, ok := w.Nodes()[2].Decision()
	require.True(t, ok)
	require.Equal(t, sbr.AcquireLeaseAndDownIndirectlyConnected, d.Kind)
	require.Equal(t, []string{"n1", "n2"}, w.Down())
	require.Empty(t, w.Finish())
}

// No member hears a report from the other side of a cut.
func TestReports_AreThoseOfOnesOwnSide(t *testing.T) {
	w, err := New(large(1, 5))
	require.NoError(t, err)
	w.At(10*time.Second, func() { w.Partition([]int{0, 1}, []int{2, 3, 4}) })
	w.Run(21 * time.Second)
	for i, p := range w.procs {
		reports := p.tracker.Form(p.clock(), false).Reports
		require.Len(t, reports, 6, "%s", p.id)
		for _, r := range reports {
			require.Equal(t, i < 2, r.Observer == "n1#1" || r.Observer == "n2#1", "%s hears %v", p.id, r)
		}
	}
}
