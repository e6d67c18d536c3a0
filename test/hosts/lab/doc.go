// Package lab is a small data centre on one machine: hosts with processes on them, a network between them
// that can be cut, and a real kube-apiserver.
//
//	l, err := lab.New(ctx, lab.Options{Hosts: []string{"n1", "n2", "n3"}})
//	defer l.Close()
//	api, err := l.StartAPI(ctx, "api")
//	p, err := l.Host("n1").Start(process.Command{Program: "/usr/bin/serf", Args: []string{"agent"}})
//	err = l.Partition([]string{"n1", "n2"}, []string{"n3"})
//	err = l.Heal()
//	still, err := l.Freeze(ctx, "n1") // and everything on n1 stands still
//	err = still.Continue()
//
// A host is a network namespace with one address on a bridge, which has a namespace of its own. Faults are
// packets that nftables drops in the namespace of the host that receives them: what is cut behaves as a cut
// wire does, for the kernel too. It needs Linux, root, and the commands ip and nft ([Check]). It does not
// need package testing: the tests of test/hosts and the soak use it alike.
//
// # Guarantees
//
//   - Nothing is added to the namespace, the routes or the rules of the machine itself; the hosts reach each
//     other and nothing else. Labs do not disturb each other.
//   - A host's rules are replaced in one step, and a fault is in force when its method returns; each can be
//     taken back.
//   - Freeze and Crash reach everything that runs on one host, also what was started by what was started
//     there, and nothing else: a process is held by a descriptor, and its namespace looked at, before it is
//     signalled.
//   - When the process that made a lab ends, by whatever (return, panic, Ctrl-C, SIGKILL), its namespaces and
//     all processes in them end: a watchman outside of the process sees to that.
//
// # Non-guarantees
//
//   - A fault comes into force on one host after the other, within some 20 ms.
//   - The hosts share clock, disk, process ids and processors.
//
// # Assumptions
//
//   - Programs on hosts stay in their network namespace.
package lab
