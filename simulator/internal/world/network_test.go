package world

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
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
