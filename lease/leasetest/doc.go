// Package leasetest certifies backends of package lease and helps to test what uses a lease.
//
// A backend proves itself in three lines:
//
//	func TestConformance(t *testing.T) {
//		leasetest.Run(t, func(t *testing.T) leasetest.Harness { return leasetest.Harness{Open: openMyStore} })
//	}
//
// Run checks the Store contract (compare-and-swap, nothing lost in storage, watching, cancellation) and then the whole lease
// algorithm over the backend. What depends on time runs on a Clock that the suite moves by hand, so that a real server need
// not be waited for.
//
// Guarantees: the suite uses only what the contract promises, and leaves no goroutine behind. Non-guarantees: it cannot see
// what a backend does when its server fails between two lines; inject faults for that where you can.
package leasetest
