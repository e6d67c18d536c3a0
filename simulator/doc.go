// Package simulator plays partitions from a Go test: a cluster of real resolvers in virtual time, what
// happens to it, and what is expected of it. It says what a scenario file says (see package scenario), in Go,
// and can do a little more: nemeses leave things to chance, so that one test is a hundred different runs.
//
//	func TestPartition(t *testing.T) {
//		simulator.Run(t, simulator.New("three against two").
//			Config(sbrYAML).
//			At(10*time.Second, simulator.Partition(simulator.Side("n1", "n2", "n3"), simulator.Side("n4", "n5"))).
//			Set("expect: {survivors: [n1, n2, n3]}"))
//	}
//
// A Scenario is what a file says (Set takes any part of one, Config an sbr.yaml), and nemeses. A Nemesis
// plans steps: Partition, Crash, StoreDown and the like one, Swizzle, Flap, RollingUpdate and the like
// several, Sequence, Together, Repeat, Choice and the like what others plan. Build expands them to a plain
// scenario.Scenario, which scenario.Format writes as a file for sbr simulate. Run plays seeds and fails the
// test; Random makes up a whole scenario. File and Fixed let Run play scenarios that are there already.
//
// # Guarantees
//
//   - The same scenario, seed and version give the same steps, and the same run, on any machine, however many
//     cores play it.
//   - The promises are checked in every run, whatever is expected: S1 to S5, and the others that package
//     world lists.
//   - A failing test names the lowest seed that fails, what failed, the smallest scenario found that fails in
//     the same way, and commands that replay both; the small scenario, played with that seed, has exactly the
//     failures that are printed.
//   - All mistakes in a scenario are reported at once, before anything is played.
//   - Nothing waits for a clock, and nothing but Run starts goroutines, which end before it returns.
//
// # Non-guarantees
//
//   - A strategy without a lease does not promise S1. It is held to it all the same.
//   - Passing with many seeds is no proof. Package explore walks every order of events of a small cluster.
//   - Which steps a seed gives may differ from one version to the next. What must stay as it is should be a
//     scenario file.
//   - The failure detector is a model of Serf's.
//
// # Assumptions
//
//   - A Nemesis depends on nothing but its Plan, and a Source on nothing but the seed.
//
// # Replaying
//
// The environment variable SBR_SEEDS, such as 7 or 1-5000, says which seeds every Run plays:
//
//	SBR_SEEDS=7 go test -run '^TestPartition$' ./...
//
// It is a variable and no flag: a flag of one package's tests is unknown to those of all others, and may
// clash with the user's own.
package simulator
