package allocation_test

import (
	"maps"
	"math"
	"slices"
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
	_, err := allocation.New("orders", []string{"b", "", "b"},
		allocation.Config{LoadFactor: math.NaN(), MaxMoves: -1})
	for _, want := range []string{
		`shards of type "orders": `, "load-factor is NaN", "max-moves is -1", "max-recoveries is 0",
		"a shard has no name", `"b" is named twice`,
	} {
		require.ErrorContains(t, err, want)
	}
	_, err = allocation.New("orders", nil, allocation.DefaultConfig())
	require.EqualError(t, err, `shards of type "orders": there are no shards: name at least one`)
}

func TestConfig_Bounds(t *testing.T) {
	require.NoError(t, allocation.DefaultConfig().Validate())
	require.Error(t, allocation.Config{}.Validate())
	for factor, ok := range map[float64]bool{1: true, 0.99: false, 1000: true, 1001: false, math.Inf(1): false,
		-1: false} {
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
	members := []allocation.Member{{ID: "a", Name: "n1"}, {ID: "b", Name: "n2"},
		{ID: "c", Name: "node-3.example"}, {ID: "d", Name: "Ü"}}
	require.Equal(t, map[string]sbr.ID{
		"0": "d", "1": "b", "2": "d", "3": "a", "carts": "a", "orders/eu": "b", "Größe": "a", "shard-999": "b",
	}, owners(mustSettle(t, a, members)))
}

// Each member in turn restarts under its name. With rebalancing it gets its shards back, and nobody ends up
// without.
func TestStability_RollingRestart(t *testing.T) {
	for _, tt := range []struct{ maxMoves, least, most, back, total int }{{1, 35, 63, 900, 2100},
		{0, 0, 125, 0, 2100}} {
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
		t.Logf("max-moves %d: %d moves, %d of 1000 shards are back where they were, from %d to %d on a member",
			tt.maxMoves, total, back, least, most)
		require.LessOrEqual(t, total, tt.total)
		require.GreaterOrEqual(t, back, tt.back)
		require.GreaterOrEqual(t, least, tt.least)
		require.LessOrEqual(t, most, tt.most)
		require.Equal(t, tt.maxMoves == 0, least < 10, "without rebalancing whoever restarts last has nothing")
	}
}

// byRole puts shards on the first member with the role that is named for them.
func byRole(roles map[string]string) allocation.Target {
	return func(_ []string, members []allocation.Member, _ map[string]sbr.ID) map[string]sbr.ID {
		wanted := make(map[string]sbr.ID)
		for shard, role := range roles {
			for _, m := range slices.Backward(members) {
				if slices.Contains(m.Roles, role) {
					wanted[shard] = m.ID
				}
			}
		}
		return wanted
	}
}

func zones() []allocation.Member {
	members := nodes(3)
	members[0].Roles, members[1].Roles, members[2].Roles = []string{"west"}, []string{"east"},
		[]string{"west", "large"}
	return members
}

func targeted(t *testing.T, limits allocation.Config) *allocation.Allocator {
	limits.Target = byRole(map[string]string{"a": "east", "b": "east", "c": "west", "d": "north"})
	return allocator(t, limits, []string{"a", "b", "c", "d"})
}

// What has a target goes there, beyond the capacity too; the rest goes where the rule of the package says.
func TestTarget_IsFollowed(t *testing.T) {
	a := targeted(t, config(1))
	current, moves := settle(t, a, zones(), nil)
	require.Len(t, moves, 4)
	require.Equal(t, sbr.ID("n2#1"), current["a"].Owner)
	require.Equal(t, sbr.ID("n2#1"), current["b"].Owner)
	require.Equal(t, sbr.ID("n1#1"), current["c"].Owner)
	require.Contains(t, []sbr.ID{"n1#1", "n3#1"}, current["d"].Owner,
		"there is no north, and the others have room")

	reversed := zones()
	slices.Reverse(reversed)
	again, _ := settle(t, a, reversed, nil)
	require.Equal(t, current, again)
}

// Shards whose target leaves or comes back move, no more at once than the limits allow, and not while anybody
// is unreachable.
func TestTarget_WithinTheLimits(t *testing.T) {
	a, members := targeted(t, allocation.DefaultConfig()), zones()
	current, _ := settle(t, a, members, nil)
	members[1].Leaving = true
	away, moves := settle(t, a, members, current)
	require.Len(t, moves, 2, "only its shards, to wherever there is room")
	require.Equal(t, allocation.OwnerLeaves, moves[0].Reason)

	members[1].Leaving = false
	back := a.Next(members, away)
	require.Len(t, back, 1)
	require.Equal(t, allocation.Preferred, back[0].Reason)
	under := maps.Clone(away)
	under[back[0].Shard] = allocation.Placement{Owner: back[0].From, To: back[0].To}
	require.Empty(t, a.Next(members, under))
	members[2].Unreachable = true
	require.Empty(t, a.Next(members, away))
}

// A target sees who can take shards, and where they are: it may keep them there.
func TestTarget_SeesWhatThereIs(t *testing.T) {
	members := zones()
	members[0].Leaving = true
	var shards []string
	var able []allocation.Member
	var owners map[string]sbr.ID
	cfg := config(2)
	cfg.Target = func(s []string, m []allocation.Member, o map[string]sbr.ID) map[string]sbr.ID {
		shards, able, owners = s, m, o
		return o
	}
	current := places{"b": {Owner: "n2#1"}, "a": {Owner: "gone"}, "c": {Owner: "n1#1", To: "n3#1"}}
	moves := allocator(t, cfg, []string{"c", "b", "a"}).Next(members, current)
	require.Equal(t, []string{"a", "b", "c"}, shards)
	require.Equal(t, members[1:], able)
	require.Equal(t, map[string]sbr.ID{"b": "n2#1", "c": "n3#1"}, owners)
	require.Len(t, moves, 1)
	require.Equal(t, "a", moves[0].Shard)
}
