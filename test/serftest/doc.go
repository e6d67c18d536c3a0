// Package serftest runs stock Serf agents for tests: the program `serf agent` as its users have it.
//
//	agent := serftest.Start(t, serftest.Options{Node: "n1"})
//	other := serftest.Start(t, serftest.Options{Node: "n2", Join: []string{agent.Bind()}})
//	client, err := agent.Dial()
//
// There are two flavours: [Module] is built from the Go module in test/serfagent, once (package buildcache);
// [Debian] is the older agent of Debian's package, fetched with apt-get and unpacked into .cache/serf, not
// installed.
//
// # Guarantees
//
//   - An agent that Start returns answers over RPC. It is on loopback, at ports of its own.
//   - It ends with the test, also when the test process is killed (on Linux). Its output is shown when the
//     test fails.
//
// # Non-guarantees
//
//   - Agents do not leave: at the end of a test they are killed.
//
// # Assumptions
//
//   - [Debian] needs apt-get and dpkg-deb with a package list that names serf.
package serftest
