package shards

import "github.com/serf-sbr/serf-sbr/simulator/internal/walk"

// fault returns the change of a fault that comes alone, or together with others.
func fault(name string) (change func(*Options), ok bool) {
	switch name {
	case "two shards":
		return func(o *Options) { o.Shards = 2 }, true
	case "another coordinator":
		return func(o *Options) { o.Changes++ }, true
	case "a whim":
		return func(o *Options) { o.Whims++ }, true
	case "a stranger":
		return func(o *Options) { o.Strangers++ }, true
	}
	f, ok := walk.Fault(name)
	return func(o *Options) { f(&o.Options) }, ok
}

// Quick are walks of some seconds, in which whatever is amiss shows soonest: two members between which shards go back and forth, or one whose manager is closed, and opened again.
func Quick() []Options {
	both := []string{"two, a whim, a lost letter", "two, a whim, a whim, a whim, a letter twice", "two, forming, a resignation, a return, a lost letter"}
	return append(Plan(false, append(both, "two, forming, a pause, a letter twice")...), Plan(true, both...)...)
}

// Normal are the walks of every day: each fault alone, and the pairs that meet in practice, with and without leases. They take about half a minute of one core, the quick ones included.
func Normal() []Options {
	both := []string{"forming, a lost letter", "three, forming, a late letter", "three, forming, a letter twice", "a leave", "three, a leave, a lost letter",
		"three, a leave, a late letter", "three, a leave, a letter twice", "three, a crash, a leave", "a crash, a removal",
		"three, a cut", "a cut", "three, a pause", "two, a pause, another coordinator", "a resignation", "an end", "another coordinator, a lost letter",
		"another coordinator, a late letter", "another coordinator, a letter twice", "two, a leave, another coordinator, a lost letter", "three, a newcomer, a crash",
		"three, an end, a leave", "a newcomer, two shards", "three, two shards, a leave", "three, two shards, a crash",
		"three, a resignation, a return", "three, a whim, a whim, a letter twice", "three, a whim, a crash", "three, a whim, a leave", "three, two shards, a whim"}
	leases := []string{"a stranger, a leave", "a stranger, a crash", "a stranger, a lost lease", "a lost lease, another coordinator", "a lost lease, a slow end",
		"three, a lost lease, a leave", "three, a lost lease, a crash", "an end, a lost lease", "a silent store, a leave", "three, a crash, a late letter",
		"three, a whim, a lost lease", "a whim, a silent store"}
	return append(Plan(false, append(both, "three, a leave, another coordinator")...), Plan(true, append(both, leases...)...)...)
}

// Thorough are the walks of some minutes: two and three faults at once, on four members where that has an end.
func Thorough() []Options {
	both := []string{"a leave, a slow end", "a leave, a lost letter", "a leave, a late letter", "forming, a crash", "three, a cut, a lost letter", "three, a cut, another coordinator",
		"three, a pause, a slow end", "three, a crash, another coordinator", "three, a crash, a lost letter", "two, a leave, another coordinator, a late letter",
		"two, a leave, another coordinator, a letter twice", "two, forming, a resignation, a return, a late letter", "two, forming, a resignation, a return, a letter twice",
		"three, a resignation, a return, a lost letter", "three, a resignation, a return, a letter twice", "three, a whim, another coordinator, a letter twice",
		"three, a whim, a cut", "three, a whim, a pause", "two, a whim, a pause, a late letter"}
	leases := []string{"three, a leave, another coordinator", "a lost lease, a leave", "three, a lost lease, a lost lease, a leave", "three, a lost lease, a cut", "three, a lost lease, a pause",
		"three, a lost lease, a slow end, another coordinator", "a lost lease, a stranger, a late letter", "two shards, a lost lease, a lost lease", "a silent store, a crash"}
	return append(Plan(false, both...), Plan(true, append(both, append(leases, "two, forming, a pause, a letter twice")...)...)...)
}

// Plan makes walks of lists of faults, with a lease for each shard or without.
func Plan(lease bool, lists ...string) (all []Options) {
	for _, list := range lists {
		o := Default()
		o.Formed, o.UseLease, o.Name = true, lease, list
		if lease {
			o.Name += ", with leases"
		}
		walk.Faults(list, fault, &o)
		all = append(all, o)
	}
	return all
}
