// Package sharding runs N named shards of a type, each on one member of a cluster, spread evenly.
//
//	m, err := sharding.New(provider, sharding.Config{
//		Type:   "orders",
//		Shards: sharding.Numbered(64),
//		Run: func(ctx context.Context, s *sharding.Shard) error {
//			return serve(ctx, s.Name(), s.Token()) // until ctx ends
//		},
//	})
//	err = m.Start(ctx)        // on every member, after provider.Start
//	defer m.Stop(ctx)         // before the member leaves: hands its shards over
//	owner, ok := m.Owner(sharding.ShardOf("customer 7", 64)) // who runs it now, and where it is reached
//
// A coordinator, which is a singleton (package singleton) on the oldest member, says which member runs which
// shard: by rendezvous hashing with bounded load (package allocation). When membership changes shards move
// one at a time; those of a member that leaves or is gone at once. Who takes a shard over asks the one that
// had it to hand over, as with a singleton: it stops, and answers with its state.
//
// Whoever starts a shard tells all members, and where it is reached. A Manager without Run runs nothing and
// knows that, too. A Transport sends HTTP requests there, and holds them back while their shard moves.
//
// # Guarantees
//
//   - Members that can talk never run a shard at the same time.
//   - A shard of a member that crashed or was cut off starts elsewhere only once its resolver's verdict has
//     removed that member and Config.RemovalMargin is over.
//   - With leases (Config.UseLease) a shard runs only with its own, "<system>-shard-<type>-<shard>"; lost, it
//     stops at once.
//   - Orders of a former coordinator are refused: its token is smaller.
//   - When a member leaves, only its shards move, and those that bounded load forces to.
//   - Each run of a shard has a token, larger than those of former owners. One that is started again in place
//     keeps it.
//   - Downed, the contexts of all runs are cancelled before anything else happens.
//
// # Non-guarantees
//
//   - Those of package singleton: only a fence at the resource stops what is already on its way.
//   - While the coordinator moves (its hand-over, or a crash and the margin) nothing else moves; what runs
//     goes on.
//   - Owner may be late by as long as messages take.
//
// # Assumptions
//
//   - All members that have the manager use the same Config, apart from Run and Endpoint. One with other
//     Shards is named in the log and gets none.
//   - Those of package singleton.
package sharding
