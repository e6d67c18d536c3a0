// Package memnet is a network inside one process that can be cut: a transport for memberlist, and so for
// Serf, with which a test or a demonstration takes a cluster apart and puts it together again.
//
//	network := memnet.New(memnet.Config{Latency: time.Millisecond})
//	transport, err := network.Transport("n1") // goes into memberlist.Config.Transport
//	...
//	err = network.Partition([]string{"n1", "n2", "n3"}, []string{"n4", "n5"})
//	network.Heal()
//
// The package serfnet below it starts whole Serf nodes.
//
// # Model
//
// A network has hosts, each known by a name and an IP address, all on [Port]. A host runs one [Transport]
// at a time; a name that is started again after a Shutdown is the same host: same address, same cuts.
// Packets behave like UDP, streams like TCP, with these faults:
//
//   - a cut stops one direction ([Network.CutOneWay]), both ([Network.Cut]) or everything between groups
//     ([Network.Partition]). Packets vanish, as do the ones in flight. A dial waits for its timeout. An
//     established stream stands still and goes on after [Network.Heal], unless a deadline ended it before;
//   - a frozen host ([Network.Freeze]) is silent and deaf, as after SIGSTOP: its kernel accepts packets and
//     streams until its queues are full, nobody reads them, and what it sends stays until [Network.Thaw];
//   - a host that was shut down refuses dials at once, and packets to it vanish. An address that never was
//     refuses nothing: a dial to it times out;
//   - packets and streams are delayed as [Config] says.
//
// # Guarantees
//
//   - Once a method that cuts has returned, no packet, byte or end of stream passes there, also none that
//     was under way. What was handed over before (a packet in PacketCh, bytes that Read has returned) stays
//     handed over.
//   - Writing a packet never blocks. What finds a full queue is dropped.
//   - Buffers are copied; the caller may use its own again.
//   - After all transports are shut down no goroutine and no stream is left, in whatever state the network
//     was. Timers of packets under way may outlive that by Latency + Jitter.
//   - Everything is safe for concurrent use.
//   - It works in a testing/synctest bubble: the package waits only on channels and timers of its own, so
//     that virtual time goes on.
//
// # Non-guarantees
//
//   - No two runs are alike. Seed repeats the draws of jitter, not the order in which the nodes
//     draw; memberlist and Serf have random sources and goroutines of their own.
//   - Freeze stops what a node sends and receives, not what it does: its timers run, and it will take all the
//     others for failed. A process that is really stopped does not.
//   - Bandwidth, packet size, fragmentation, duplication, DNS and TCP's retransmission intervals are not
//     modelled: a stream moves, and a waiting dial succeeds, the moment that the path is whole again.
//   - Names in a memberlist.Address are ignored: as on a real network, the node at the address answers.
//
// # Assumptions
//
// The consumer reads PacketCh and StreamCh, as memberlist does. A network that is made in a synctest bubble
// is used there only.
package memnet
