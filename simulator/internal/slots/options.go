package slots

import (
	"errors"

	"github.com/serf-sbr/serf-sbr/internal/handover"
	core "github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
)

// MaxMembers is how many members a walk may have.
const MaxMembers = walk.MaxMembers

// Options say what may happen in a walk. Start from Default.
type Options struct {
	// Options are what all walks have. Notice is set by a walk.
	walk.Options
	// Handover has the times of the machines.
	Handover handover.Config
}

// Default returns four members with short times, to which nothing happens yet.
func Default() Options {
	o := walk.Default()
	return Options{Options: o, Handover: handover.Config{Rules: core.Rules{
		HandOverRetryInterval: 2 * o.Step, NumberOfRetries: 2, Margin: 4 * o.Step, Trust: 5 * o.Step, LeaseRetryInterval: 2 * o.Step}}}
}

// Validate reports every problem at once, one line each.
func (o *Options) Validate() error {
	h := o.Handover
	h.Self = name(0)
	return errors.Join(o.Options.Validate("slots", nil, []walk.Time{{Name: "HandOverRetryInterval", D: h.HandOverRetryInterval}, {Name: "Margin", D: h.Margin},
		{Name: "Trust", D: h.Trust}, {Name: "LeaseRetryInterval", D: h.LeaseRetryInterval}}), h.Validate("slots"))
}

// Normal are the walks of every day: each fault alone, and the pairs that meet in practice, with and without a lease, on four members. They take
// about a minute on one core.
func Normal() []Options {
	both := []string{"forming", "forming, a newcomer", "forming, an old newcomer", "forming, a crash", "a cut", "a crash, a removal", "three, a pause, a slow end",
		"a leave, a slow end", "a crash, a late message", "an old newcomer, a crash", "an old newcomer, a message twice", "an end, a late message",
		"three, a resignation, a late message, a slow end", "three, a resignation, a message twice", "three, a resignation, a crash", "three, a leave, a late message",
		"three, a resignation, a return"}
	leases := []string{"a lost lease, a slow end", "a lost lease, a silent store", "a lost lease, a late message", "a lost lease, a crash", "three, a cut, a lost lease"}
	return append(plan(false, both...), plan(true, append(both, leases...)...)...)
}

// Thorough are the walks of some minutes: two and three faults at once, on four members where that has an end, on three where it has none, and on two where three
// have more than six million states: an old newcomer and a pause, with a lease.
func Thorough() []Options {
	both := []string{"a pause, a slow end", "a leave, a late message", "a cut, a late message", "a leave, a crash, a slow end", "a crash, a crash", "a cut, a removal, a removal",
		"a crash, a late message, a message twice", "forming, a late message",
		"three, an old newcomer, a cut", "two, an old newcomer, a pause", "three, a cut, a crash", "three, a cut, a pause", "three, a pause, a crash", "three, a pause, a late message",
		"three, a cut, a leave", "three, forming, a resignation", "three, forming, a cut",
		"three, forming, a pause", "three, a leave, a lost message", "three, a crash, a lost message",
		"three, a resignation, a return, a message twice", "three, a resignation, a return, a lost message"}
	leases := []string{"a cut, a crash", "a resignation, a crash", "forming, a cut", "a lost lease, a cut", "a lost lease, a lost lease, a slow end", "a silent store, a crash, a late message",
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
