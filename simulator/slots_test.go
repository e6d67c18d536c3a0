package simulator_test

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/cores"
	"github.com/serf-sbr/serf-sbr/simulator"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// resolvers are the promises of the resolvers alone. Other tests, and sbr explore, look for them.
var resolvers = regexp.MustCompile(`^(S[1-4]|L[1-3]|chain|token|stable|explained) `)

// Random clusters with singletons and shards keep the promises X1 to X6 and Y1 to Y6. SBR_SLOT_SEEDS=1-100000
// plays more seeds; overlaps without a lease that are nobody's fault are counted and shown.
func TestRandom_SlotsKeepTheirPromises(t *testing.T) {
	from, to := uint64(1), uint64(2000)
	if text := os.Getenv("SBR_SLOT_SEEDS"); text != "" {
		_, err := fmt.Sscanf(text, "%d-%d", &from, &to)
		require.NoError(t, err, "it must be a range such as 1-100000")
	} else if testing.Short() {
		to /= 10
	}
	type played struct {
		s *scenario.Scenario
		r scenario.Result
	}
	var singletons, shards scenario.Totals
	var broken int
	for p := range cores.InOrder(to-from+1, func(i uint64) (p played) {
		p.s = simulator.Random(from + i)
		if len(p.s.Cluster.Singletons)+len(p.s.Cluster.Shards) > 0 {
			p.r = scenario.Judge(p.s, from+i)
		}
		return p
	}) {
		a, b := p.r.Totals(p.s)
		singletons.Add(&a)
		shards.Add(&b)
		for i, x := range p.r.Singletons {
			require.False(t, bool(p.s.Cluster.Singletons[i].UseLease) && x.Overlaps > 0,
				"%s: an overlap with a lease was excused", p.s.Name)
		}
		for i, x := range p.r.Shards {
			require.False(t, bool(p.s.Cluster.Shards[i].UseLease) && x.Overlaps > 0,
				"%s: an overlap with a lease was excused", p.s.Name)
		}
		if len(p.r.Failures) > 0 {
			broken++
		}
		for _, f := range p.r.Failures {
			require.Regexp(t, resolvers, f, p.s.Name)
		}
	}
	for what, all := range map[string]*scenario.Totals{"singletons": &singletons, "shards": &shards} {
		t.Logf("seeds %d-%d, %s: %s; writes of an older run after a newer one %d, starts under a token that was no larger %d", from, to, what,
			all, all.Interleaved, all.Unordered)
	}
	t.Logf("coordinators %d, resigned %d; in %d runs something is broken", shards.Coordinators,
		shards.Resigned, broken)
	if seeds := int(to - from); seeds > 1000 { // otherwise nothing of this need happen
		require.Greater(t, singletons.HandedOver, seeds/40)
		require.Greater(t, singletons.Rejected, seeds/200)
		require.Greater(t, shards.HandedOver, seeds/4)
		require.Greater(t, shards.Rejected, seeds/500)
	}
}

// Seeds in which something was broken once, each for a reason of its own.
func TestRandom_SeedsThatFailedOnce(t *testing.T) {
	for seed, what := range map[uint64]string{
		7227:    "coordinators that had met a newer term resigned for good, one after the other",
		102859:  "the same, until nobody was left",
		111538:  "a manager that was opened again did not know of a margin",
		89120:   "the same, of a shard",
		24926:   "the state of an older run was inherited, though others had held the lease since",
		56142:   "the same, handed over while the lease was free",
		10947:   "S2 went by a verdict that the store had lost, though another one of its token had been told again",
		12876:   "a member that left without a word before was no change to X4",
		52424:   "a coordinator began with the term of one that had started within the same four seconds, and nobody was left that knew",
		70640:   "a run that started again where it was had moved, because another side had run the shard meanwhile",
		96076:   "members that had stood still together took each other's word",
		24278:   "an operator's request held up the decision of its member, and its contact with the store",
		92854:   "a race in unrest went by what had lasted for long after the view had come to rest",
		384134:  "the same: when nothing had lasted it decided before the view had been stable again",
		57713:   "a run of a member that had not heard that it was downed ended by itself and started again",
		656825:  "a survivor of a verdict that the store had lost read that another one counts, and told nobody",
		222187:  "an older run asked a newcomer no more, which did not know it yet, and then ran the slot too",
		387673:  "the same",
		692832:  "two members that met after their runs had started, of which one was not active until later",
		656160:  "a run was started on a process that had stood still, which package drive refuses",
		804302:  "the same",
		5087331: "a run was refused by the fence for one that its member had not heard of when it started, but has since",
		6102947: "a coordinator began within the same four seconds as one that it had not heard of, and took its term much later",
		9034252: "members that had read the verdict were asked for help, told nobody, and went down by an order",
		9101836: "all managers were closed and opened again within the four seconds of one term",
		6134522: "a run went on where it was, and a newcomer that had not heard of its member had ordered another",
		5197235: "a race in unrest outlived the heal of its partition, and the next one was counted from there",
	} {
		r := scenario.Judge(simulator.Random(seed), seed)
		require.Empty(t, r.Failures, "seed %d: %s", seed, what)
	}
}
