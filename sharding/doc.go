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
// one at a time; the shards of a member that leaves or is gone move at once. As with a singleton, the new
// owner asks the old owner to hand over: the old owner stops the shard and answers with its state.
//
// A member that starts a shard sends all members the shard's endpoint. A Manager without Run runs nothing but
// receives this, too. A Transport sends HTTP requests to the endpoint, and holds them back while their shard
// moves.
//
// # Guarantees
//
//   - Members that can talk never run a shard at the same time.
//   - A shard of a member that crashed or was partitioned off starts elsewhere only once the resolver's
//     verdict has removed that member and Config.RemovalMargin is over.
//   - With leases (Config.UseLease) a shard runs only with its lease, "<system>-shard-<type>-<shard>"; when
//     the lease is lost, the shard stops at once.
//   - Orders of a former coordinator are refused: its token is smaller.
//   - When a member leaves, only its shards move, and those that bounded load forces to.
//   - Each run of a shard has a token, larger than those of former owners. A run that is started again in
//     place keeps the token.
//   - When the member is downed, the contexts of all runs are cancelled before anything else happens.
//
// # Non-guarantees
//
//   - Those of package singleton: only a fence at the resource stops what is already on its way.
//   - While the coordinator moves (its hand-over, or a crash and the margin) nothing else moves; shards that
//     run go on.
//   - Owner may be late by as long as messages take.
//   - Without leases a member that was downed, and has not heard of it, may start a run beside that of the new
//     owner. Its token is the smaller one: a fence refuses its writes.
//
// # Assumptions
//
//   - All members that have the manager use the same Config, apart from Run and Endpoint. The log names a
//     member with other Shards, and it gets none.
//   - Those of package singleton.
package sharding
