//go:build linux

package main

import "strconv"

// shardsPage is docs/shards-hosts.md.
func (s *summary) shardsPage() string {
	return s.loadPage(texts{shardsIntro, shardsTimes, shardsOverlaps, shardsOutro, "--shards", "docs/shards-hosts.md", shardScenes})
}

var shardsIntro = "# Shards, on hosts\n\n" + `What came of many random rounds in which an application ran ` + strconv.Itoa(shardCount) + ` [shards](exactly-one.md#shards) on five real hosts: network namespaces, real packets that the kernel drops,
a real etcd and kube-apiserver, and a ledger on a host of its own: an append-only file behind HTTP with a [fence](exactly-one.md#the-fence) for each shard. The application
(` + "`test/hosts/shardhost`" + `) embeds a Serf node, ` + "`downing` and `sharding`" + `, and nothing else that could keep a shard from running twice. The run of a shard asks whether it may work
(` + "`Shard.Check`" + `), works for ` + shardEvery.String() + `, and then writes, with its token, without asking again.
What a host, a cut and a round are says [reliability](reliability.md). Source: ` + "`test/hosts/soak --shards`" + `, which writes this page.

`

const shardsTimes = `
A move is one of a shard.

- **Without work**: from the last accepted entry of the old run to the first one of the new. A run says when it starts, and when it has been told to stop.
- **From the fault**: from the moment at which the hosts were cut, frozen or killed to the first entry of the new run, for shards of hosts that were hit. It is computed for faults at
  one instant only: detection + ` + "`stable-after`" + ` + the removal margin + 200 ms. With leases their ` + "`heartbeat-timeout`" + `, 10 s here, counts twice where the coordinator was hit: first the
  next coordinator waits for the lease of the old one, then each shard's new host for that of the shard.
- **After verdict and margin**: the part of that which came once the verdict was written and the removal margin over: the next coordinator asks who runs what, and orders. Without leases only.
- A planned hand-over: a host hands all its shards over while it stays a member (` + "`Manager.Stop`" + `), and then takes part again; what moves back counts, too.
- A host leaves, and a rolling update: the shards are handed over, then the node leaves. With their shards: the nodes leave Serf, and their managers find that out.
- For the sake of balance: a member is back, and takes shards over from others that run them.
- A fault on other hosts only: a shard moved although its host was not hit: to where it belongs, now that another member is missing; or, without a lease, it stopped because its host could not be sure of its place.
- After everything is healed: nobody could run it before.
`

const shardsOverlaps = `
An overlap is a time in which two runs of one shard tried to write. Without a fence all of it would have been written. A host that stood still, was replaced and goes on writes once what it had begun
before, with the old token: that is what the refused writes are. So does a host that was cut off from the ledger: what it had sent arrives after the heal, seconds after the end of
the process, because the kernel goes on to send it. An overlap without a length is a single late write. In all other rounds there are none: one with an overlap fails.
`

const shardsOutro = `
## What a round is

1. All shards run. One host, in half of the rounds the coordinator's, hands over everything that it runs, and takes part again.
2. One of: a cut with up to two further faults, as in [reliability](reliability.md#what-a-round-is), where the losers sometimes do not reach the ledger either; a host stands still (SIGSTOP), is replaced and
   goes on; a host ends at once; all hosts are restarted in good order, one after the other; a host leaves; the application is killed and started again at once. In half of the rounds it is the
   coordinator's host that is hit, or is on the side that is likely to lose.
3. Everything is healed. All five must be members again. One of them must coordinate, every shard must run, spread as evenly as is demanded, and for 300 ms each must be written to by exactly one run.

Beyond what makes any round fail, a round fails if the ledger has accepted an older token of a shard after a newer one, if two incarnations had one token of a shard, if two runs
of a shard wrote at once although no host stood still or was cut off from the ledger in the round, if after a fault at one instant a shard does not run again while that lasts (30 s beyond the computed bound), or if a host that leaves or is updated downs anybody, or does not end with status 0.

## What it has found

Mended since:

- A member that came back asked for its shards before its resolver was armed, and then nobody ran them until it was: 0.7 s with these settings, longer with the defaults.
- Without leases, a node that left with its shards ran them for up to 5.25 s, while the others waited for the margin of 4 s alone: two runs for more than a second.
- A manager that was started right after the provider, as documented, sometimes refused to start, because the provider had not looked at its members yet.
- A member that came back under its old name while the others still spoke of its former life sometimes could not set its tags, and its manager did not start.

## Again

` + "```text\nmake soak ROUNDS=100 SEED=1 ARGS=--shards\ngo run -C test ./hosts/soak --seed 1 --round 31 --shards\n```" + `

Both need root, iproute2 and nftables.
`
