package simulator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

const sec = time.Second

// steps expands nemeses that begin at 10 s, as lines of a file.
func steps(t *testing.T, seed uint64, nodes int, n simulator.Nemesis) string {
	t.Helper()
	sc, err := simulator.New("x").Set(fmt.Sprintf("cluster: {nodes: %d}", nodes)).At(10*sec, n).Build(seed)
	require.NoError(t, err)
	_, text, _ := strings.Cut(string(scenario.Format(sc)), "steps:\n")
	text, _, _ = strings.Cut(text, "run-for:")
	return strings.ReplaceAll(text, "  - ", "")
}

// What a nemesis is, in five members: the steps that it plans with seed 1.
func TestNemesis_Steps(t *testing.T) {
	pause := func(name string, d time.Duration) simulator.Nemesis { return simulator.Pause(name, d) }
	for _, tc := range []struct {
		name string
		n    simulator.Nemesis
		want string
	}{
		{"one step each, that is over at once", simulator.Sequence(
			simulator.Partition(simulator.Side("n1", "n2"), simulator.Side("n3")), simulator.Cut("n1", "n2"),
			simulator.OneWay("n2", "n1"),
			simulator.Mend("n1", "n2"), simulator.Heal(), simulator.Crash("n3"), simulator.Restart("n3"),
			simulator.RestartAs("n3", "n9"),
			simulator.RestartWithoutState("n3"), simulator.ForceLeave("n3"), simulator.ForceLeaveOn("n1", "n3"),
			simulator.Down("n2", "n1"),
			simulator.Leave("n3"), simulator.Join("n6"), simulator.Skew("n1", -5*time.Minute),
			simulator.ClockRate("n1", 1.001),
			simulator.ForgetLease(), simulator.RestoreLease(5*sec), simulator.StoreDown(0)), `
{at: 10s, partition: [[n1, n2], [n3]]}
{at: 10s, cut: [n1, n2]}
{at: 10s, cut-one-way: [n2, n1]}
{at: 10s, link: [n1, n2], loss: 0, latency: 0s}
{at: 10s, heal: true}
{at: 10s, crash: n3}
{at: 10s, restart: n3}
{at: 10s, restart: n3, as: n9}
{at: 10s, restart: n3, state: lost}
{at: 10s, force-leave: [n3]}
{at: 10s, force-leave: [n3], on: [n1]}
{at: 10s, down: n2, by: n1}
{at: 10s, leave: n3}
{at: 10s, join: n6}
{at: 10s, clock: {node: n1, skew: -300s}}
{at: 10s, clock: {node: n1, rate: 1.001}}
{at: 10s, lease-store: forget}
{at: 10s, lease-store: {restore: 5s}}
{at: 10s, lease-store: down}
`},
		{"one step each, that lasts", simulator.Sequence(
			simulator.StoreDown(5*sec, "n4", "n5"), simulator.LoseRequests(5*sec, "n4"),
			simulator.LoseResponses(5*sec, "n4"),
			simulator.StoreConflicts(5*sec, "n4"), simulator.StoreSlow(800*time.Millisecond, 5*sec, "n4"),
			simulator.NoRights(5*sec, "n4"),
			pause("n3", 30*sec), simulator.Heal()), `
{at: 10s, lease-store: down, nodes: [n4, n5], for: 5s}
{at: 15s, lease-store: lose-requests, nodes: [n4], for: 5s}
{at: 20s, lease-store: lose-responses, nodes: [n4], for: 5s}
{at: 25s, lease-store: conflict, nodes: [n4], for: 5s}
{at: 30s, lease-store: {slow: 800ms}, nodes: [n4], for: 5s}
{at: 35s, rights: none, nodes: [n4], for: 5s}
{at: 40s, pause: n3, for: 30s}
{at: 70s, heal: true}
`},
		{"JoinAnother", simulator.Sequence(simulator.JoinAnother(), simulator.Join("n7"), simulator.JoinAnother()), `
{at: 10s, join: n6}
{at: 10s, join: n7}
{at: 10s, join: n8}
`},
		{"Sequence", simulator.Sequence(simulator.Crash("n1"), simulator.Wait(3*sec), simulator.Crash("n2"), simulator.Crash("n3")), `
{at: 10s, crash: n1}
{at: 13s, crash: n2}
{at: 13s, crash: n3}
`},
		{"Together is over when the longest is", simulator.Sequence(simulator.Together(pause("n1", 9*sec), pause("n2", 3*sec)), simulator.Heal()), `
{at: 10s, pause: n1, for: 9s}
{at: 10s, pause: n2, for: 3s}
{at: 19s, heal: true}
`},
		{"Shuffle", simulator.Shuffle(pause("n1", sec), pause("n2", 2*sec), pause("n3", 3*sec)), `
{at: 10s, pause: n3, for: 3s}
{at: 13s, pause: n1, for: 1s}
{at: 14s, pause: n2, for: 2s}
`},
		{"Choice", simulator.Repeat(4, sec, simulator.Choice(simulator.Crash("n1"), simulator.Crash("n2"), simulator.Crash("n3"))), `
{at: 10s, crash: n2}
{at: 11s, crash: n1}
{at: 12s, crash: n3}
{at: 13s, crash: n1}
`},
		{"Maybe", simulator.Repeat(9, sec, simulator.Maybe(0.3, simulator.Crash("n1"))), `
{at: 10s, crash: n1}
{at: 12s, crash: n1}
{at: 16s, crash: n1}
{at: 17s, crash: n1}
`},
		{"Repeat counts from beginning to beginning", simulator.Repeat(3, 10*sec, pause("n1", 4*sec)), `
{at: 10s, pause: n1, for: 4s}
{at: 20s, pause: n1, for: 4s}
{at: 30s, pause: n1, for: 4s}
`},
		{"Repeat waits for what takes longer", simulator.Repeat(3, 10*sec, pause("n1", 14*sec)), `
{at: 10s, pause: n1, for: 14s}
{at: 24s, pause: n1, for: 14s}
{at: 38s, pause: n1, for: 14s}
`},
		{"After", simulator.After(7*sec, simulator.Heal()), `
{at: 17s, heal: true}
`},
		{"Within", simulator.Repeat(3, 0, simulator.Within(7*sec, simulator.Heal())), `
{at: 14.2s, heal: true}
{at: 14.8s, heal: true}
{at: 19.8s, heal: true}
`},
		{"OnRandom", simulator.OnRandom(2, simulator.Crash), `
{at: 10s, crash: n1}
{at: 10s, crash: n2}
`},
		{"OnRandom, as many as chance says", simulator.Repeat(3, sec, simulator.OnRandom(0, simulator.Crash)), `
{at: 10s, crash: n2}
{at: 10s, crash: n4}
{at: 10s, crash: n5}
{at: 11s, crash: n2}
{at: 11s, crash: n3}
{at: 11s, crash: n4}
{at: 12s, crash: n2}
{at: 12s, crash: n3}
{at: 12s, crash: n4}
`},
		{"OnGroup", simulator.OnGroup(3, func(names ...string) simulator.Nemesis { return simulator.StoreDown(sec, names...) }), `
{at: 10s, lease-store: down, nodes: [n1, n2, n4], for: 1s}
`},
		{"Groups", simulator.Repeat(3, sec, simulator.Groups(3)), `
{at: 10s, partition: [[n1, n3], [n2], [n4, n5]]}
{at: 11s, partition: [[n1, n3], [n2, n5], [n4]]}
{at: 12s, partition: [[n1], [n2, n5], [n3, n4]]}
`},
		{"Groups of one", simulator.Groups(9), `
{at: 10s, partition: [[n1], [n2], [n3], [n4], [n5]]}
`},
		{"Halves", simulator.Halves(), `
{at: 10s, partition: [[n1, n2, n4], [n3, n5]]}
`},
		{"LoneNode", simulator.LoneNode(), `
{at: 10s, partition: [[n2]]}
`},
		{"RingOfMajorities", simulator.RingOfMajorities(), `
{at: 10s, cut: [n1, n3]}
{at: 10s, cut: [n1, n4]}
{at: 10s, cut: [n2, n3]}
{at: 10s, cut: [n2, n5]}
{at: 10s, cut: [n4, n5]}
`},
		{"Bridge", simulator.Bridge(), `
{at: 10s, cut: [n1, n3]}
{at: 10s, cut: [n1, n5]}
{at: 10s, cut: [n3, n4]}
{at: 10s, cut: [n4, n5]}
`},
		{"RandomLink", simulator.Repeat(3, sec, simulator.RandomLink()), `
{at: 10s, cut: [n1, n2]}
{at: 11s, cut: [n1, n4]}
{at: 12s, cut-one-way: [n1, n2]}
`},
		{"PartitionRandomly", simulator.Repeat(4, sec, simulator.PartitionRandomly()), `
{at: 10s, partition: [[n1, n5], [n2], [n3, n4]]}
{at: 11s, partition: [[n1, n5], [n2, n3], [n4]]}
{at: 12s, cut: [n1, n2]}
{at: 12s, cut: [n1, n3]}
{at: 12s, cut: [n2, n5]}
{at: 12s, cut: [n3, n5]}
{at: 13s, partition: [[n1, n2, n3], [n4, n5]]}
`},
		{"Swizzle", simulator.Swizzle(3, 5*sec), `
{at: 10s, partition: [[n2]]}
{at: 14.1s, partition: [[n1], [n2]]}
{at: 17.1s, partition: [[n1], [n2], [n4]]}
{at: 18.6s, partition: [[n1], [n4]]}
{at: 21.1s, partition: [[n4]]}
{at: 26s, heal: true}
`},
		{"Flap", simulator.Flap(2, 4*sec, 6*sec, simulator.Halves()), `
{at: 10s, partition: [[n1, n2, n4], [n3, n5]]}
{at: 12.8s, heal: true}
{at: 16.1s, partition: [[n1, n5], [n2, n3, n4]]}
{at: 18.1s, heal: true}
`},
		{"CrashAndRestart", simulator.Sequence(simulator.CrashAndRestart("n2", 5*sec), simulator.Heal()), `
{at: 10s, crash: n2}
{at: 15s, restart: n2}
{at: 15s, heal: true}
`},
		{"RollingUpdate", simulator.RollingUpdate(20*sec, 5*sec), `
{at: 10s, leave: n5}
{at: 15s, restart: n5}
{at: 30s, leave: n4}
{at: 35s, restart: n4}
{at: 50s, leave: n3}
{at: 55s, restart: n3}
{at: 70s, leave: n2}
{at: 75s, restart: n2}
{at: 90s, leave: n1}
{at: 95s, restart: n1}
`},
		{"ScrambleClocks", simulator.ScrambleClocks(time.Hour, 0.1), `
{at: 10s, clock: {node: n1, skew: 708s, rate: 1.0002}}
{at: 10s, clock: {node: n2, skew: 25m51s, rate: 0.9979}}
{at: 10s, clock: {node: n3, skew: 24m11s, rate: 1.0145}}
{at: 10s, clock: {node: n4, skew: 37m17s, rate: 0.9011}}
{at: 10s, clock: {node: n5, skew: -23m17s, rate: 0.9584}}
`},
		{"StoreFaults", simulator.Repeat(3, 0, simulator.StoreFaults(30*sec)), `
{at: 10s, lease-store: conflict, nodes: [n2], for: 18s}
{at: 28s, lease-store: lose-responses, nodes: [n1], for: 9.2s}
{at: 37.2s, lease-store: {slow: 3.801s}, nodes: [n3], for: 23.7s}
`},
		{"one's own", func(p *simulator.Plan) { p.Play(simulator.Crash(p.Members()[p.Rand().IntN(5)])) }, `
{at: 10s, crash: n3}
`},
	} {
		t.Run(tc.name, func(t *testing.T) { require.Equal(t, strings.TrimLeft(tc.want, "\n"), steps(t, 1, 5, tc.n)) })
	}
}

// built expands a nemesis in a cluster of so many members.
func built(t *testing.T, seed uint64, nodes int, n simulator.Nemesis) *scenario.Scenario {
	t.Helper()
	sc, err := simulator.New("x").Set(fmt.Sprintf("cluster: {nodes: %d}", nodes)).At(10*sec, n).Build(seed)
	require.NoError(t, err)
	return sc
}

// sees lists for each member all that it reaches directly, itself included, once all steps have been taken.
func sees(sc *scenario.Scenario) []string {
	cut := make(map[string]bool)
	for i := range sc.Steps {
		if c := sc.Steps[i].Cut; c != nil {
			cut[(*c)[0]+(*c)[1]], cut[(*c)[1]+(*c)[0]] = true, true
		}
	}
	var all []string
	for a := range sc.Cluster.Nodes.Count {
		var view []string
		for b := range sc.Cluster.Nodes.Count {
			if x, y := fmt.Sprint("n", a+1), fmt.Sprint("n", b+1); !cut[x+y] {
				view = append(view, y)
			}
		}
		all = append(all, strings.Join(view, " "))
	}
	return all
}

func TestNemesis_RingOfMajorities_EveryoneReachesADifferentMajority(t *testing.T) {
	for nodes := 3; nodes <= 12; nodes++ {
		views := sees(built(t, uint64(nodes), nodes, simulator.RingOfMajorities()))
		for _, view := range views {
			require.Greater(t, 2*len(strings.Fields(view)), nodes, "%d members: %v", nodes, views)
		}
		slices.Sort(views)
		if nodes > 3 { // of three, the one between sees both others
			require.Len(t, slices.Compact(views), nodes, "no two see the same")
		}
	}
}

func TestNemesis_Bridge_OneReachesAll(t *testing.T) {
	for nodes := 3; nodes <= 9; nodes++ {
		var all, half int
		for _, view := range sees(built(t, 1, nodes, simulator.Bridge())) {
			if n := len(strings.Fields(view)); n == nodes {
				all++
			} else if n == 1+nodes/2 || n == 1+(nodes-1)/2 {
				half++
			}
		}
		require.Equal(t, 1, all, "%d members", nodes)
		require.Equal(t, nodes-1, half, "%d members", nodes)
	}
}

// Whatever the size of the cluster, every nemesis plans something that can be played, from its beginning on,
// and chance reaches all of it.
func TestNemesis_AnySizeAnySeed(t *testing.T) {
	random := map[string]simulator.Nemesis{
		"groups": simulator.Groups(3), "halves": simulator.Halves(), "lone node": simulator.LoneNode(), "ring": simulator.RingOfMajorities(),
		"bridge": simulator.Bridge(), "link": simulator.RandomLink(), "partition": simulator.PartitionRandomly(), "swizzle": simulator.Swizzle(0, sec),
		"flap": simulator.Flap(3, sec, sec, simulator.PartitionRandomly()), "rolling": simulator.RollingUpdate(sec, sec),
		"clocks": simulator.ScrambleClocks(time.Hour, 0.5), "store": simulator.StoreFaults(time.Minute), "crash": simulator.OnRandom(0, simulator.Crash),
	}
	for name, n := range random {
		for nodes := 1; nodes <= 7; nodes++ {
			plans := make(map[string]bool)
			for seed := range uint64(40) {
				sc := built(t, seed, nodes, n)
				for _, st := range sc.Steps {
					require.GreaterOrEqual(t, st.At.From, 10*sec)
				}
				plans[string(scenario.Format(sc))] = true
				require.Equal(t, sc, built(t, seed, nodes, n), "the seed decides everything")
			}
			if nodes > 3 && name != "rolling" {
				require.Greater(t, len(plans), 2, "%s in %d members: each seed plans another run", name, nodes)
			}
		}
	}
}

// What one member of a swizzle goes through: it is cut off once, and is back at the end.
func TestNemesis_Swizzle_OneByOneThereAndBack(t *testing.T) {
	for seed := range uint64(50) {
		sc := built(t, seed, 6, simulator.Swizzle(4, 5*sec))
		alone := []int{}
		for i, st := range sc.Steps {
			if st.Heal != nil {
				require.Equal(t, len(sc.Steps)-1, i, "healed at the end")
				alone = append(alone, 0)
				continue
			}
			alone = append(alone, len(*st.Partition))
		}
		require.Equal(t, []int{1, 2, 3, 4, 3, 2, 1, 0}, alone)
	}
}

// What a nemesis plans does not depend on what others do, nor on how much.
func TestBuild_NemesesDoNotDisturbEachOther(t *testing.T) {
	groups := func(seed uint64, before, after simulator.Nemesis) scenario.Step {
		s, err := simulator.New("x").At(5*sec, before).At(10*sec, simulator.Groups(3)).At(15*sec, after).Build(seed)
		require.NoError(t, err)
		return s.Steps[slices.IndexFunc(s.Steps, func(st scenario.Step) bool { return st.At.From == 10*sec })]
	}
	for seed := range uint64(20) {
		require.Equal(t, groups(seed, simulator.Heal(), nil),
			groups(seed, simulator.OnRandom(3, simulator.Crash), simulator.Halves()))
	}
}
