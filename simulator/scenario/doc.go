// Package scenario reads scenario files and plays them: a cluster, what happens to it, and what is expected
// of it at the end.
//
//	s, err := scenario.Parse("split.yaml", data)
//	r := scenario.Run(s, 7)
//	if !r.Passed { … r.Failures … }
//
// A run is a world.World: the resolver in it is the one of production, everything around it is a model.
//
// # Guarantees
//
//   - Parse returns a scenario that can be run, or an error with every problem of a readable file: line, key
//     path, what is wrong.
//   - The same scenario, seed and version give the same Result, with the same TraceHash, on any machine.
//   - The promises S1 to S5 are checked in every run, whatever the file expects; each broken one is a
//     failure.
//   - Run needs no clock and no network, and starts no goroutine. Runs of the same Scenario may go on at the
//     same time.
//
// # Non-guarantees
//
//   - S1 (never two sides) is a promise of lease-majority. A file with another strategy is held to it all the
//     same: that is how one finds out what that strategy does.
//   - S1 is judged at the end, so run-for must leave time for a decision.
//   - The failure detector is a model of Serf's, not Serf. Which nodes a clock, a slow store or a lost answer
//     hits is exact.
//
// # Names and places
//
// Nodes are called as the file says, or n1, n2 and so on. Their order in the file is their order of age and
// of address: 10.0.0.1:7946 to 10.0.0.9:7946, then 10.0.1.10:7946 to 10.0.1.99:7946, then 10.0.2.100:7946 and
// on. Nodes that join later come last. Where nodes are listed (partition, lease-store) the name of a zone
// stands for all nodes in it.
package scenario
