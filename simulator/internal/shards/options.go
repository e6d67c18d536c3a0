package shards

import (
	"errors"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/shards/coordinator"
	"github.com/serf-sbr/serf-sbr/internal/shards/host"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sharding/allocation"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
)

// MaxShards is how many shards a walk may have.
const MaxShards = 2

// Options say what may happen in a walk. Start from Default.
type Options struct {
	// Options are what all walks have. Notice is set by a walk.
	walk.Options
	// Shards is how many there are, at most MaxShards.
	Shards int
	// Changes is how often another member coordinates although the one before is well, and does not know of it at once.
	Changes int
	// Whims is how often the allocation wants a shard elsewhere although it runs well: as it does where members come and go for long enough.
	Whims int
	// Strangers is how often somebody out of the cluster takes a lease that nobody holds, for any time.
	Strangers int
	// Host and Coordinator have the times of the machines; what they have in common counts as Host has it.
	Host        host.Config
	Coordinator coordinator.Config
	// Limits are the allocator's.
	Limits allocation.Config
}

// never is later than any walk: nobody audits. What comes after the horizon is all the same.
const (
	never   = 1000 * time.Hour
	horizon = time.Hour
)

// Default returns four members and a shard with short times, to which nothing happens yet.
func Default() Options {
	o := walk.Default()
	return Options{Options: o, Shards: 1, Limits: allocation.DefaultConfig(), Coordinator: coordinator.Config{AuditInterval: never}, Host: host.Config{Rules: slot.Rules{
		HandOverRetryInterval: 2 * o.Step, NumberOfRetries: 2, Margin: 4 * o.Step, Trust: 5 * o.Step, LeaseRetryInterval: 2 * o.Step}}}
}

// host is the configuration of a member's host.
func (o *Options) host(i int) host.Config {
	c := o.Host
	c.Self, c.Shards, c.Digest, c.UseLease = name(i), o.Shards, 1, o.UseLease
	return c
}

// coordinator is the configuration of a coordinator.
func (o *Options) coordinator(i int, term uint64, a coordinator.Allocator) coordinator.Config {
	c := o.Coordinator
	c.Rules, c.Term, c.Allocator, c.Digest = o.host(i).Rules, term, a, 1
	return c
}

func (o *Options) allocator() (*allocation.Allocator, error) {
	return allocation.New("walk", []string{"x", "y"}[:min(max(o.Shards, 0), MaxShards)], o.Limits)
}

// patience is that of a member whose manager is stopped.
func (o *Options) patience() time.Duration {
	return time.Duration(o.Host.NumberOfRetries) * o.Host.HandOverRetryInterval
}

// Validate reports every problem at once, one line each.
func (o *Options) Validate() error {
	h := &o.Host
	errs := []error{o.Options.Validate("shards", []walk.Number{{Name: "Changes", N: o.Changes}, {Name: "Strangers", N: o.Strangers}, {Name: "Whims", N: o.Whims}},
		[]walk.Time{{Name: "HandOverRetryInterval", D: h.HandOverRetryInterval}, {Name: "Margin", D: h.Margin}, {Name: "Trust", D: h.Trust},
			{Name: "LeaseRetryInterval", D: h.LeaseRetryInterval}, {Name: "AuditInterval", D: o.Coordinator.AuditInterval}})}
	if o.Shards < 1 || o.Shards > MaxShards {
		errs = append(errs, errors.New("shards: there may be 1 or 2 shards"))
	}
	if !o.UseLease && o.Strangers > 0 {
		errs = append(errs, errors.New("shards: Strangers need UseLease"))
	}
	_, err := o.allocator()
	host := o.host(0)
	return errors.Join(append(errs, err, host.Validate("shards"))...)
}

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
	both := []string{"two, a whim, a lost message", "two, a whim, a whim, a whim, a message twice", "two, forming, a resignation, a return, a lost message"}
	return append(Plan(false, append(both, "two, forming, a pause, a message twice")...), Plan(true, both...)...)
}

// Normal are the walks of every day: each fault alone, and the pairs that meet in practice, with and without leases. They take about half a minute of one core, the quick ones included.
func Normal() []Options {
	both := []string{"forming, a lost message", "three, forming, a late message", "three, forming, a message twice", "a leave", "three, a leave, a lost message",
		"three, a leave, a late message", "three, a leave, a message twice", "three, a crash, a leave", "a crash, a removal",
		"three, a cut", "a cut", "three, a pause", "two, a pause, another coordinator", "a resignation", "an end", "another coordinator, a lost message",
		"another coordinator, a late message", "another coordinator, a message twice", "two, a leave, another coordinator, a lost message", "three, a newcomer, a crash",
		"three, an end, a leave", "a newcomer, two shards", "three, two shards, a leave", "three, two shards, a crash",
		"three, a resignation, a return", "three, a whim, a whim, a message twice", "three, a whim, a crash", "three, a whim, a leave", "three, two shards, a whim"}
	leases := []string{"a stranger, a leave", "a stranger, a crash", "a stranger, a lost lease", "a lost lease, another coordinator", "a lost lease, a slow end",
		"three, a lost lease, a leave", "three, a lost lease, a crash", "an end, a lost lease", "a silent store, a leave", "three, a crash, a late message",
		"three, a whim, a lost lease", "a whim, a silent store"}
	return append(Plan(false, append(both, "three, a leave, another coordinator")...), Plan(true, append(both, leases...)...)...)
}

// Thorough are the walks of some minutes: two and three faults at once, on four members where that has an end.
func Thorough() []Options {
	both := []string{"a leave, a slow end", "a leave, a lost message", "a leave, a late message", "forming, a crash", "three, a cut, a lost message", "three, a cut, another coordinator",
		"three, a pause, a slow end", "three, a crash, another coordinator", "three, a crash, a lost message", "two, a leave, another coordinator, a late message",
		"two, a leave, another coordinator, a message twice", "two, forming, a resignation, a return, a late message", "two, forming, a resignation, a return, a message twice",
		"three, a resignation, a return, a lost message", "three, a resignation, a return, a message twice", "three, a whim, another coordinator, a message twice",
		"three, a whim, a cut", "three, a whim, a pause", "two, a whim, a pause, a late message"}
	leases := []string{"three, a leave, another coordinator", "a lost lease, a leave", "three, a lost lease, a lost lease, a leave", "three, a lost lease, a cut", "three, a lost lease, a pause",
		"three, a lost lease, a slow end, another coordinator", "a lost lease, a stranger, a late message", "two shards, a lost lease, a lost lease", "a silent store, a crash"}
	return append(Plan(false, both...), Plan(true, append(both, append(leases, "two, forming, a pause, a message twice")...)...)...)
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
