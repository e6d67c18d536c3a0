//go:build linux

// Soak plays random rounds of faults on real hosts: five network namespaces (with --members others), a stock
// serf agent with `sbr agent` on each (in some rounds Debian's older agent, in some `sbr agent` as a node of
// its own), a real etcd and kube-apiserver beside them, or another lease store.
//
//	go run -C test ./hosts/soak --rounds 200 --seed 1 --parallel 5
//	go run -C test ./hosts/soak --seed 1 --round 17
//	go run -C test ./hosts/soak --rounds 30 --seed 1 --store postgres
//	go run -C test ./hosts/soak --rounds 100 --seed 1 --singleton
//	go run -C test ./hosts/soak --rounds 300 --seed 1 --planned
//	go run -C test ./hosts/soak --rounds 100 --seed 1 --shards
//	go run -C test ./hosts/soak --rounds 60 --seed 1 --family force-leave
//	go run -C test ./hosts/soak --rounds 130 --seed 1 --family links --members 7
//	go run -C test ./hosts/soak --rounds 160 --seed 1 --family times --parallel 1
//
// A round cuts the network, adds further faults, waits until one side is up, ends all faults and waits until
// all five are members again. What happens in it follows from the seed and the round's number alone. The
// hosts, and the verdicts in the lease, live on into the next round.
//
// In every third round an operator or a platform does something besides: force-leave, an agent without its
// state folder, rights taken away, a store that forgets. With --family all rounds are about one such deed; or
// about cuts of single links, with how many members are up of those that can all reach each other, without
// further faults (links) or with faults of the store and pauses (links-and-faults); or about how long a clean
// cut takes with default settings (times).
//
// With --store the lease is in PostgreSQL, etcd, or FerretDB (mongodb). What such a store cannot have is left
// out of its rounds, and named.
//
// With --singleton a program runs under `sbr run` on one of the hosts and writes to a ledger. Rounds in which
// hosts stand still, crash or are updated come in between; which host is hit may follow from where the
// program runs.
//
// With --planned nothing goes wrong: `sbr run` is stopped, or its member leaves, one or several at a time,
// and the time without work is measured.
//
// With --shards test/hosts/shardhost runs on all hosts in place of the agents: a node of its own with shards
// that write to a ledger. Hosts leave in some rounds.
//
// A round fails if any of this is not so:
//
//   - At the end of the cut exactly one side is up. No member may be up where the store could not be reached
//     or did not answer, where a side was killed or stopped, and where the view never became stable; all may
//     be up where the cut healed in time.
//   - No incarnation that was downed works again. Losers that start again in the cut are not ready while they
//     are cut off from the members that are up.
//   - The chain of verdicts, read from the lease by a watch (in FerretDB by asking 20 times a second), is
//     unbroken: tokens grow by one, nobody who was downed holds the lease or survives a later verdict. The
//     record goes back only where the round made the store forget it.
//   - `sbr agent` never ends with status 2. Each process that was downed ran its hook once and ended with
//     status 70, and no other did.
//   - After the heal all five are members within two minutes. At a clean cut a loser is down within the
//     computed bound.
//   - With a ledger: the program, or every shard, runs again in the end, and nobody is downed by a planned
//     change.
//
// # Guarantees
//
//   - A round passes only if what was seen from outside allows it: package cluster judges the chain of
//     verdicts, the ends of the processes and that no downed incarnation returned; judge.go says which
//     outcomes a plan allows.
//   - With --singleton, --planned and --shards: the ledger's own file is what is judged: no older token was
//     accepted after a newer one, and the program, or every shard, runs again in the end.
//   - Ctrl-C ends in order: everything is cleaned up, and what is known so far is printed.
//
// # Non-guarantees
//
//   - Timing is that of the machine: the same plan may lead to another winner. How busy the processors were
//     is part of the result.
//
// # Assumptions
//
//   - Linux, root, iproute2 and nftables.
package main
