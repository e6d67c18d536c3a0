//go:build linux

package main

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/ledger"
	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
)

func checkFarewells(t *testing.T, p *plan, _ map[any]int) {
	s := p.Single
	require.Empty(t, p.Faults, "nothing goes wrong")
	require.False(t, p.alone(), "there is no fault to which a bound belongs")
	require.Equal(t, s.Farewells[0].Host, p.victim())
	require.Zero(t, s.Farewells[0].At, "times count from the first one")
	require.Equal(t, s.Scene.single(), len(s.Farewells) == 1)
	away := 0
	var names []string
	for _, f := range s.Farewells {
		require.LessOrEqual(t, f.At, span(1200*time.Millisecond))
		names = append(names, f.Host)
		if f.Leaves {
			away++
		}
	}
	require.Len(t, slices.Compact(sorted(names)), len(names), "each host once")
	require.LessOrEqual(t, away, 2, "those that are left are a cluster")
}

func TestPlannedPlan_IsAimedAtTheHolder(t *testing.T) {
	p := plan{Shape: whole, Single: &singlePlan{Guard: cluster.ByMembers, Scene: chaseScene,
		Farewells: []farewell{{Host: "n2"}, {Host: "n4", At: span(30 * time.Millisecond)}}}}
	q := p
	q.swap(q.victim(), "n4")
	require.Equal(t, "no cut; members, stop n4 at 0s + stop n2 at 30ms", q.String())
	require.Equal(t, "no cut; members, stop n2 at 0s + stop n4 at 30ms", p.String(),
		"the plan that was drawn is not touched")
	p.Single.Farewells[0].Leaves = true
	require.Contains(t, p.String(), "leave n2 at 0s")
}

func TestMovesOf_APlannedRound(t *testing.T) {
	change := func(at time.Duration) ledger.Change { return ledger.Change{From: "n1", To: "n2", At: at, Gap: 1} }
	log := marks{begin: 10, ready: 20, cut: 30, end: 90}
	p := plan{Shape: whole, Single: &singlePlan{Scene: resignScene, Farewells: []farewell{{Host: "n1"}}}}
	var causes []cause
	changes := []ledger.Change{change(9), change(15), change(31), change(80)}
	for _, m := range movesOf(changes, &p, log, fate{}, time.Second) {
		require.Zero(t, m.Bound)
		causes = append(causes, m.Cause)
	}
	require.Equal(t, []cause{byHeal, cause(resignScene), cause(resignScene)}, causes,
		"what the round before has set going is not counted")
}

// plannedRound is a round of planned changes with these gaps, in seconds.
func plannedRound(round int, s scene, g cluster.Guard, gaps ...float64) result {
	r := result{Plan: plan{Round: round, Mode: moduleMode,
		Single: &singlePlan{Scene: s, Guard: g, Farewells: []farewell{{Host: "n1"}}}}, Single: &singleResult{}}
	r.Single.Moves = append(r.Single.Moves, move{Cause: byHeal, Gap: 9})
	for _, gap := range gaps {
		r.Single.Moves = append(r.Single.Moves, move{Cause: cause(s), From: "n1", To: "n2", Gap: gap})
	}
	return r
}

func TestPlanned_ShowsEachSceneAndWhatWasSlow(t *testing.T) {
	results := []result{
		plannedRound(4, stormScene, cluster.ByBoth, 0.05, 0.9), plannedRound(1, resignScene, cluster.ByMembers,
			0.04, 0.2), plannedRound(2, departScene, cluster.ByBoth, 0.1),
	}
	s := sum(results...)
	s.Single = summarizeSingle(results, nil)
	require.False(t, s.Failed(), "of several at a time nothing is promised")
	requireLines(t, s.write,
		"sbr run is stopped members 1 2 40 ms 200 ms 200 ms 2 (100.0 %)", "its member leaves members and lease 1 1 100 ms",
		"four are stopped within 1.2 s members and lease 1 2 50 ms 900 ms 900 ms 1 (50.0 %)", "one at a time, in all 2 3",
		"SLOW: round 4, four are stopped within 1.2 s, n1 to n2: 900 ms")
	var text bytes.Buffer
	require.NoError(t, s.write(&text))
	require.NotContains(t, text.String(), "Double-active")
	require.NotContains(t, text.String(), "TOO SLOW")

	late := append(results, plannedRound(5, resignScene, cluster.ByMembers, 0.201))
	s = sum(late...)
	s.Single = summarizeSingle(late, nil)
	require.True(t, s.Failed())
	text.Reset()
	require.NoError(t, s.write(&text))
	require.Contains(t, text.String(), "TOO SLOW: the p99 of planned changes")
	require.Nil(t, summarizePlanned([]result{{}, {Plan: newSinglePlan(1, 1), Single: &singleResult{}}}))
}

func TestOptions_OneWayToPlayAtATime(t *testing.T) {
	for _, args := range [][]string{{"--planned", "--singleton"}, {"--planned", "--shards"},
		{"--singleton", "--shards"}} {
		_, err := parseOptions(args, new(bytes.Buffer))
		require.Error(t, err, args)
	}
	o, err := parseOptions([]string{"--planned"}, new(bytes.Buffer))
	require.NoError(t, err)
	require.Equal(t, newPlannedPlan(1, 7), o.plan(7))
	require.NotEmpty(t, o.first(1).guard)
	require.Equal(t, "go run -C test ./hosts/soak --seed 1 --round 7 --planned", command(&o, 7))
}
