// Package leasetest certifies backends of package lease and helps to test what uses a lease or a lock.
//
// A backend proves itself in three lines:
//
//	func TestConformance(t *testing.T) {
//		leasetest.Run(t, func(t *testing.T) leasetest.Harness { return leasetest.Harness{Open: openMyStore} })
//	}
//
// Run checks the Store contract (compare-and-swap, nothing lost in storage, watching, cancellation), then
// leases and locks over the backend, and whether what many clients see is explained by one lease
// (linearizability), also across a failover where the Harness can bring one about. What depends on time runs
// on a Clock that the suite moves by hand, so that a real server need not be waited for.
//
// Code that takes a lock is tested in three lines too. It takes what it needs as an interface of its own, say
// Do, and gets a Mock that is open, closed, broken or scripted, and can be lost on demand:
//
//	lock := leasetest.Open()
//	require.NoError(t, runExclusively(ctx, lock))
//	require.True(t, lock.WasReleased())
//
// What a Mock does not do (time, several parties, Read and Watch, a lock.Manager) the real thing does as well
// in a test: over lease/memory, whose Factory fits a Manager, with a Clock or in virtual time. NewFaulty
// breaks the connection of one party to it, or to any other store, by count; OnRequest draws a fate for each
// request.
//
// # Guarantees
//
//   - The suite uses only what the contract promises, and leaves no goroutine behind.
//   - A Mock has the methods of a *lock.Lock with the same meaning: what is not a grant never makes Held
//     true, and the context of work ends with the lock.
//   - A Faulty without faults is the store. It is a Watcher or Limiter exactly if that is. It keeps the
//     contract: a Conflict or Refuse was not written, an unknown outcome was written or not, or will be, as
//     its fault says.
//
// # Non-guarantees
//
//   - The suite cannot see what a backend does when its server fails between two lines; a Faulty fails
//     between backend and lease. Inject faults into the server's connections where you can.
//   - A Mock does not show that code is safe, only what it does with an answer. It is neither single-entrant
//     nor re-entrant: each acquire gets the next answer.
package leasetest
