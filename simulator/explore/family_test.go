package explore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// Walks that cover each other are alike: when both are made, they have as many states, edges and rests. And
// some do not cover each other, because the strategy or the resolvers can tell the names apart.
func TestFamily_CoveredWalksAreAlike(t *testing.T) {
	if testing.Short() {
		t.Skip("makes every walk twice: run without -short")
	}
	plans := []Exhaustive{
		{Members: 3, Faults: Faults{Lost: 1, Crashes: 1}},
		{Members: 3, Faults: Faults{Lost: 1}, Watch: true, NoStore: 1},
		{Members: 4, Faults: Faults{Crashes: 1}},
		{Members: 4, Faults: Faults{Lost: 1}},
	}
	if *deep {
		plans = append(plans, Exhaustive{Members: 4, Faults: Faults{Lost: 1, Crashes: 1}},
			Exhaustive{Members: 4, Faults: Faults{Lost: 1, Crashes: 1}, Watch: true})
	}
	for _, e := range plans {
		e.Resolver, e.Strategy = sbr.DefaultConfig(),
			strategies.LeaseMajority{AcquireLeaseDelayForMinority: 2 * time.Second}
		families, err := e.Plan()
		require.NoError(t, err)
		covered, told := 0, 0
		for _, f := range families {
			var results []WalkResult
			var notes []*walkNotes
			for _, o := range f.Walks {
				w := newWalker(o)
				asked := newWalkNotes(o.Strategy)
				asked.looks, w.Strategy = &w.looks, asked
				results, notes = append(results, w.search.Run(t.Context())), append(notes, asked)
			}
			for k := range f.Walks {
				for i := range f.Walks {
					if notes[i].covers(&f.Walks[i], &f.Walks[k]) {
						covered++
						require.Equal(t, results[i].States, results[k].States, "%s: %v and %v", f.Form, f.Walks[i].Sides,
							f.Walks[k].Sides)
						require.Equal(t, results[i].Edges, results[k].Edges)
						require.Equal(t, results[i].Rests, results[k].Rests)
					} else {
						told++
					}
				}
			}
		}
		require.Positive(t, covered)
		t.Logf("%d members: %d pairs alike, %d not", e.Members, covered, told)
	}
}

// A member that takes a member of the other side for one of its own is seen by the order of their addresses,
// so nothing is covered then: keep-majority is broken in the cut n1 n3 | n2, in which n2 leads the members
// that it takes for its side, and not in n1 n2 | n3.
func TestFamily_NothingIsCoveredWhereMembersNoticeOneByOne(t *testing.T) {
	e := Exhaustive{Members: 3, Faults: Faults{Lost: 1}, LateCut: true, Resolver: sbr.DefaultConfig(),
		Strategy: strategies.KeepMajority{}}
	families, err := e.Plan()
	require.NoError(t, err)
	broken := make(map[string]bool)
	for _, f := range families {
		r := f.Run(t.Context())
		require.Zero(t, r.Covered)
		for _, v := range r.Broken {
			require.Equal(t, "S1", v.Promise)
			require.NotEmpty(t, v.Steps)
			broken[v.Cluster] = true
		}
	}
	require.True(t, broken["n1 n3 | n2"])
	require.False(t, broken["n1 n2 | n3"])
}

// The smaller side waits before it asks, so it notices earlier where both are to ask at the same moment.
func TestPlan_OrdersAreThoseOfDeciding(t *testing.T) {
	s2 := strategies.LeaseMajority{AcquireLeaseDelayForMinority: 2 * time.Second}
	e := Exhaustive{Members: 3, Resolver: sbr.DefaultConfig(), Strategy: s2}
	families, err := e.Plan()
	require.NoError(t, err)
	noticed := make(map[string][]time.Duration)
	for _, f := range families {
		for _, w := range f.Walks {
			if Partition(w.Sides).String() == "n1 n2 | n3" {
				noticed[f.Form] = w.Noticed
			}
		}
	}
	const s = time.Second
	require.Equal(t, map[string][]time.Duration{
		"2+1": {2 * s, 0}, "2>1 2s": {0, 0}, "1>2 2s": {4 * s, 0}, "2>1 1m15s": {0, 73 * s}, "1>2 1m15s": {77 * s, 0},
	}, noticed)
}

// A plan that cannot be is refused.
func TestPlan_Refuses(t *testing.T) {
	good := Exhaustive{Members: 3, Resolver: sbr.DefaultConfig(), Strategy: strategies.DownAll{}}
	_, err := good.Plan()
	require.NoError(t, err)
	for says, spoil := range map[string]func(*Exhaustive){
		"1 members: it must be a number from 2 to 8":                   func(e *Exhaustive) { e.Members = 1 },
		"9 members: it must be":                                        func(e *Exhaustive) { e.Members = MaxMembers + 1 },
		"-1 lost: it must be a number from 0 to 9":                     func(e *Exhaustive) { e.Lost = -1 },
		"4 members without the store: it must be a number from 0 to 3": func(e *Exhaustive) { e.NoStore = 4 },
		"stable-after is auto":                                         func(e *Exhaustive) { e.Resolver.StableAfter = -1 },
	} {
		bad := good
		spoil(&bad)
		_, err := bad.Plan()
		require.ErrorContains(t, err, says)
	}
}
