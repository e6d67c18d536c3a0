// Package serf is the second tier of proof: the scenario files of the simulator over real Serf, in virtual
// time.
//
// The model in package simulator/internal/world decides millions of runs because everything around the
// resolver is small and seeded. What it says of production is worth as much as its failure detector is like
// Serf's. So the tests here
//
//   - play each file of simulator/scenarios, as far as that can be done, over real Serf nodes with real
//     providers on a network inside the process, and compare the outcome with the model's, singletons and
//     shards included (TestScenarios);
//   - measure how long real Serf needs to notice a cut, and hold the model's times to that (TestCalibration).
//
// # Guarantees
//
//   - Everything that decides is the code of production: serf, memberlist, package downing, package lease.
//     Only the network (downing/memnet) and the lease store (lease/memory) are stand-ins.
//   - A file that is not played is listed with the reason, never left out in silence.
//
// # Non-guarantees
//
//   - No two runs are alike, whatever the seed: Serf and the Go runtime draw for themselves. The seed decides
//     what the network draws, and when nodes start.
//   - A pause stops the provider, its lease, Serf's probing, and all packets. Timers of Serf that were set
//     before it run out, as they do in a process that is stopped and goes on; gossip and reconnecting run
//     idle.
//
// # Assumptions
//
//   - Virtual time is that of testing/synctest: all nodes have one clock, and computing takes no time.
package serf
