// Package lock is a plain distributed lock over any lease.Store: acquire, work, release. Nothing of clusters
// or verdicts.
//
//	k, err := lock.New(store, lock.Config{}) // a store from lease/kubernetes, lease/file, lease/memory or yours
//	defer k.Close()
//	err = k.Do(ctx, func(ctx context.Context) error { return nightlyJob(ctx) })
//	if errors.Is(err, lock.ErrHeld) { ... } // somebody else runs it
//
// A Manager opens locks by name. The lock's Type says which owners may acquire and release a lock that is
// held already:
//
//	               | acquire           | same owner again           | other owner's live lock | release
//	single-entrant | absent or expired | false                      | false                   | only the owner's, not expired
//	re-entrant     | absent or expired | true, duration starts anew | false                   | the same; one for all entries
//	overriding     | always            | true, duration starts anew | true (takes it)         | any live lock, else false
//
// A lock is acquired for the default duration (Acquire), another one (AcquireFor), or for ever
// (AcquireForever); with Config.KeepAlive the duration is how long it outlives its holder. A duration has
// expired when exactly it is over.
//
// The names for users of Sherlock: createLock, createReentrantLock and createOverridingLock are Manager.Lock,
// ReentrantLock and OverridingLock; acquireAndExecute is Do; forceReleaseLock(id) is Manager.ForceRelease,
// forceReleaseAllLocks is ForceReleaseAll, for the names that the manager knows; the owner id policies are
// Config.Owner (empty, ProcessOwner(), a text of your own); its stubs and mocks are in package leasetest. New
// here: AcquireWait, DoWait, Held, Token, KeepAlive, contexts that end with the lock, and errors that say
// "unknown" where Sherlock says false.
//
// # Guarantees
//
//   - One holder: at no instant does Held answer true for two owners, whatever is lost, late or paused,
//     whatever the wall clocks say. Except on request: an Overriding lock, a forced release, and owners that
//     share an id (below).
//   - True means certainly yes, false certainly no. An unknown outcome is an error, also in Release. If a
//     lock comes although an error was returned it is given back within a few operation timeouts, or taken on
//     by the next Acquire.
//   - Tokens grow with each acquire, of any owner.
//   - Each call ends within its context; those that do not wait, within twice Config.OperationTimeout too.
//   - Without KeepAlive a held lock sends nothing. A first Acquire is a read and a write, a later one usually
//     a write; a refusal takes one read. A Release is one write, and one read of what is not held.
//
// # Non-guarantees
//
//   - No party believes the times in the record: each counts the duration from when it has first seen the
//     lock taken. A party that has never looked waits a whole duration, and takes an expired lock that it
//     releases by force for a live one. That is the price for not needing equal clocks.
//   - The holder's part of the duration is shorter, so that it has stopped when the others begin: between 5/8
//     and 7/8 of it (see Config.Duration). Of five minutes, with an operation timeout of five seconds, it may
//     use 4 min 17.5 s. Held is false after that; Release still frees the rest.
//   - No lock stops what is on its way: between two looks at Held, or at the context of Do, a process can be
//     paused for longer than the lock lasts. Only a resource that refuses smaller fencing tokens is safe from
//     that.
//   - Without KeepAlive a holder does not learn that its lock was overridden or released by force. It finds
//     out with its next call, or when its time is over.
//   - Locks with one owner id are one owner: each may release, shorten or replace what the other has
//     acquired, and the other learns of it as of an override, too late. An id that outlives a process gives
//     its next life the lock of the last. If in doubt leave it random.
//   - Not fair: among many that wait any may be next. No count of entries: one release frees them all; only
//     Do counts its own.
//   - Close releases nothing.
//
// # Assumptions
//
// Those of package lease, but that parties need no equal settings: the record says how long a lock lasts. A
// record that was written by hand is believed as well, and may name a very long time; a forced release ends
// it. Do not use the record of a lock as that of a lease.Lease with other settings: the Lease caps the time
// by its own.
package lock
