//go:build linux

package main

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/ledger"
	"github.com/serf-sbr/serf-sbr/sbr/timing"
	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
)

func planText(t *testing.T, p plan) string {
	t.Helper()
	raw, err := json.Marshal(p)
	require.NoError(t, err)
	return string(raw)
}

// The three families of rounds with something that runs in one place.
func TestLoadPlans_AreSound(t *testing.T) {
	for name, c := range map[string]struct {
		plan   func(seed uint64, round int) plan
		shares []share
		scenes []scene
		check  func(t *testing.T, p *plan, count map[any]int)
	}{
		"singleton": {newSinglePlan, singleShares, nil, func(t *testing.T, p *plan, _ map[any]int) {
			if p.Single.Scene == cutScene {
				plain := *p
				plain.Single = nil
				require.Equal(t, planText(t, newPlan(3, p.Round)), planText(t, plain))
			}
		}},
		"shards": {newShardPlan, shardShares, nil, func(t *testing.T, p *plan, count map[any]int) {
			require.Equal(t, stageKind{mode: ownMode, guard: p.Single.Guard, shards: shardCount}, p.kind())
			count[p.Single.DrainsCoordinator]++
			for _, f := range p.Faults {
				count[f.Kind]++
				require.NotContains(t, []target{agent, serf}, f.Target, "there is one process on a host")
			}
		}},
		"planned": {newPlannedPlan, nil, plannedScenes, checkFarewells},
	} {
		t.Run(name, func(t *testing.T) {
			count := make(map[any]int)
			for round := range 3000 {
				p := c.plan(3, round)
				require.Equal(t, planText(t, p), planText(t, c.plan(3, round)), "it follows from seed and round")
				count[p.Single.Scene]++
				count[p.Single.Guard]++
				if p.Single.Scene != cutScene {
					require.Equal(t, whole, p.Shape)
					require.Empty(t, p.nobodyAllowed(), "the others can go on")
				}
				require.Contains(t, hosts, p.victim())
				c.check(t, &p, count)
			}
			for _, s := range c.shares {
				require.Greater(t, count[s.scene], 100, s.scene)
			}
			for _, s := range c.scenes {
				require.Greater(t, count[s], 200, s)
			}
			if name == "shards" {
				for _, x := range []any{departure, desertion, true, false} {
					require.Greater(t, count[x], 50, x)
				}
			}
			require.Equal(t, count[cluster.ByMembers], count[cluster.ByBoth], "half with a lease, half without")
		})
	}
}

// Two hosts change roles everywhere, and the plan that was drawn is not touched.
func TestSwap_IsItsOwnInverse(t *testing.T) {
	for round := range 500 {
		p := newSinglePlan(5, round)
		before := planText(t, p)
		victim, at := p.victim(), slices.Index(hosts, p.victim())
		holder := hosts[(at+1)%len(hosts)]
		q := p
		q.swap(victim, holder)
		require.Equal(t, before, planText(t, p))
		require.Equal(t, holder, q.victim())
		q.swap(victim, holder)
		require.Equal(t, before, planText(t, q))
		require.Equal(t, []string{"n1", "n2", "n3", "n4", "n5"}, hosts)
	}
}

func TestMovesOf_AreToldApartByWhenTheyWere(t *testing.T) {
	change := func(at time.Duration) ledger.Change {
		return ledger.Change{From: "n1", To: "n2", At: at * time.Second, Gap: time.Second}
	}
	log := marks{begin: 10 * time.Second, ready: 12 * time.Second, cut: 20 * time.Second,
		healed: 40 * time.Second, end: 50 * time.Second}
	changes := []ledger.Change{change(9), change(11), change(15), change(29), change(30), change(45)}
	causesOf := func(p plan, log marks) (all []cause) {
		for _, m := range movesOf(changes, &p, log, fate{}, 12*time.Second) {
			all = append(all, m.Cause)
		}
		return all
	}
	clean := plan{Shape: halves, Single: &singlePlan{Scene: cutScene}}
	require.Equal(t, []cause{byHeal, byHandOver, byCut, byCut, byHeal}, causesOf(clean, log))
	more := plan{Shape: halves, Faults: []fault{{Kind: storeSome}}, Single: &singlePlan{Scene: cutScene}}
	require.Equal(t, []cause{byHeal, byHandOver, byMore, byMore, byHeal}, causesOf(more, log))
	rolling := plan{Shape: whole, Single: &singlePlan{Scene: rollingScene}}
	require.Equal(t, []cause{byHeal, byHandOver, byRolling, byRolling, byRolling}, causesOf(rolling, log),
		"nothing was cut that could be healed")
	require.Equal(t, []cause{byHeal, byHandOver, byHandOver, byHandOver, byHandOver},
		causesOf(clean, marks{begin: log.begin, ready: log.ready}), "it has failed before the cut")

	stays := []ledger.Change{{From: "n3", To: "n3", At: 29 * time.Second}}
	require.Equal(t, []move{{Cause: byOther, From: "n3", To: "n3"}},
		movesOf(stays, &clean, log, fate{}, 12*time.Second), "its own host was not hit")

	moves := movesOf(changes, &clean, log, fate{}, 12*time.Second)
	require.Equal(t, move{Cause: byCut, From: "n1", To: "n2", Gap: 1, Since: 9, Bound: 12}, moves[2])
	require.Zero(t, moves[3].Bound, "only the first one is the fault's")
}

func TestAfterMargin_OnlyWhereABoundIsComputed(t *testing.T) {
	moves := []move{{Since: 10.5, Bound: 12}, {Since: 9, Bound: 12}, {Since: 10.5}}
	afterMargin(moves, 10*time.Second)
	require.Equal(t, []move{{Since: 10.5, Bound: 12, Beyond: 0.5}, {Since: 9, Bound: 12}, {Since: 10.5}}, moves)
}

func TestDisorder(t *testing.T) {
	r := ledger.Report{
		Violations: []ledger.Violation{{Resource: "a", At: 5, Token: 1, Newest: 2},
			{Resource: "b", At: 7, Token: 3, Newest: 4, Member: "n1"}},
		Shared: []ledger.SharedToken{{Resource: "c", Token: 9, Members: []string{"n1", "n2"}}},
	}
	errs := disorder(&r, 5)
	require.Len(t, errs, 2, "what was before is another round's")
	require.ErrorContains(t, errs[0], "b: 3 of n1 after 4")
	require.ErrorContains(t, errs[1], "c: token 9")
}

func TestBoundOf_AddsUp(t *testing.T) {
	in := timing.Input{Members: 5, Gossip: timing.LAN(), StableAfter: 4 * time.Second,
		HeartbeatTimeout: 10 * time.Second}
	d := timing.Compute(in).Detection
	members := boundOf(in, 3*time.Second, cluster.ByMembers)
	require.Equal(t, max(d.Majority.Worst, d.Lone.Worst)+7200*time.Millisecond, members)
	require.Equal(t, members+10*time.Second, boundOf(in, 3*time.Second, cluster.ByBoth))
}

func TestSingle_ShowsWhatTheLedgerSays(t *testing.T) {
	results := []result{
		{Plan: newSinglePlan(1, 1), Single: &singleResult{Moves: []move{{Cause: byHandOver, Gap: 0.05}}, Refused: 7, Overlaps: 1, Overlap: ledger.Sum{Total: time.Second, Max: time.Second, Refused: 3}}},
		{Plan: newSinglePlan(1, 2), Single: &singleResult{Moves: []move{{Cause: byCut, Gap: 8, Since: 13, Bound: 12}, {Cause: byCut, Gap: 7, Since: 9, Bound: 12}}}},
	}
	s := summary{Seed: 1, Played: 2, Planned: 2, Single: summarizeSingle(results,
		[]ledger.Report{{Lines: 5, Accepted: 4, Refused: 1}, {Lines: 2, Accepted: 2}})}
	require.False(t, s.Failed())
	requireLines(t, s.write,
		"entries that reached the ledger 7: 6 accepted, 1 refused; 0 runs", "accepted with an older token after a newer one 0",
		"planned hand-over members 1 50 ms / 50 ms / 50 ms",
		"clean cut, nothing else members and lease 2 7.0 s / 8.0 s / 8.0 s 9.0 s / 13.0 s / 13.0 s 12.0 s 1 of 2",
		"members 1 1 1 1.0 s 1.0 s 3 7")
	require.Nil(t, summarizeSingle([]result{{}}, nil))
}

// One line out of order anywhere fails the run.
func TestFailed_OnAnOlderTokenAfterANewerOne(t *testing.T) {
	results := []result{{Plan: newSinglePlan(1, 1), Single: &singleResult{}}}
	for _, bad := range []ledger.Report{{Violations: []ledger.Violation{{Token: 1, Newest: 2}}},
		{Shared: []ledger.SharedToken{{Token: 1}}}} {
		s := summary{Single: summarizeSingle(results, []ledger.Report{{}, bad})}
		require.True(t, s.Failed())
	}
}
