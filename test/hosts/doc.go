// Package hosts is the tier of proof that is closest to an operator: unmodified programs on hosts of their
// own, whose packets are dropped by the kernel. Package lab makes the hosts, package cluster runs and judges
// the members; the tests here
//
//   - cut clusters in every way and hold the outcome against the promises, for `sbr agent` beside a stock
//     Serf agent (two flavours) and as a node of its own (TestPartition_… and the others);
//   - start clusters that have to find themselves again (TestStarts_…), and upgrade one with a cut in the
//     middle (TestUpgrade_…), or take its lease to another store (TestMove_…);
//   - run a program in exactly one place, by `sbr run`, and hold what it has written to a real resource
//     against that (TestSingleton_…);
//   - run shards in an application of their own, shardhost, and do the same (TestShards_…);
//   - send requests to examples/shards while it is changed, loses a member and stops (TestExample_…);
//   - boot systemd on a host, and end the agent that an application is bound to (TestUnit_…);
//   - play the scenario files of the simulator, as far as they can be played in real time (TestScenarios).
//
// They run with SBR_E2E=1, as root, with iproute2, nftables and systemd: `make e2e` sees to all of that.
// SBR_E2E=all plays every scenario file, and every start: make e2e leaves out those that fail with the rules
// as they are built today, and names them with the reason.
//
// # Guarantees
//
//   - In every test: the verdict chain is unbroken, no downed incarnation returns, and every process that was
//     downed ends with status 70.
//   - A file that is not played is listed with the reason.
//
// # Non-guarantees
//
//   - Times of detection are those of this machine under load: bounds are generous. Safety has no bound.
package hosts
