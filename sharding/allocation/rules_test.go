package allocation_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding/allocation"
)

// state is what the rules below are told on: 12 shards that have settled on three members, four each.
func state(t *testing.T) (*allocation.Allocator, []allocation.Member, places) {
	a, members := allocator(t, config(1), shardNames(12)), nodes(3)
	return a, members, mustSettle(t, a, members)
}

func TestRule_AnUnownedShardGoesToItsFirstChoiceWithRoom(t *testing.T) {
	free := allocator(t, config(1000), shardNames(12)).Plan(nodes(3), nil).Moves
	require.Len(t, free, 12)
	for _, m := range free {
		require.True(t, firstChoice(m.Shard, m.To, nodes(3)))
		require.Equal(t, allocation.Unowned, m.Reason)
	}
	bounded := carryOut(nil, allocator(t, config(1), shardNames(12)).Plan(nodes(3), nil).Moves)
	require.Equal(t, map[sbr.ID]int{"n1#1": 4, "n2#1": 4, "n3#1": 4}, loads(bounded))
}

func TestRule_ANodeThatRestartsGetsItsShardsBack(t *testing.T) {
	a, members, current := state(t)
	members[1].Unreachable = true // crashed, downed, and its margin not over
	again := allocation.Member{ID: "n2#2", Name: "n2"}
	require.Empty(t, a.Plan(append(members, again), current).Moves, "until nobody runs them any more")

	members[1] = again
	moves := a.Plan(members, current).Moves
	require.Len(t, moves, 4)
	for _, m := range moves {
		require.Equal(t, sbr.ID("n2#1"), m.From)
		require.Equal(t, sbr.ID("n2#2"), m.To)
	}
}

func TestRule_WhatIsOnItsWayIsNotMovedAgain(t *testing.T) {
	a, members, current := state(t)
	first := a.Plan(members[1:], current).Moves[0]
	current[first.Shard] = allocation.Placement{Owner: first.From, To: first.To}
	for _, m := range a.Plan(members[1:], current).Moves {
		require.NotEqual(t, first.Shard, m.Shard)
	}
	for i := range members { // not even when its destination leaves meanwhile
		members[i].Leaving = members[i].ID == first.To
	}
	for _, m := range a.Plan(members[1:], current).Moves {
		require.NotEqual(t, first.Shard, m.Shard)
	}
}

func TestRule_ACapacityIsWholeAndNotRoundedUpTwice(t *testing.T) {
	for _, tt := range []struct {
		factor          float64
		shards, members int
		want            int
	}{
		{1, 12, 3, 4}, {1, 13, 3, 5}, {1.25, 1000, 20, 63}, {2, 1, 5, 1}, {1.25, 3, 5, 1},
		{1.1, 30, 3, 11},      // as floats 1.1 × 30 / 3 is a little more than 11
		{1000, 4096, 1, 4096}, // never more than there are
	} {
		a := allocator(t, config(tt.factor), shardNames(tt.shards))
		require.Equal(t, tt.want, a.Plan(nodes(tt.members), nil).Capacity, "%+v", tt)
	}
}

func TestRule_WithoutAMemberToGiveShardsToNothingMoves(t *testing.T) {
	a, members, current := state(t)
	require.Zero(t, a.Plan(nil, current))
	require.Empty(t, a.Next(nil, current))
	for i := range members {
		members[i].Leaving = true
	}
	require.Zero(t, a.Plan(members, current))
}

func TestRule_WithoutMovesAllowedOnlyLostShardsMove(t *testing.T) {
	cfg := config(1)
	cfg.MaxMoves = 0
	a, _, current := state(t)
	pinned := allocator(t, cfg, shardNames(12))
	require.NotEmpty(t, a.Next(nodes(4), current))
	require.Empty(t, pinned.Next(nodes(4), current))
	require.Len(t, pinned.Next(nodes(4)[1:], current), 4)
}

func TestRule_RebalancingBeginsWhenTheLastRecoveryHasBegun(t *testing.T) {
	cfg := config(1)
	cfg.MaxRecoveries, cfg.MaxMoves = 3, 1
	_, _, current := state(t)
	a, members := allocator(t, cfg, shardNames(12)), append(nodes(3)[1:], node(4), node(5))
	begun, moves := 0, a.Next(members, current)
	require.Len(t, moves, 3)
	for len(moves) > 0 {
		for _, m := range moves {
			begun++
			require.Equal(t, begun <= 4, m.Reason.Recovery(), "%v", m)
			current[m.Shard] = allocation.Placement{Owner: m.To}
		}
		moves = a.Next(members, current)
	}
	require.Greater(t, begun, 4)
}

func TestNew_NamesEveryProblem(t *testing.T) {
	_, err := allocation.New("orders", []string{"b", "", "b"}, allocation.Config{LoadFactor: math.NaN(), MaxMoves: -1})
	for _, want := range []string{
		`shards of type "orders": `, "load-factor is NaN", "max-moves is -1", "max-recoveries is 0", "a shard has no name", `"b" is named twice`,
	} {
		require.ErrorContains(t, err, want)
	}
	_, err = allocation.New("orders", nil, allocation.DefaultConfig())
	require.EqualError(t, err, `shards of type "orders": there are no shards: name at least one`)
}

func TestConfig_Bounds(t *testing.T) {
	require.NoError(t, allocation.DefaultConfig().Validate())
	require.Error(t, allocation.Config{}.Validate())
	for factor, ok := range map[float64]bool{1: true, 0.99: false, 1000: true, 1001: false, math.Inf(1): false, -1: false} {
		require.Equal(t, ok, config(factor).Validate() == nil, "%v", factor)
	}
}

func TestNew_DoesNotTouchNorKeepTheNames(t *testing.T) {
	names := []string{"b", "a"}
	a := allocator(t, config(1), names)
	require.Equal(t, []string{"b", "a"}, names)
	names[0] = "c"
	a.Shards()[0] = "d"
	require.Equal(t, []string{"a", "b"}, a.Shards())
}
