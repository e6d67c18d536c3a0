package sbr

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// 3,000 random graphs of up to 13 members against every set there is: the best one, and of equal ones the one
// with the lowest addresses.
func TestLargestGroup_IsTheBestOfAllSets(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		n, density := 1+r.IntN(13), r.Float64()
		g := graph{near: make([]bitset, n)}
		for i := range n {
			g.counted = append(g.counted, r.Float64() < 0.7)
			for j := range i {
				if r.Float64() < density {
					g.join(i, j)
				}
			}
		}
		got, exact := g.independent()
		require.True(t, exact)
		require.Equal(t, bestOfAll(&g), got, "seed %d: %d members, density %.2f", seed, n, density)
	}
}

// bestOfAll tries every set.
func bestOfAll(g *graph) bitset {
	n, best, worth := len(g.near), newBitset(len(g.near)), -1
	// the first member is the highest bit, so the lowest addresses come first
	for mask := 1<<n - 1; mask >= 0; mask-- {
		set, weight, independent := newBitset(n), 0, true
		for i := range n {
			if mask&(1<<(n-1-i)) == 0 {
				continue
			}
			for j := range g.near[i].each {
				independent = independent && !set.has(j)
			}
			set.set(i)
			if weight++; g.counted[i] {
				weight += n
			}
		}
		if independent && weight > worth {
			best, worth = set, weight
		}
	}
	return best
}

// The search ends where the graph is too hard to be searched to the end, with a set that has no edge in it.
func TestLargestGroup_GivesUpByCount(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	g := graph{near: make([]bitset, 400), counted: make([]bool, 400)}
	for i := range g.near {
		for j := range i {
			if r.Float64() < 0.1 {
				g.join(i, j)
			}
		}
	}
	keep, exact := g.independent()
	require.False(t, exact)
	size := 0
	for i := range keep.each {
		size++
		for j := range g.near[i].each {
			require.False(t, keep.has(j), "%d and %d do not reach each other", i, j)
		}
	}
	require.Greater(t, size, 30)
}

func BenchmarkLargestGroup(b *testing.B) {
	for _, n := range []int{20, 50, 80, 128} {
		for _, density := range []float64{0.05, 0.1, 0.3, 0.5} {
			b.Run(fmt.Sprintf("members=%d/density=%v", n, density), func(b *testing.B) {
				r := rand.New(rand.NewPCG(uint64(n), 1))
				g := graph{near: make([]bitset, n), counted: make([]bool, n)}
				for i := range n {
					for j := range i {
						if r.Float64() < density {
							g.join(i, j)
						}
					}
				}
				for b.Loop() {
					g.independent()
				}
			})
		}
	}
}
