package allocation_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding/allocation"
)

const kind = "orders"

// config has the load factor c and limits that never bind.
func config(c float64) allocation.Config {
	return allocation.Config{LoadFactor: c, MaxMoves: 1 << 20, MaxRecoveries: 1 << 20}
}

func shardNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("shard-%d", i)
	}
	return names
}

// nodes are n members in their first life: n1#1, n2#1, …
func nodes(n int) []allocation.Member {
	members := make([]allocation.Member, n)
	for i := range members {
		members[i] = node(i + 1)
	}
	return members
}

func node(i int) allocation.Member {
	return allocation.Member{ID: sbr.ID(fmt.Sprintf("n%d#1", i)), Name: fmt.Sprintf("n%d", i)}
}

func without(members []allocation.Member, id sbr.ID) []allocation.Member {
	return slices.DeleteFunc(slices.Clone(members), func(m allocation.Member) bool { return m.ID == id })
}

func allocator(t require.TestingT, cfg allocation.Config, shards []string) *allocation.Allocator {
	a, err := allocation.New(kind, shards, cfg)
	require.NoError(t, err)
	return a
}

type places = map[string]allocation.Placement

// carryOut lets all moves arrive.
func carryOut(current places, moves []allocation.Move) places {
	next := maps.Clone(current)
	if next == nil {
		next = places{}
	}
	for _, m := range moves {
		next[m.Shard] = allocation.Placement{Owner: m.To}
	}
	return next
}

// settle carries out plans until none is left, and returns all moves.
func settle(t require.TestingT, a *allocation.Allocator, members []allocation.Member, current places) (
	places, []allocation.Move) {
	var all []allocation.Move
	for range 20 {
		moves := a.Plan(members, current).Moves
		if len(moves) == 0 {
			return current, all
		}
		all = append(all, moves...)
		current = carryOut(current, moves)
	}
	require.Fail(t, "still moving after 20 plans")
	return nil, nil
}

func loads(current places) map[sbr.ID]int {
	l := map[sbr.ID]int{}
	for _, at := range current {
		l[at.Owner]++
	}
	return l
}

func owners(current places) map[string]sbr.ID {
	o := map[string]sbr.ID{}
	for shard, at := range current {
		o[shard] = at.Owner
	}
	return o
}

func with(moves []allocation.Move, reasons ...allocation.Reason) (n int) {
	for _, m := range moves {
		if slices.Contains(reasons, m.Reason) {
			n++
		}
	}
	return n
}

// spread returns the smallest and the largest number of shards that one of the members has.
func spread(current places, members []allocation.Member) (least, most int) {
	l := loads(current)
	least = len(current)
	for _, m := range members {
		least, most = min(least, l[m.ID]), max(most, l[m.ID])
	}
	return least, most
}

func mustSettle(t *testing.T, a *allocation.Allocator, members []allocation.Member) places {
	t.Helper()
	current, _ := settle(t, a, members, nil)
	return current
}
