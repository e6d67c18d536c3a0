package simulator_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// Random clusters with shards keep the promises Y1 to Y6. SBR_SHARD_SEEDS=1-100000 plays more seeds; overlaps without a lease that are nobody's fault are
// counted and shown.
func TestRandom_ShardsKeepTheirPromises(t *testing.T) {
	all, seeds := playSlots(t, "SBR_SHARD_SEEDS", 1500, func(s *scenario.Scenario) bool { return len(s.Cluster.Shards) > 0 },
		func(s *scenario.Scenario, r *scenario.Result) scenario.Totals {
			for i, x := range r.Shards {
				leased(t, r.Seed, bool(s.Cluster.Shards[i].UseLease), x.Overlaps)
			}
			_, sum := r.Totals(s)
			return sum
		})
	t.Logf("coordinators %d, resigned %d", all.Coordinators, all.Resigned)
	require.Empty(t, all.failures)
	if enough := uint64(1000); seeds > enough { // otherwise nothing of this need happen
		require.Greater(t, uint64(all.HandedOver), seeds/4)
		require.Greater(t, uint64(all.Rejected), seeds/500)
	}
}

// Seeds in which something was broken once, each for a reason of its own.
func TestRandom_SeedsThatFailedOnce(t *testing.T) {
	for seed, what := range map[uint64]string{
		7227:   "coordinators that had met a newer term resigned for good, one after the other",
		102859: "the same, until nobody was left",
		111538: "a manager that was opened again did not know of a margin",
		89120:  "the same, of a shard",
		24926:  "the state of an older run was inherited, though others had held the lease since",
		56142:  "the same, handed over while the lease was free",
		10947:  "S2 went by a verdict that the store had lost, though another one of its token had been told again",
		12876:  "a member that left without a word before was no change to X4",
		52424:  "a coordinator began with the term of one that had started within the same four seconds, and nobody was left that knew",
		70640:  "a run that started again where it was had moved, because another side had run the shard meanwhile",
		96076:  "members that had stood still together took each other's word",
	} {
		r := scenario.Judge(simulator.Random(seed), seed)
		require.Empty(t, r.Failures, "seed %d: %s", seed, what)
	}
}

// The builder says what a file says.
func TestScenario_Shards(t *testing.T) {
	s := simulator.New("x").Shards("orders", "{use-lease: on, count: 16}").Shards("carts", "{count: 16}").
		At(40*time.Second, simulator.Leave("n1")).ExpectShards("orders", "n2", "n3", "n4", "n5").ExpectShards("carts", "n2", "n3", "n4", "n5")
	built, err := s.Build(1)
	require.NoError(t, err)
	text := string(scenario.Format(built))
	require.Contains(t, text, "shards: [{type: orders, count: 16, use-lease: on}, {type: carts, count: 16}]")
	require.Contains(t, text, "shards: {carts: [n2, n3, n4, n5], orders: [n2, n3, n4, n5]}")
	simulator.Run(t, s, simulator.Seeds(1, 10))
	_, err = simulator.New("x").Shards("A B", "{margin: 3s}").Build(1)
	require.ErrorContains(t, err, "margin")
}
