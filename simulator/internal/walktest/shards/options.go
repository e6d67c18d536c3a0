package shards

import "github.com/serf-sbr/serf-sbr/simulator/internal/walktest"

// Quick are walks of some seconds, in which whatever is amiss shows soonest: two members between which shards
// go back and forth, or one whose manager is closed, and opened again.
func Quick() []walktest.Options {
	both := []string{"two, a whim, a lost message", "two, a whim, a whim, a whim, a message twice", "two, forming, a resignation, a return, a lost message"}
	return append(walktest.Plan(false, append(both, "two, forming, a pause, a message twice")...), walktest.Plan(true, both...)...)
}

// Normal are the walks of every day: each fault alone, and the pairs that meet in practice, with and without
// leases. They take about half a minute of one core, the quick ones included.
func Normal() []walktest.Options {
	both := []string{"forming, a lost message", "three, forming, a late message", "three, forming, a message twice", "a leave", "three, a leave, a lost message",
		"three, a leave, a late message", "three, a leave, a message twice", "three, a crash, a leave", "a crash, a removal",
		"three, a cut", "a cut", "three, a pause", "two, a pause, another coordinator", "a resignation", "an end", "another coordinator, a lost message",
		"another coordinator, a late message", "another coordinator, a message twice", "two, a leave, another coordinator, a lost message", "three, a newcomer, a crash",
		"three, an end, a leave", "a newcomer, two shards", "three, two shards, a leave", "three, two shards, a crash",
		"three, a resignation, a return", "three, a whim, a whim, a message twice", "three, a whim, a crash", "three, a whim, a leave", "three, two shards, a whim"}
	leases := []string{"a stranger, a leave", "a stranger, a crash", "a stranger, a lost lease", "a lost lease, another coordinator", "a lost lease, a slow end",
		"three, a lost lease, a leave", "three, a lost lease, a crash", "an end, a lost lease", "a silent store, a leave", "three, a crash, a late message",
		"three, a whim, a lost lease", "a whim, a silent store"}
	return append(walktest.Plan(false, append(both, "three, a leave, another coordinator")...), walktest.Plan(true, append(both, leases...)...)...)
}

// Thorough are the walks of some minutes: two and three faults at once, on four members where that has an
// end.
func Thorough() []walktest.Options {
	both := []string{"a leave, a slow end", "a leave, a lost message", "a leave, a late message", "forming, a crash", "three, a cut, a lost message", "three, a cut, another coordinator",
		"three, a pause, a slow end", "three, a crash, another coordinator", "three, a crash, a lost message", "two, a leave, another coordinator, a late message",
		"two, a leave, another coordinator, a message twice", "two, forming, a resignation, a return, a late message", "two, forming, a resignation, a return, a message twice",
		"three, a resignation, a return, a lost message", "three, a resignation, a return, a message twice", "three, a whim, another coordinator, a message twice",
		"three, a whim, a cut", "three, a whim, a pause", "two, a whim, a pause, a late message"}
	leases := []string{"three, a leave, another coordinator", "a lost lease, a leave", "three, a lost lease, a lost lease, a leave", "three, a lost lease, a cut", "three, a lost lease, a pause",
		"three, a lost lease, a slow end, another coordinator", "a lost lease, a stranger, a late message", "two shards, a lost lease, a lost lease", "a silent store, a crash"}
	return append(walktest.Plan(false, both...), walktest.Plan(true, append(both, append(leases, "two, forming, a pause, a message twice")...)...)...)
}
