// Package cluster runs a Serf cluster under `sbr agent` on the hosts of a lab, and judges it from outside: by
// exit statuses, by what the hooks wrote, by every change of the lease object, and by what each agent says of
// itself.
//
//	store, err := cluster.StartStore(ctx, l, "api", "postgres", os.Stderr)
//	c, err := cluster.Start(ctx, l, store, cluster.Options{Hosts: []string{"n1", "n2", "n3"}, Settings: cluster.Fast()})
//	err = c.WaitWhole(ctx)
//	err = l.Partition([]string{"n1", "n2"}, []string{"n3"})
//	up, err := c.WaitOneSide(ctx)
//	err = c.Verify()
//
// With Options.Shards an application with shards takes the place of `sbr agent`. With Options.Singleton there
// is `sbr run` on every host as well, with a program. Both write to a [Ledger], a real resource on a host of
// its own.
//
// # Guarantees
//
//   - Nothing of the product is asked whether it did well: Verify compares what was seen from outside.
//   - Times are those of one clock, the machine's.
//
// # Non-guarantees
//
//   - The agents' own status is read twice a second: what lasts shorter may be missed. Exits, hooks and
//     verdicts are not.
//
// # Assumptions
//
//   - Nobody but the members of this cluster writes to its lease.
package cluster
