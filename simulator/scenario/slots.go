package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/simulator/internal/world"
)

// Singleton is something that runs on one member only, the oldest one: see package singleton.
type Singleton struct {
	// Name is what the expectations call it. Required.
	Name      string `yaml:"name"`
	SlotRules `yaml:",inline"`
}

// Shards are some of one type, each of which runs on one member: see package sharding.
type Shards struct {
	// Type is what the expectations call them. Required.
	Type string `yaml:"type"`
	// Count is how many there are: "0", "1" and so on. Zero: 8.
	Count int `yaml:"count"`
	// SlotRules are those of each shard; with UseLease their coordinator has a lease as well.
	SlotRules `yaml:",inline"`
	// ReopenedAfter is about how long a member hosts shards before its manager is stopped and another one
	// started. Zero: it is not.
	ReopenedAfter time.Duration `yaml:"reopened-after"`
}

// SlotRules are those of a singleton, and of each shard. Times that are zero are at their defaults.
type SlotRules struct {
	// Role: only members with it run it. Empty: all do.
	Role string `yaml:"role"`
	// UseLease: it runs only with a lease of its own, under the times of Cluster.Lease.
	UseLease strictyaml.Switch `yaml:"use-lease"`
	// RemovalMargin is how long after the removal of a member that may have run it nothing starts. Zero:
	// stable-after.
	RemovalMargin time.Duration `yaml:"removal-margin"`
	// HandOverRetryInterval is the pause between two tries to ask the others, NumberOfRetries how often a
	// silent member is asked before a lease decides. Zero: 1 s and 15.
	HandOverRetryInterval time.Duration `yaml:"hand-over-retry-interval"`
	NumberOfRetries       int           `yaml:"number-of-retries"`
	// LeaseRetryInterval is the pause between two tries to get the lease. Zero: 5 s.
	LeaseRetryInterval time.Duration `yaml:"lease-retry-interval"`
	// StopTakes is how long it takes to end at most once it was asked to. Zero: 1 s.
	StopTakes time.Duration `yaml:"stop-takes"`
	// EndsAfter is about how long a run lasts before it ends by itself. Zero: it does not.
	EndsAfter time.Duration `yaml:"ends-after"`
}

// SingletonResult is what became of a singleton in one run.
type SingletonResult = world.SlotOutcome

// ShardsResult is what became of the shards of a type in one run.
type ShardsResult = world.ShardsOutcome

// SlotCounts is what happened to all runs of singletons, or of shards.
type SlotCounts = world.SlotCounts

// Limits of singletons and shards.
const (
	maxSingletons = 10
	maxTypes      = 4
	maxShards     = 64
	maxRetries    = 1000
)

// singletonName is what package singleton takes, shardsType what package sharding does.
var (
	singletonName = regexp.MustCompile(`^[a-z0-9._-]{1,50}$`)
	shardsType    = regexp.MustCompile(`^[a-z0-9._-]{1,40}$`)
)

func (c *checker) singletons() {
	all := c.s.Cluster.Singletons
	if n := len(all); n > maxSingletons {
		c.Add("cluster.singletons", "are %d: at most %d are played", n, maxSingletons)
		return
	}
	for i := range all {
		s, at := &all[i], fmt.Sprintf("cluster.singletons[%d]", i)
		if !singletonName.MatchString(s.Name) {
			c.Add(at+".name", "is %.60q: it must be 1 to 50 of a-z, 0-9, '.', '_' and '-'", s.Name)
		}
		if slices.ContainsFunc(all[:i], func(o Singleton) bool { return o.Name == s.Name }) {
			c.Add(at+".name", "%q is the name of another one", s.Name)
		}
		c.slot(at, &s.SlotRules)
	}
}

func (c *checker) shards() {
	all := c.s.Cluster.Shards
	if n := len(all); n > maxTypes {
		c.Add("cluster.shards", "are of %d types: at most %d are played", n, maxTypes)
		return
	}
	for i := range all {
		x, at := &all[i], fmt.Sprintf("cluster.shards[%d]", i)
		if !shardsType.MatchString(x.Type) {
			c.Add(at+".type", "is %.60q: it must be 1 to 40 of a-z, 0-9, '.', '_' and '-'", x.Type)
		}
		if slices.ContainsFunc(all[:i], func(o Shards) bool { return o.Type == x.Type }) {
			c.Add(at+".type", "%q is the type of others", x.Type)
		}
		if x.Count < 0 || x.Count > maxShards {
			c.Add(at+".count", "is %d: it must be 1 to %d", x.Count, maxShards)
		}
		c.slot(at, &x.SlotRules)
		c.slotSpan(at+".reopened-after", x.ReopenedAfter, true)
	}
}

// slot checks what singletons and shards have in common.
func (c *checker) slot(at string, s *SlotRules) {
	if s.NumberOfRetries < 0 || s.NumberOfRetries > maxRetries {
		c.Add(at+".number-of-retries", "is %d: it must be 0 to %d", s.NumberOfRetries, maxRetries)
	}
	c.slotSpan(at+".removal-margin", s.RemovalMargin, false)
	c.slotSpan(at+".hand-over-retry-interval", s.HandOverRetryInterval, true)
	c.slotSpan(at+".lease-retry-interval", s.LeaseRetryInterval, true)
	c.slotSpan(at+".stop-takes", s.StopTakes, false)
	c.slotSpan(at+".ends-after", s.EndsAfter, true)
}

// slotSpan checks a time, that may be bounded below.
func (c *checker) slotSpan(at string, d time.Duration, bounded bool) {
	c.span(at, d, false)
	if bounded && d > 0 && d < minLeaseTime {
		c.Add(at, "is %v: the simulator plays nothing below %v", d, minLeaseTime)
	}
}

// slots are the simulator's words for the singletons, shards those for the shards.
func (s *Scenario) slots() (slots []world.SlotOptions) {
	for i := range s.Cluster.Singletons {
		x := &s.Cluster.Singletons[i]
		slots = append(slots, s.slot(x.Name, &x.SlotRules))
	}
	return slots
}

func (s *Scenario) shards() (all []world.ShardsOptions) {
	for i := range s.Cluster.Shards {
		x := &s.Cluster.Shards[i]
		o := world.DefaultShardsOptions()
		o.SlotOptions, o.ReopensAfter = s.slot(x.Type, &x.SlotRules), x.ReopenedAfter
		if x.Count > 0 {
			o.Count = x.Count
		}
		all = append(all, o)
	}
	return all
}

func (s *Scenario) slot(name string, x *SlotRules) world.SlotOptions {
	rules := s.Cluster.SplitBrainResolver.Resolver(s.lease())
	o := world.DefaultSlotOptions()
	o.Name, o.Role, o.UseLease, o.EndsAfter = name, x.Role, bool(x.UseLease), x.EndsAfter
	o.Margin = cmp.Or(x.RemovalMargin, rules.RemovalMargin())
	o.HandOverRetryInterval = cmp.Or(x.HandOverRetryInterval, o.HandOverRetryInterval)
	o.NumberOfRetries = cmp.Or(x.NumberOfRetries, o.NumberOfRetries)
	o.LeaseRetryInterval = cmp.Or(x.LeaseRetryInterval, o.LeaseRetryInterval)
	o.StopTakes = cmp.Or(x.StopTakes, o.StopTakes)
	return o
}

// expectSlots checks what is expected of singletons and shards, in the order of their names, so that the same
// file has the same problems.
func (c *checker) expectSlots(e *Expect) {
	for _, name := range slices.Sorted(maps.Keys(e.Singletons)) {
		if !slices.ContainsFunc(c.s.Cluster.Singletons, func(s Singleton) bool { return s.Name == name }) {
			c.Add("expect.singletons", "no singleton is called %.60q", name)
		}
		if on := e.Singletons[name]; on != none {
			c.member("expect.singletons."+name, on)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(e.Shards)) {
		if !slices.ContainsFunc(c.s.Cluster.Shards, func(x Shards) bool { return x.Type == kind }) {
			c.Add("expect.shards", "no shards are of the type %.60q", kind)
		}
		members := e.Shards[kind]
		c.set("expect.shards."+kind, &members)
	}
}

// misplaced says which singletons and shards run elsewhere than expected. Each shard must run on one of the
// members, and each of these must run some.
func (e *Expect) misplaced(r *Result) (failures []string) {
	fail := func(format string, args ...any) { failures = append(failures, fmt.Sprintf(format, args...)) }
	for _, o := range r.Singletons {
		want, ok := e.Singletons[o.Name]
		if ok && want != holder(o.On) {
			fail("singletons: %s: expected on %s, found on %s", o.Name, want, holder(o.On))
		}
	}
	for _, r := range r.Shards {
		want, ok := e.Shards[r.Type]
		switch {
		case !ok:
		case !same(want, r.On):
			fail("shards: %s: expected on %s, found on %s", r.Type, list(want), list(r.On))
		case len(want) > 0 && r.Running < r.Shards:
			fail("shards: %s: only %d of %d run", r.Type, r.Running, r.Shards)
		}
	}
	return failures
}
