package allocation_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding/allocation"
)

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

// The hash is part of the contract: with another one, an upgrade of the coordinator would move nearly every
// shard.
func TestHash_IsTheSameInEveryRelease(t *testing.T) {
	shards := []string{"0", "1", "2", "3", "carts", "orders/eu", "Größe", "shard-999"}
	a := allocator(t, config(1000), shards)
	members := []allocation.Member{{ID: "a", Name: "n1"}, {ID: "b", Name: "n2"}, {ID: "c", Name: "node-3.example"}, {ID: "d", Name: "Ü"}}
	require.Equal(t, map[string]sbr.ID{
		"0": "d", "1": "b", "2": "d", "3": "a", "carts": "a", "orders/eu": "b", "Größe": "a", "shard-999": "b",
	}, owners(mustSettle(t, a, members)))
}

// Each member in turn restarts under its name. With rebalancing it gets its shards back, and nobody ends up
// without.
func TestStability_RollingRestart(t *testing.T) {
	for _, tt := range []struct{ maxMoves, least, most, back, total int }{{1, 35, 63, 900, 2100}, {0, 0, 125, 0, 2100}} {
		cfg := allocation.DefaultConfig()
		cfg.MaxMoves = tt.maxMoves
		a, members := allocator(t, cfg, shardNames(1000)), nodes(20)
		current, total := places{}, -1000
		carryOut := func(members []allocation.Member) {
			for moves := a.Next(members, current); len(moves) > 0; moves = a.Next(members, current) {
				current = carryOut(current, moves)
				total += len(moves)
			}
		}
		carryOut(members)
		first := current
		for i := range members {
			carryOut(without(members, members[i].ID))
			members[i].ID = sbr.ID(members[i].Name + "#2")
			carryOut(members)
		}
		back := 0
		for shard, at := range first {
			if current[shard].Owner == sbr.ID(strings.Replace(string(at.Owner), "#1", "#2", 1)) {
				back++
			}
		}
		least, most := spread(current, members)
		t.Logf("max-moves %d: %d moves, %d of 1000 shards are back where they were, from %d to %d on a member", tt.maxMoves, total, back, least, most)
		require.LessOrEqual(t, total, tt.total)
		require.GreaterOrEqual(t, back, tt.back)
		require.GreaterOrEqual(t, least, tt.least)
		require.LessOrEqual(t, most, tt.most)
		require.Equal(t, tt.maxMoves == 0, least < 10, "without rebalancing whoever restarts last has nothing")
	}
}
