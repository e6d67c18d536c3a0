// Package singleton runs a function on exactly one member of a cluster: the oldest.
//
//	m, err := singleton.New(provider, singleton.Config{
//		Name: "backup",
//		Run: func(ctx context.Context, r *singleton.Run) error {
//			for work := range jobs(ctx, r.State()) { // until ctx ends
//				if err := store.Write(ctx, r.Token(), work); err != nil { … } // the store refuses older tokens
//				r.HandOver(work.Position())
//			}
//			return nil
//		},
//	})
//	err = m.Start(ctx)   // on every member, after provider.Start
//	defer m.Stop(ctx)    // before the member leaves: hands over
//
// A Manager runs on every member, or on every member with a role, beside its downing.Provider. The function
// starts on the oldest of these members and gets a context that ends, with a cause, when the function must
// stop. Package handover decides; this package carries out its decisions.
//
// A Locator tells where the function runs now, Leaders tells which member is the oldest, and a Transport
// sends HTTP requests to the member that runs the function.
//
// # Guarantees
//
//   - Members that can talk never run the function at the same time: the next run starts when its predecessor
//     has returned.
//   - After a crash or a partition the function starts elsewhere only once the resolver has removed the
//     member that ran it and Config.RemovalMargin is over.
//   - With a lease (Config.UseLease or Store) the function runs only while the member holds it. A lost lease
//     cancels the context; the lease is requested again once the function has returned.
//   - Without a lease, a run ends when membership was not confirmed for stable-after and half the margin.
//   - When the member is downed, the context is cancelled before anything else happens.
//   - Run.Check is right at any moment, also after a pause of any length: it compares a deadline with the
//     monotonic clock and, because that stands still in a suspended machine, with the wall clock.
//   - Each run has a token. With a lease it is larger than the tokens of all earlier runs; without one, than
//     those of the runs before the last verdict.
//   - After Stop nothing of the Manager runs any more.
//
// # Non-guarantees
//
//   - Nobody can end a function that ignores its context. Until the function returns nothing starts
//     elsewhere, unless this member is removed or its lease expires: then two runs overlap, and only the
//     token helps.
//   - A process may be paused for any time after Check. For what must not happen twice, the resource must
//     check the token: package lease/fence.
//   - Without a lease, two clusters that do not know each other both run the function until they meet. A
//     strategy that keeps both sides up keeps both runs up.
//   - A locator learns late where a run is; it may be wrong for as long as messages take.
//
// # Assumptions
//
//   - All members of a system that have the manager run it under the same Config, apart from Run and
//     Endpoint.
//   - Those of package handover.
package singleton
