package slots

import "github.com/serf-sbr/serf-sbr/simulator/internal/walk"

// Normal are the walks of every day: each fault alone, and the pairs that meet in practice, with and without a lease, on four members. They take
// about a minute on one core.
func Normal() []Options {
	both := []string{"forming", "forming, a newcomer", "forming, an old newcomer", "forming, a crash", "a cut", "a crash, a removal", "three, a pause, a slow end",
		"a leave, a slow end", "a crash, a late letter", "an old newcomer, a crash", "an old newcomer, a letter twice", "an end, a late letter",
		"three, a resignation, a late letter, a slow end", "three, a resignation, a letter twice", "three, a resignation, a crash", "three, a leave, a late letter",
		"three, a resignation, a return"}
	leases := []string{"a lost lease, a slow end", "a lost lease, a silent store", "a lost lease, a late letter", "a lost lease, a crash", "three, a cut, a lost lease"}
	return append(plan(false, both...), plan(true, append(both, leases...)...)...)
}

// Thorough are the walks of some minutes: two and three faults at once, on four members where that has an end, on three where it has none, and on two where three
// have more than six million states: an old newcomer and a pause, with a lease.
func Thorough() []Options {
	both := []string{"a pause, a slow end", "a leave, a late letter", "a cut, a late letter", "a leave, a crash, a slow end", "a crash, a crash", "a cut, a removal, a removal",
		"a crash, a late letter, a letter twice", "forming, a late letter",
		"three, an old newcomer, a cut", "two, an old newcomer, a pause", "three, a cut, a crash", "three, a cut, a pause", "three, a pause, a crash", "three, a pause, a late letter",
		"three, a cut, a leave", "three, forming, a resignation", "three, forming, a cut",
		"three, forming, a pause", "three, a leave, a lost letter", "three, a crash, a lost letter",
		"three, a resignation, a return, a letter twice", "three, a resignation, a return, a lost letter"}
	leases := []string{"a cut, a crash", "a resignation, a crash", "forming, a cut", "a lost lease, a cut", "a lost lease, a lost lease, a slow end", "a silent store, a crash, a late letter",
		"three, a lost lease, a pause"}
	return append(plan(false, append(both, "three, an old newcomer, a pause")...), plan(true, append(both, leases...)...)...)
}

// plan makes walks of lists of faults.
func plan(lease bool, lists ...string) (all []Options) {
	for _, list := range lists {
		o := Default()
		o.Formed, o.UseLease = true, lease
		o.Name = list
		if lease {
			o.Name += ", with a lease"
		}
		walk.Faults(list, walk.Fault, &o.Options)
		all = append(all, o)
	}
	return all
}
