package allocation_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding/allocation"
)

// world is any state that a coordinator may find, sensible or not.
type world struct {
	*rand.Rand
	cfg     allocation.Config
	shards  []string
	members []allocation.Member
	current places
}

// newWorld draws a world: up to two lives of one name, few members on their way out, and often all shards on
// few members.
func newWorld(seed uint64, shards, members int) *world {
	r := rand.New(rand.NewPCG(seed, 0))
	w := &world{Rand: r, shards: shardNames(shards), current: places{}}
	w.cfg = allocation.Config{LoadFactor: []float64{1, 1.1, 1.25, 2}[r.IntN(4)], MaxMoves: r.IntN(5),
		MaxRecoveries: 1 + r.IntN(9)}
	ids, quiet := []sbr.ID{"", "gone#1"}, r.IntN(2) == 0
	for i := range members {
		name := fmt.Sprintf("n%d", i-r.IntN(1+i/2))
		m := allocation.Member{ID: sbr.ID(fmt.Sprintf("%s#%d", name, i)), Name: name}
		m.Leaving, m.Unreachable = r.IntN(5) == 0, !quiet && r.IntN(6) == 0
		w.members, ids = append(w.members, m), append(ids, m.ID)
	}
	crowd := ids[r.IntN(len(ids)):]
	for _, s := range w.shards {
		at := allocation.Placement{Owner: crowd[r.IntN(len(crowd))]}
		if r.IntN(8) == 0 {
			at.To = ids[r.IntN(len(ids))]
		}
		w.current[s] = at
	}
	return w
}

// eachWorld checks small worlds, which rapid makes smaller still when the check fails, and then larger ones.
func eachWorld(t *testing.T, check func(t require.TestingT, w *world)) {
	rapid.Check(t, func(t *rapid.T) { check(t, smallWorld(t)) })
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		check(t, newWorld(seed, 1+r.IntN(40), r.IntN(9)))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func smallWorld(t *rapid.T) *world {
	return newWorld(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 12).Draw(t, "shards"),
		rapid.IntRange(0, 5).Draw(t, "members"))
}

// checkTwin compares a plan with that of the twin, which says by each rule's condition that nobody gets more
// than the capacity, and that what is unreachable stays. In whatever order members and shards are given, the
// plan is the same.
func checkTwin(t require.TestingT, w *world) {
	twin := newTwin(w.cfg, w.shards, w.members, w.current)
	capacity, share := twin.bounds()
	want := twin.plan()
	w.Shuffle(len(w.members), func(i, j int) { w.members[i], w.members[j] = w.members[j], w.members[i] })
	w.Shuffle(len(w.shards), func(i, j int) { w.shards[i], w.shards[j] = w.shards[j], w.shards[i] })
	got := allocator(t, w.cfg, w.shards).Plan(w.members, w.current)
	require.Equal(t, want, got.Moves)
	require.Equal(t, capacity, got.Capacity)
	require.Equal(t, share, got.Share)
}

func TestPlan_IsThatOfTheTwin(t *testing.T) { eachWorld(t, checkTwin) }

func FuzzPlan_IsThatOfTheTwin(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { checkTwin(t, smallWorld(t)) }))
}

// However many moves are begun at once, what comes after them is the same.
func TestPlan_GoesOnAsPlannedWhenItsFirstMovesHaveBegun(t *testing.T) {
	eachWorld(t, func(t require.TestingT, w *world) {
		a := allocator(t, w.cfg, w.shards)
		plan := a.Plan(w.members, w.current)
		begun := w.IntN(len(plan.Moves) + 1)
		for _, m := range plan.Moves[:begun] {
			w.current[m.Shard] = allocation.Placement{Owner: m.From, To: m.To}
		}
		rest := a.Plan(w.members, w.current)
		require.Equal(t, append([]allocation.Move{}, plan.Moves[begun:]...),
			append([]allocation.Move{}, rest.Moves...))
	})
}

// However slowly and in whatever order moves end, an end is reached, and everything is where it may be.
func TestNext_Settles(t *testing.T) {
	eachWorld(t, func(t require.TestingT, w *world) {
		w.cfg.MaxMoves = max(1, w.cfg.MaxMoves)
		for i := range w.members {
			w.members[i].Unreachable = false
		}
		twin := newTwin(w.cfg, w.shards, w.members, w.current)
		a := allocator(t, w.cfg, w.shards)
		total := 0
		for {
			for _, m := range a.Next(w.members, w.current) {
				w.current[m.Shard] = allocation.Placement{Owner: w.current[m.Shard].Owner, To: m.To}
			}
			var moving []string
			for _, s := range w.shards {
				if _, here := twin.members[w.current[s].To]; here {
					moving = append(moving, s)
				}
			}
			if len(moving) == 0 {
				break
			}
			total++
			require.LessOrEqual(t, total, 4*len(w.shards), "it goes on and on")
			arrived := moving[w.IntN(len(moving))]
			w.current[arrived] = allocation.Placement{Owner: w.current[arrived].To}
		}
		plan := a.Plan(w.members, w.current)
		require.Empty(t, plan.Moves)
		if plan.Capacity == 0 {
			return // nobody is there to run anything
		}
		for _, at := range w.current {
			require.True(t, twin.able(at.Owner), "%v", at)
		}
		for id, load := range loads(w.current) {
			require.LessOrEqual(t, load, plan.Capacity, "%s", id)
		}
	})
}

func TestNext_KeepsTheLimits(t *testing.T) {
	eachWorld(t, func(t require.TestingT, w *world) {
		twin := newTwin(w.cfg, w.shards, w.members, w.current)
		a := allocator(t, w.cfg, w.shards)
		plan, next := a.Plan(w.members, w.current).Moves, a.Next(w.members, w.current)
		require.Equal(t, plan[:len(next)], append(plan[:0:0], next...), "the first of the plan")

		moves, recoveries := 0, 0
		for _, s := range w.shards {
			owner, here := twin.members[w.current[s].Owner]
			switch {
			case !twin.fixed[s]:
			case here && !owner.Leaving:
				moves++
			default:
				recoveries++
			}
		}
		moved, recovered := with(next, allocation.Preferred, allocation.OwnerFull),
			with(next, allocation.Unowned, allocation.OwnerLeaves)
		require.LessOrEqual(t, moved, max(0, w.cfg.MaxMoves-moves))
		require.LessOrEqual(t, recovered, max(0, w.cfg.MaxRecoveries-recoveries))
		if len(next) < len(plan) { // as many as the limit of the one that waits allows
			if plan[len(next)].Reason.Recovery() {
				require.Equal(t, max(0, w.cfg.MaxRecoveries-recoveries), recovered)
				require.Zero(t, moved)
			} else {
				require.Equal(t, max(0, w.cfg.MaxMoves-moves), moved)
			}
		}
	})
}
