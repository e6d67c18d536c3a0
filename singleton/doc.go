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
// starts on the oldest of them and gets a context that ends, with a cause, when it must stop. Package
// handover decides; this package carries out.
//
// A Locator tells where the function runs now, Leaders who is the oldest member, and a Transport sends HTTP
// requests to wherever it runs.
//
// # Guarantees
//
//   - Members that can talk never run the function at the same time: the next run starts when the one before
//     has returned.
//   - After a crash or a partition it starts elsewhere only once the member that ran it was removed by its
//     resolver and Config.RemovalMargin is over.
//   - With a lease (Config.UseLease or Store) it runs only with the lease. A lost lease cancels the context;
//     the lease is asked for again once the function has returned.
//   - Without one, a run ends when membership was not confirmed for stable-after and half the margin.
//   - Downed, the context is cancelled before anything else happens.
//   - Run.Check is right at any moment, after a pause of any length too: it compares a deadline with the
//     monotonic clock.
//   - Each run has a token, larger than those of all runs before it (with a lease; without one, of those
//     before the last verdict).
//   - After Stop nothing of the Manager runs any more.
//
// # Non-guarantees
//
//   - Nobody can end a function that ignores its context. Until it returns nothing starts elsewhere, unless
//     this member is removed or its lease runs out: then two overlap, and only the token helps.
//   - Between Check and what follows it a process may be paused for any time. What must not happen twice is
//     fenced by its token, at the resource: package lease/fence.
//   - Without a lease, two clusters that never heard of each other each run the function until they meet. A
//     strategy that keeps both sides up keeps both runs up.
//   - A locator learns late where a run is; it may be wrong for as long as messages take.
//
// # Assumptions
//
//   - All members of a system that have the manager run it under the same Config, apart from Run and
//     Endpoint.
//   - Those of package handover.
package singleton
