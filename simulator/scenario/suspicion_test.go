package scenario

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/serf-sbr/serf-sbr/sbr/timing"
)

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// first and last of one side, over all its members.
func spanOf(side, others int, times func(member, other int) time.Duration) (first, last time.Duration) {
	first = math.MaxInt64
	for i := range side {
		for x := range others {
			first, last = min(first, times(i, x)), max(last, times(i, x))
		}
	}
	return first, last
}

// A lone node has nobody to confirm its suspicions: each lasts SuspicionMax. It probes one member after the other, and each failure
// slows it down: by the three that it asked in vain, then by those that are left, until Lifeguard's limit.
func TestCut_LoneNode(t *testing.T) {
	for seed := range uint64(50) {
		first, last := spanOf(1, 4, newCut(gossipOf("lan"), seeded(seed), 5, 1, 4).run())
		require.GreaterOrEqual(t, first, 25*time.Second, "a probe of 1 s, a suspicion of 24 s")
		require.LessOrEqual(t, first, 26*time.Second, "after at most another second")
		require.GreaterOrEqual(t, last, (1+4+6+7+24)*time.Second, "probes of 1, 4, 6 and 7 s")
		require.LessOrEqual(t, last, (1+1+4+6+7+3*8+24)*time.Second, "those whom it suspects already come first again")
	}
}

// Where too few members exist to confirm a suspicion, nobody waits for that.
func TestCut_TooFewToConfirm(t *testing.T) {
	for seed := range uint64(50) {
		first, _ := spanOf(1, 2, newCut(gossipOf("lan"), seeded(seed), 3, 1, 2).run())
		require.LessOrEqual(t, first, 6*time.Second)
	}
}

// Two members confirm each other's suspicions once, which is one confirmation of two: 24 s - 0.63 * 20 s.
func TestCut_OneConfirmation(t *testing.T) {
	c := newCut(gossipOf("lan"), seeded(1), 5, 2, 3)
	require.Equal(t, 24*time.Second, c.lasts(0))
	require.InDelta(t, 11.38, c.lasts(1).Seconds(), 0.01)
	require.Equal(t, 4*time.Second, c.lasts(2))
}

// A peer that was asked to probe as well sends its nack after a second time-out. At first that is too late with Serf's LAN settings, so a
// healthy node doubts itself as much as a lone one; a node that takes longer hears from those on its side.
func TestCut_NacksThatComeTooLate(t *testing.T) {
	score := func(profile string, took time.Duration) int {
		c := newCut(gossipOf(profile), seeded(1), 5, 3, 2)
		c.members[0].order, c.members[0].next = []int{1}, 0 // then it probes the other one, which says nothing more
		c.failed(took, 0, 0, took)
		return c.members[0].score
	}
	require.Equal(t, 3, score("lan", time.Second), "two peers of its own and one across the cut")
	require.Equal(t, 1, score("lan", 2*time.Second), "the one across the cut")
	require.Equal(t, 3, score("wan", 5*time.Second))
	require.Equal(t, 1, score("wan", 10*time.Second))
	require.LessOrEqual(t, score("local", time.Second), 1, "only one is asked there, in good time")
}

// Where a side is taken to be of one mind that makes no difference: played mind by mind, the times are nearly the same.
func TestCut_CrowdIsLikeManyMinds(t *testing.T) {
	for _, tc := range []struct{ n, side, others int }{{20, 19, 1}, {24, 16, 8}, {30, 20, 10}, {60, 40, 20}} {
		t.Run(fmt.Sprintf("%d-%d of %d", tc.side, tc.others, tc.n), func(t *testing.T) {
			mean := func(crowd bool) (sum float64) {
				const runs = 200
				for seed := range uint64(runs) {
					c := startCut(gossipOf("lan"), seeded(seed), tc.n, tc.side, tc.others, crowd)
					_, last := spanOf(tc.side, tc.others, c.run())
					sum += last.Seconds() / runs
				}
				return sum
			}
			require.True(t, newCut(gossipOf("lan"), seeded(1), tc.n, tc.side, tc.others).crowd)
			require.InEpsilon(t, mean(false), mean(true), 0.15)
		})
	}
}

// No time lies outside of the bounds that package timing computes, but for what those leave to chance on a side of several members.
func TestCut_KeepsTheBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		profile := rapid.SampledFrom(timing.Profiles()).Draw(t, "profile")
		side, others := rapid.IntRange(1, 20).Draw(t, "side"), rapid.IntRange(1, 20).Draw(t, "others")
		g := gossipOf(profile)
		first, last := spanOf(side, others, newCut(g, seeded(rapid.Uint64().Draw(t, "seed")), side+others, side, others).run())
		bound := g.Detection(side, side+others)
		if first < bound.Fastest {
			t.Fatalf("%v is quicker than %v", first, bound.Fastest)
		}
		if side == 1 && last > bound.Worst {
			t.Fatalf("%v is slower than %v", last, bound.Worst)
		}
	})
}

func BenchmarkCut(b *testing.B) {
	for _, tc := range [][2]int{{3, 2}, {1, 9}, {10, 10}, {100, 100}} {
		b.Run(fmt.Sprintf("%d-%d", tc[0], tc[1]), func(b *testing.B) {
			for seed := uint64(0); b.Loop(); seed++ {
				newCut(gossipOf("lan"), seeded(seed), tc[0]+tc[1], tc[0], tc[1]).run()
			}
		})
	}
}
