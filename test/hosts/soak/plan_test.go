//go:build linux

package main

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr/timing"
)

// A round is played again by its seed and number, so nothing else may go into its plan.
func TestNewPlan_FollowsFromSeedAndRound(t *testing.T) {
	text := func(p plan) string {
		raw, err := json.Marshal(p)
		require.NoError(t, err)
		return string(raw)
	}
	seen := make(map[string]bool)
	for round := range 200 {
		first := text(newPlan(7, round))
		require.Equal(t, first, text(newPlan(7, round)))
		require.NotEqual(t, first, text(newPlan(8, round)))
		seen[first] = true
	}
	require.Len(t, seen, 200)
}

// What a seed means must not change unnoticed: numbers of failed rounds are in reports.
func TestNewPlan_OfToday(t *testing.T) {
	for round, want := range []string{
		"module: loss 35 % at n4 + SIGSTOP sbr n4 at 5.4s",
		"module: halves n2 n3 n5 | n1 n4 + SIGSTOP serf n1 at 1.6s",
		"module: halves n2 n3 n5 | n1 n4 + store cut off for some n1 n2 n4 at 0s + healed in the race at 6.8s",
		"debian: one-way n3>n4 n1>n4 n5>n4 n2>n4 + SIGSTOP serf n3 n5 at 6.1s",
	} {
		p := newPlan(1, round+1)
		require.Equal(t, want, string(p.Mode)+": "+p.String())
	}
}

func TestNewPlan_IsSound(t *testing.T) {
	count := make(map[any]int)
	for round := range 5000 {
		p := newPlan(1, round)
		count[p.Mode]++
		count[p.Shape]++
		require.Equal(t, p.Shape.clean(), p.Lasts == 0, "only what makes sides is left until it is resolved")
		if p.Shape != oneWay && p.Shape != loss {
			for _, h := range hosts {
				require.True(t, slices.ContainsFunc(p.Sides, func(s []string) bool { return slices.Contains(s, h) }),
					"%s is in a side", h)
			}
		}
		kinds := make(map[kind]bool)
		for i, f := range p.Faults {
			count[f.Kind]++
			require.False(t, kinds[f.Kind], "a kind twice")
			kinds[f.Kind] = true
			require.True(t, i == 0 || p.Faults[i-1].At <= f.At, "in order")
			require.LessOrEqual(t, time.Duration(f.At), 9*time.Second)
			if p.Mode == ownMode {
				require.NotContains(t, []target{agent, serf}, f.Target)
			}
		}
		if p.ContinueEarly {
			for _, h := range p.hit(pause) {
				require.False(t, p.cutOffFromStore(h), "who wakes cut off from the store waits for a heal")
			}
		}
	}
	for _, k := range []any{
		moduleMode, debianMode, ownMode, halves, lone, threeWay, isolated, bridge, oneWay, flapping, loss,
		storeSome, storeSide, storeAll, pause, kill, storeKilled, storePaused, healEarly, secondCut,
	} {
		require.Greater(t, count[k], 150, k)
	}
}

func TestNobodyAllowed(t *testing.T) {
	cut := [][]string{{"n1", "n2", "n3"}, {"n4", "n5"}}
	for _, tc := range []struct {
		name string
		p    plan
		want string
	}{
		{"a clean cut", plan{Shape: halves, Sides: cut}, ""},
		{"a side without the store", plan{Shape: halves, Sides: cut, Faults: []fault{{Kind: storeSide, Hosts: cut[0]}}}, ""},
		{"nobody has the store", plan{Shape: halves, Sides: cut, Faults: []fault{{Kind: storeAll, Hosts: hosts}}}, "cut off from everyone"},
		{"etcd stands still", plan{Shape: halves, Sides: cut, Faults: []fault{{Kind: storePaused}}}, "does not answer"},
		{"unrest", plan{Shape: flapping, Sides: cut}, "unrest"},
		{"one is killed", plan{Shape: halves, Sides: cut, Faults: []fault{{Kind: kill, Hosts: []string{"n4"}}}}, ""},
		{"a side stands still and goes on", plan{Shape: halves, Sides: cut, Faults: []fault{{Kind: pause, Hosts: cut[1], Target: agent}}}, ""},
		{"a node of its own stands still", plan{Mode: ownMode, Shape: halves, Sides: cut, Faults: []fault{{Kind: pause, Hosts: cut[1], Target: both}}}, ""},
		{"a side loses its agents", plan{Shape: halves, Sides: cut, Faults: []fault{{Kind: pause, Hosts: cut[1], Target: serf}}}, "a whole side"},
		{"the second cut makes a small side", plan{Shape: halves, Sides: cut, Faults: []fault{
			{Kind: kill, Hosts: []string{"n1"}}, {Kind: secondCut, Sides: [][]string{{"n1", "n4", "n5"}, {"n2", "n3"}}},
		}}, "a whole side"},
		{"the only one with the store is killed", plan{Shape: halves, Sides: cut, Faults: []fault{
			{Kind: kill, Hosts: []string{"n1"}}, {Kind: storeSome, Hosts: []string{"n2", "n3", "n4", "n5"}},
		}}, "nobody who could reach"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.want == "" {
				require.Empty(t, tc.p.nobodyAllowed())
				return
			}
			require.Contains(t, tc.p.nobodyAllowed(), tc.want)
		})
	}
}

func TestSharper(t *testing.T) {
	cut := [][]string{{"n1", "n2", "n3"}, {"n4", "n5"}}
	second := func(sides ...[]string) []fault { return []fault{{Kind: secondCut, Sides: sides}} }
	same := plan{Shape: halves, Sides: cut, Faults: second(cut[1], cut[0])}
	require.False(t, same.sharper())
	other := plan{Shape: halves, Sides: cut, Faults: second([]string{"n1", "n2", "n3", "n4"}, []string{"n5"})}
	require.True(t, other.sharper())
	require.ElementsMatch(t, [][]string{{"n1", "n2", "n3"}, {"n4"}, {"n5"}}, other.sides())
}

func TestLate(t *testing.T) {
	bounds := timing.DoubleActive{Asking: 3 * time.Second, CutOff: 10 * time.Second}
	all := []activity{
		{Member: "n1", Class: reaches, Seconds: 3}, {Member: "n2", Class: reaches, Seconds: 3.1}, {Member: "n3", Class: cutOff, Seconds: 10.1},
		{Member: "n4", Class: cutOff, Seconds: 9.9}, {Member: "n5", Class: stoodStill, Seconds: 60},
	}
	clean := plan{Shape: halves}
	errs := clean.late(all, bounds)
	require.Len(t, errs, 2)
	require.ErrorContains(t, errs[0], "n2 (reaches the store) was at work for 3.1 s")
	require.ErrorContains(t, errs[1], "n3 (cut off from the store) was at work for 10.1 s")
	for _, p := range []plan{{Shape: bridge}, {Shape: halves, Faults: []fault{{Kind: pause}}},
		{Shape: lone, Faults: []fault{{Kind: secondCut}}}} {
		require.Empty(t, p.late(all, bounds), "nothing is computed for that")
	}
}
