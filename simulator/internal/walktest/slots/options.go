package slots

import "github.com/serf-sbr/serf-sbr/simulator/internal/walktest"

// Normal are the walks of every day: each fault alone, and the pairs that meet in practice, with and without
// a lease, on four members. They take about a minute on one core.
func Normal() []walktest.Options {
	both := []string{
		"forming", "forming, a newcomer", "forming, an old newcomer", "forming, a crash", "a cut", "a crash, a removal",
		"three, a pause, a slow end", "a leave, a slow end", "a crash, a late message", "an old newcomer, a crash",
		"an old newcomer, a message twice", "an end, a late message", "three, a resignation, a late message, a slow end",
		"three, a resignation, a message twice", "three, a resignation, a crash", "three, a leave, a late message",
		"three, a resignation, a return",
	}
	leases := []string{
		"a lost lease, a slow end", "a lost lease, a silent store", "a lost lease, a late message", "a lost lease, a crash",
		"three, a cut, a lost lease",
	}
	return append(walktest.Plan(false, both...), walktest.Plan(true, append(both, leases...)...)...)
}

// Thorough are the walks of some minutes: two and three faults at once, on four members where that has an
// end, on three where it has none, and on two where three have more than six million states: an old newcomer
// and a pause, with a lease.
func Thorough() []walktest.Options {
	both := []string{
		"a pause, a slow end", "a leave, a late message", "a cut, a late message", "a leave, a crash, a slow end",
		"a crash, a crash", "a cut, a removal, a removal", "a crash, a late message, a message twice",
		"forming, a late message", "three, an old newcomer, a cut", "two, an old newcomer, a pause", "three, a cut, a crash",
		"three, a cut, a pause", "three, a pause, a crash", "three, a pause, a late message", "three, a cut, a leave",
		"three, forming, a resignation", "three, forming, a cut", "three, forming, a pause", "three, a leave, a lost message",
		"three, a crash, a lost message", "three, a resignation, a return, a message twice",
		"three, a resignation, a return, a lost message",
	}
	leases := []string{
		"a cut, a crash", "a resignation, a crash", "forming, a cut", "a lost lease, a cut",
		"a lost lease, a lost lease, a slow end", "a silent store, a crash, a late message", "three, a lost lease, a pause",
	}
	return append(walktest.Plan(false, append(both, "three, an old newcomer, a pause")...), walktest.Plan(true, append(both, leases...)...)...)
}
