package strategies_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// While nobody is unreachable a decision costs one small allocation, for the copy of the view's header that the strategy is given,
// however large the cluster is. What grows with the cluster is only the list of those who go down.
func TestDecide_AllocatesNothingThatGrowsWhileNobodyIsUnreachable(t *testing.T) {
	for _, n := range []int{1, 10, 1000, 10000} {
		v := large(n, false)
		for _, s := range benchmarked(n) {
			t.Run(s.name, func(t *testing.T) {
				allocs := testing.AllocsPerRun(20, func() { decision = sbr.Decide(s.strategy, &v, 0.5) })
				require.Equal(t, sbr.None, decision.Final)
				require.LessOrEqual(t, allocs, 1.0, "%d members", n)
			})
		}
	}
}

// A clean cut: the list of those who go down, the reason, and nothing for each member.
func TestDecide_AllocatesFewTimesForACleanCut(t *testing.T) {
	for _, n := range []int{10, 1000, 10000} {
		v := large(n, true)
		for _, s := range benchmarked(n) {
			t.Run(s.name, func(t *testing.T) {
				allocs := testing.AllocsPerRun(20, func() { decision = sbr.Decide(s.strategy, &v, 0.5) })
				require.NotEmpty(t, decision.Down)
				require.LessOrEqual(t, allocs, 20.0, "%d members", n)
			})
		}
	}
}
