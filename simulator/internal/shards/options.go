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
	a, err := o.allocator()
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	host, chief := o.host(0), o.coordinator(0, 1, a)
	return errors.Join(append(errs, host.Validate(), chief.Validate())...)
}
