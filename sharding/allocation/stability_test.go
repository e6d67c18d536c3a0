package allocation_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding/allocation"
)

// history is what some joins and departures have left behind: members, and where the shards have settled.
type history struct {
	*rand.Rand
	*allocation.Allocator
	members []allocation.Member
	current places
}

func eachHistory(t *testing.T, check func(t *testing.T, h *history)) {
	for seed := range uint64(600) {
		h := &history{Rand: rand.New(rand.NewPCG(seed, 2))}
		factor := []float64{1, 1.1, 1.25, 2}[h.IntN(4)]
		h.Allocator, h.members = allocator(t, config(factor), shardNames(1+h.IntN(150))), nodes(2+h.IntN(9))
		h.current = mustSettle(t, h.Allocator, h.members)
		for i := range h.IntN(6) {
			if len(h.members) > 2 && h.IntN(2) == 0 {
				h.members = without(h.members, h.anyone())
			} else {
				h.members = append(h.members, node(100+i))
			}
			h.current, _ = settle(t, h.Allocator, h.members, h.current)
		}
		check(t, h)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func (h *history) anyone() sbr.ID { return h.members[h.IntN(len(h.members))].ID }

// firstChoice reports whether the owner is the member that the shard's hash prefers of all.
func firstChoice(shard string, owner sbr.ID, members []allocation.Member) bool {
	best := slices.MaxFunc(members, func(a, b allocation.Member) int {
		if twinScore(shard, a.Name) > twinScore(shard, b.Name) {
			return 1
		}
		return -1
	})
	return best.ID == owner
}

func TestStability_AfterOneIsGoneShardsWithTheirFirstChoiceStay(t *testing.T) {
	eachHistory(t, func(t *testing.T, h *history) {
		gone := h.anyone()
		_, moves := settle(t, h.Allocator, without(h.members, gone), h.current)
		require.Equal(t, loads(h.current)[gone], with(moves, allocation.Unowned))
		require.Zero(t, with(moves, allocation.OwnerFull), "the capacity grows: nobody has too many")
		for _, m := range moves {
			if h.current[m.Shard].Owner != gone {
				require.False(t, firstChoice(m.Shard, m.From, h.members), "%v", m)
			}
		}
	})
}

func TestStability_AfterOneJoinsShardsMoveToItOrFromWhoHasTooMany(t *testing.T) {
	eachHistory(t, func(t *testing.T, h *history) {
		joined := node(1000)
		plan := h.Plan(append(slices.Clone(h.members), joined), h.current)
		excess := 0
		for _, load := range loads(h.current) {
			excess += max(0, load-plan.Capacity)
		}
		require.LessOrEqual(t, with(plan.Moves, allocation.OwnerFull), excess)
		require.Zero(t, with(plan.Moves, allocation.Unowned, allocation.OwnerLeaves))
		for _, m := range plan.Moves {
			if m.To != joined.ID && m.Reason == allocation.Preferred {
				require.False(t, firstChoice(m.Shard, m.From, h.members), "%v", m)
			}
		}
	})
}

// Who becomes unreachable and is reachable again costs no move.
func TestStability_AMemberThatFlapsMovesNothing(t *testing.T) {
	eachHistory(t, func(t *testing.T, h *history) {
		flapping := &h.members[h.IntN(len(h.members))]
		flapping.Unreachable = true
		require.Empty(t, h.Plan(h.members, h.current).Moves)
		flapping.Unreachable = false
		require.Empty(t, h.Plan(h.members, h.current).Moves)
	})
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
