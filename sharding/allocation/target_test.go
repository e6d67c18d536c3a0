package allocation_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding/allocation"
)

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
	members[0].Roles, members[1].Roles, members[2].Roles = []string{"west"}, []string{"east"}, []string{"west", "large"}
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
	require.Contains(t, []sbr.ID{"n1#1", "n3#1"}, current["d"].Owner, "there is no north, and the others have room")

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
