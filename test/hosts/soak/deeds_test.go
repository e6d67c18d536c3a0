//go:build linux

package main

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/partial"
)

// A family is played in every combination that it is about, whatever the seed.
func TestForcedPlan_EachShapeWithEachStableAfter(t *testing.T) {
	type combination struct {
		shape  shape
		stable string
	}
	count := make(map[any]int)
	for round := 1; round <= 60; round++ {
		p := newForcedPlan(5, round)
		require.Equal(t, planText(t, p), planText(t, newForcedPlan(5, round)))
		require.Equal(t, hosts, p.hit(forceCron))
		require.Len(t, p.Faults, 1)
		require.NotEqual(t, ownMode, p.Mode, "it takes no commands of serf")
		require.Empty(t, p.nobodyAllowed(), "one side must be up")
		require.Equal(t, p.Stable, p.kind().stable)
		count[combination{p.Shape, p.Stable}]++
		count[p.Mode]++
	}
	for _, s := range []shape{halves, lone, threeWay} {
		for _, stable := range stables {
			require.Equal(t, 10, count[combination{s, stable}], "%s %s", s, stable)
		}
	}
	require.Positive(t, count[moduleMode])
	require.Positive(t, count[debianMode])
}

// What a store cannot have is left out of its rounds, and nothing else.
func TestPlan_LeavesOutWhatAStoreCannotHave(t *testing.T) {
	refused := func(store string) (all []kind) {
		for _, k := range deeds {
			if refuses(store, k) != "" {
				all = append(all, k)
			}
		}
		return all
	}
	for store, want := range map[string][]kind{
		"kubernetes": nil, "etcd": {rightsTaken},
		"postgres": {rightsTaken, etcdRestored}, "mongodb": {rightsTaken, etcdRestored},
	} {
		require.Equal(t, want, refused(store), store)
		o := options{seed: 1, store: store}
		left := 0
		for round := 1; round <= 300; round++ {
			p, whole := o.plan(round), newMixedPlan(1, round)
			for _, k := range want {
				require.Nil(t, p.has(k))
			}
			left += len(whole.Faults) - len(p.Faults)
		}
		require.Equal(t, len(want) > 0, left > 0)
	}
	_, err := parseOptions([]string{"--family", "record", "--store", "postgres"}, new(bytes.Buffer))
	require.ErrorContains(t, err, "no etcd")
	_, err = parseOptions([]string{"--store", "file"}, new(bytes.Buffer))
	require.ErrorContains(t, err, "kubernetes")
}

func TestRecordPlan_EachWayToForgetAtEachMoment(t *testing.T) {
	type combination struct {
		kind kind
		when moment
	}
	count := make(map[any]int)
	for round := 1; round <= 3600; round++ {
		p := newRecordPlan(5, round)
		require.Equal(t, planText(t, p), planText(t, newRecordPlan(5, round)))
		f := p.forgets()
		require.NotNil(t, f)
		require.Equal(t, f.When == "", p.nobodyAllowed() != "", "nobody may be up if it forgets in the cut")
		require.False(t, p.bounded())
		if back := p.has(storeBack); back != nil {
			require.Equal(t, p.hit(storeSide), back.Hosts)
			require.Greater(t, back.At, f.At, "it has forgotten by then")
			require.Equal(t, 1, f.Back, "what it holds then is older than what those know that return")
		}
		for _, name := range p.hit(restarted) {
			require.False(t, p.lost(name), "it is a member again before the cut")
		}
		count[combination{f.Kind, f.When}]++
		count[p.Shape]++
		count[p.Mode]++
		count[len(p.Faults)]++
	}
	for _, k := range []kind{leaseDeleted, leaseReplaced, etcdRestored} {
		require.Equal(t, 300, count[combination{k, beforeCut}], k)
		require.Equal(t, 600, count[combination{k, ""}], k)
		require.Equal(t, 300, count[combination{k, afterVerdict}], k)
	}
	for _, x := range []any{halves, lone, threeWay, moduleMode, debianMode, ownMode, 1, 2, 3} {
		require.Greater(t, count[x], 300, x)
	}
}

func TestMixedPlan_AddsDeeds(t *testing.T) {
	count := make(map[kind]int)
	same, late := 0, 0
	for round := range 5000 {
		p, old := newMixedPlan(1, round), newPlan(1, round)
		if planText(t, p) == planText(t, old) {
			same++
			continue
		}
		var added []fault
		p.Faults = slices.DeleteFunc(slices.Clone(p.Faults), func(f fault) bool {
			if slices.Contains(deeds, f.Kind) {
				added = append(added, f)
				return true
			}
			return false
		})
		require.Equal(t, planText(t, old), planText(t, p), "the rest is as it was")
		for _, f := range added {
			count[f.Kind]++
			if f.Kind.forgets() {
				require.False(t, slices.ContainsFunc(p.Faults, func(f fault) bool { return f.ofStore() }))
			}
			if f.Kind == operatorDown {
				require.Len(t, f.Hosts, 1)
				require.NotEqual(t, f.Hosts[0], f.By, "nobody is asked to down itself")
				require.Contains(t, hosts, f.By)
				if f.When == afterVerdict {
					late++
				}
			}
			if p.Mode == ownMode {
				require.NotContains(t, []kind{forceLeave, forceCron, prune}, f.Kind)
			}
		}
	}
	require.Greater(t, same, 2600)
	require.Greater(t, late, 200)
	for _, k := range deeds {
		if k != restarted && k != storeBack {
			require.Greater(t, count[k], 30, k)
		}
	}
}

// An operator may down any member: then it does not live through the round, and its computed bounds do not
// apply. Two sides are never allowed.
func TestMixedPlan_AnOperatorsWord(t *testing.T) {
	side := [][]string{{"n1", "n2", "n3"}, {"n4", "n5"}}
	word := fault{Kind: operatorDown, At: span(time.Second), Hosts: []string{"n4"}, By: "n1"}
	p := plan{Mode: moduleMode, Shape: halves, Sides: side, Faults: []fault{word}}
	require.Equal(t, "halves n1 n2 n3 | n4 n5 + sbr down n4 by n1 at 1s", p.String())
	require.True(t, p.lost("n4"))
	require.False(t, p.lost("n1"), "who is asked goes on")
	require.Empty(t, p.nobodyAllowed(), "n5 or the others are up")
	require.False(t, p.bounded())
	p.Faults = append(p.Faults, fault{Kind: kill, Hosts: []string{"n5"}, Target: both})
	require.NotEmpty(t, p.nobodyAllowed(), "nobody is left of the smaller side, which may have won")
}

func TestDeeds_OfToday(t *testing.T) {
	for want, p := range map[string]plan{
		"halves n2 n3 n4 | n1 n5, stable-after 20s + force-leave by cron at 0s":     newForcedPlan(1, 3),
		"lone n1 n2 n3 n4 | n5 + lease replaced by an older one before the cut":     newRecordPlan(1, 1),
		"halves n2 n3 n4 | n1 n5 + lease deleted 700ms after the verdict":           newRecordPlan(1, 9),
		"halves n2 n3 n5 | n1 n4 + SIGSTOP serf n1 at 1.6s + etcd restored at 1.7s": newMixedPlan(1, 2),
		"halves n1 n3 n4 | n2 n5 + store cut off for one side n2 n5 at 0s + " +
			"lease replaced by an older one 100ms after the verdict + " +
			"store reached again n2 n5 700ms after the verdict": newRecordPlan(1, 22),
	} {
		require.Equal(t, want, p.String())
	}
}

func TestPlan_FaultsComeInOrder(t *testing.T) {
	p := plan{Faults: []fault{
		{Kind: leaseDeleted, When: afterVerdict}, {Kind: pause, At: span(time.Second)},
		{Kind: restarted, When: beforeCut}, {Kind: kill},
	}}
	p.order()
	var kinds []kind
	for _, f := range p.Faults {
		kinds = append(kinds, f.Kind)
	}
	require.Equal(t, []kind{restarted, kill, pause, leaseDeleted}, kinds)
}

func TestOptions_Families(t *testing.T) {
	o, err := parseOptions([]string{"--family", "record"}, new(bytes.Buffer))
	require.NoError(t, err)
	require.Equal(t, newRecordPlan(1, 7), o.plan(7))
	require.Equal(t, "go run -C test ./hosts/soak --seed 1 --round 7 --family record", command(&o, 7))
	o, err = parseOptions([]string{"--family", "force-leave"}, new(bytes.Buffer))
	require.NoError(t, err)
	require.Equal(t, newForcedPlan(1, 7), o.plan(7))
	require.Contains(t, stables, o.first(1).stable)
	o, err = parseOptions([]string{"--family", "links-and-faults", "--members", "7"}, new(bytes.Buffer))
	require.NoError(t, err)
	require.Contains(t, command(&o, 7), "--round 7 --family links-and-faults --members 7")
	for _, bad := range [][]string{{"--family", "x"}, {"--family", "record", "--shards"}, {"--members", "7"}} {
		_, err := parseOptions(bad, new(bytes.Buffer))
		require.Error(t, err, bad)
	}
}

// The worst is counted: two sides up, broken chains, members missing.
func TestSummarize_CountsWhatIsWorst(t *testing.T) {
	bad := failedRound(2)
	bad.TwoSides, bad.BrokenChain, bad.NotWhole = true, true, true
	s := sum(played(1, halves, 0.1), bad)
	var text bytes.Buffer
	require.NoError(t, s.write(&text))
	want := "two sides up: 1 rounds; chain of verdicts broken: 1 rounds; not all members again: 1 rounds\n"
	require.Contains(t, text.String(), want)
}

// Rounds about links play each shape, and know how many hosts can all reach each other.
func TestLinks_PossibleSurvivors(t *testing.T) {
	possible := map[shape]int{
		"links: one link": 4, "links: two links": 3, "links: one way": 4, "links: bridge": 3, "links: deaf": 4, "links: mute": 4,
		"links: half-deaf": 4, "links: ring": 2, "links: star": 2, "links: three-way": 2, "links: halves": 3, "links: lone": 4,
	}
	played := make(map[shape]bool)
	for round := range 2 * len(partial.Shapes) {
		p := newLinksPlan(1, round, linksFamily)
		played[p.Shape] = true
		require.Empty(t, p.nobodyAllowed(), p.Shape)
		f := newLinksPlan(1, round, faultsFamily)
		require.Equal(t, p.Links, f.Links, "the same with faults")
		require.Equal(t, p.possible(), f.possible())
		require.NotEmpty(t, f.Faults)
		require.NotEmpty(t, f.nobodyAllowed())
		if want, fixed := possible[p.Shape]; fixed {
			require.Equal(t, want, p.possible(), p.Shape)
		}
	}
	require.Len(t, played, len(partial.Shapes))
	p := newForcedPlan(1, 0)
	require.Zero(t, p.possible(), "it is not about links")
}

// Rounds about times play each cut with each setting, half of them with losers that lose the store as well,
// which are the smaller side.
func TestTimes_EachCutWithEachSetting(t *testing.T) {
	count := make(map[string]int)
	for round := range 80 {
		p := newTimesPlan(1, round)
		require.True(t, p.bounded())
		require.Empty(t, p.nobodyAllowed())
		if cut := p.hit(storeSide); cut != nil {
			require.Equal(t, sorted(p.Sides[1]), cut)
			require.Less(t, len(cut), len(p.Sides[0]))
		}
		count[fmt.Sprint(p.Shape, p.Stable, len(p.Faults))]++
	}
	require.Len(t, count, 8)
	for what, n := range count {
		require.Equal(t, 10, n, what)
	}
}
