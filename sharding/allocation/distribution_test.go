package allocation_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding/allocation"
)

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

// unbounded returns how many of the shards have each member as their first choice.
func unbounded(t *testing.T, kind string, shards []string, members []allocation.Member) map[string]sbr.ID {
	a, err := allocation.New(kind, shards, config(1000))
	require.NoError(t, err)
	return owners(carryOut(nil, a.Plan(members, nil).Moves))
}

// chiSquare is the sum of (observed - expected)² / expected.
func chiSquare(counts map[string]int, cells, total int) (sum float64) {
	expected := float64(total) / float64(cells)
	for _, n := range counts {
		sum += (float64(n) - expected) * (float64(n) - expected) / expected
	}
	return sum + float64(cells-len(counts))*expected
}

// Names as people choose them differ in one digit; their hashes must not show it.
func TestDistribution_IsEvenForNamesThatPeopleChoose(t *testing.T) {
	const n, size = 8000, 20
	shardNames := map[string]string{"plain": "%d", "prefixed": "shard-%d", "padded": "orders-%06d", "suffixed": "%d.orders.eu.example"}
	memberNames := map[string]string{"n": "n%d", "address": "10.0.0.%d:7946", "pod": "web-%d", "host": "ip-10-0-3-%d.ec2.internal"}
	for sn, shardName := range shardNames {
		for mn, memberName := range memberNames {
			shards, members := make([]string, n), make([]allocation.Member, size)
			for i := range shards {
				shards[i] = fmt.Sprintf(shardName, i)
			}
			for i := range members {
				name := fmt.Sprintf(memberName, i)
				members[i] = allocation.Member{ID: sbr.ID(name), Name: name}
			}
			counts := map[string]int{}
			for _, owner := range unbounded(t, kind, shards, members) {
				counts[string(owner)]++
			}
			// 19 degrees of freedom: one in ten thousand even distributions is above 51.
			require.Less(t, chiSquare(counts, size, n), 51.0, "%s %s: %v", sn, mn, counts)
		}
	}
}

// The second choices of one member's shards are spread over all others: who inherits is no one's fate.
func TestDistribution_TheShardsOfOneThatIsGoneAreSpreadOverAll(t *testing.T) {
	const n, size = 40000, 20
	members := nodes(size)
	before := unbounded(t, kind, shardNames(n), members)
	after := unbounded(t, kind, shardNames(n), members[1:])
	counts, total := map[string]int{}, 0
	for shard, owner := range before {
		if owner == members[0].ID {
			counts[string(after[shard])]++
			total++
		} else {
			require.Equal(t, owner, after[shard])
		}
	}
	require.Less(t, chiSquare(counts, size-1, total), 49.0, "18 degrees of freedom")
}

// Two types with the same names of shards do not meet on the same members: pairs are as even as chance.
func TestDistribution_TypesAreIndependent(t *testing.T) {
	const n, size = 40000, 10
	orders, carts := unbounded(t, "orders", shardNames(n), nodes(size)), unbounded(t, "carts", shardNames(n), nodes(size))
	counts := map[string]int{}
	for shard, owner := range orders {
		counts[fmt.Sprint(owner, carts[shard])]++
	}
	require.Less(t, chiSquare(counts, size*size, n), 161.0, "99 degrees of freedom")
}

func TestDistribution_WithABoundEverybodyIsWithinIt(t *testing.T) {
	for factor, bounds := range map[float64][2]int{1: {50, 50}, 1.1: {35, 55}, 1.25: {30, 63}} {
		a := allocator(t, config(factor), shardNames(1000))
		least, most := spread(mustSettle(t, a, nodes(20)), nodes(20))
		require.GreaterOrEqual(t, least, bounds[0], "%v", factor)
		require.LessOrEqual(t, most, bounds[1], "%v", factor)
	}
}
