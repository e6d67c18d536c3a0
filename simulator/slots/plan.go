package slots

import (
	"fmt"
	"strings"
)

// single are faults that come alone, or together with others.
var single = map[string]func(*Options){
	"forming":         func(o *Options) { o.Formed = false },
	"three":           func(o *Options) { o.Members = 3 },
	"a newcomer":      func(o *Options) { o.Joins = 1 },
	"an old newcomer": func(o *Options) { o.Joins, o.Skewed = 1, true },
	"a cut":           func(o *Options) { o.Cuts++ },
	"a crash":         func(o *Options) { o.Crashes++ },
	"a pause":         func(o *Options) { o.Pauses++ },
	"a resignation":   func(o *Options) { o.Resigns++ },
	"a leave":         func(o *Options) { o.Leaves++ },
	"an end":          func(o *Options) { o.Ends++ },
	"a late letter":   func(o *Options) { o.Late++ },
	"a letter twice":  func(o *Options) { o.Twice++ },
	"a removal":       func(o *Options) { o.Removals++ },
	"a slow end":      func(o *Options) { o.Slow++ },
	"a lost lease":    func(o *Options) { o.Losses++ },
	"a silent store":  func(o *Options) { o.Doubts++ },
}

// Normal are the walks of every day: each fault alone, and the pairs that meet in practice, with and without a lease, on four members. They take
// about a minute on one core.
func Normal() []Options {
	both := []string{"forming", "forming, a newcomer", "forming, an old newcomer", "forming, a crash", "a cut", "a crash, a removal", "three, a pause, a slow end",
		"a leave, a slow end", "a crash, a late letter", "an old newcomer, a crash", "an old newcomer, a letter twice", "an end, a late letter",
		"three, a resignation, a late letter, a slow end", "three, a resignation, a letter twice", "three, a resignation, a crash", "three, a leave, a late letter"}
	leases := []string{"a lost lease, a slow end", "a lost lease, a silent store", "a lost lease, a late letter", "a lost lease, a crash", "three, a cut, a lost lease"}
	return append(plan(false, both...), plan(true, append(both, leases...)...)...)
}

// Thorough are the walks of a long night: two and three faults at once on four members.
func Thorough() []Options {
	both := []string{"three, an old newcomer, a cut", "a pause, a slow end", "a leave, a late letter", "a cut, a crash", "a cut, a pause", "a pause, a crash", "a cut, a late letter", "a pause, a late letter",
		"a cut, a leave", "a resignation, a crash", "an old newcomer, a cut", "an old newcomer, a pause", "a leave, a crash, a slow end", "a crash, a crash",
		"a resignation, a leave, a slow end",
		"a cut, a removal, a removal", "a crash, a late letter, a letter twice", "forming, a late letter", "forming, a resignation", "forming, a cut", "forming, a pause"}
	leases := []string{"a lost lease, a cut", "a lost lease, a pause", "a lost lease, a lost lease, a slow end", "a silent store, a crash, a late letter"}
	return append(plan(false, both...), plan(true, append(both, leases...)...)...)
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
		for name := range strings.SplitSeq(list, ", ") {
			change, ok := single[name]
			if !ok {
				panic(fmt.Sprintf("slots: there is no %q", name)) // a mistake in the program
			}
			change(&o)
		}
		all = append(all, o)
	}
	return all
}
