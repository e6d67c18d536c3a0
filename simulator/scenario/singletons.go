package scenario

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/simulator/internal/world"
)

// Singleton is something that runs on one member only, the oldest one: see package singleton. Times that are zero are at their defaults.
type Singleton struct {
	// Name is what the expectations call it. Required.
	Name string `yaml:"name"`
	// Role: only members with it run the singleton. Empty: all do.
	Role string `yaml:"role"`
	// UseLease: it runs only with a lease of its own, under the times of Cluster.Lease.
	UseLease strictyaml.Switch `yaml:"use-lease"`
	// RemovalMargin is how long after the removal of a member that may have run it nothing starts. Zero: stable-after.
	RemovalMargin time.Duration `yaml:"removal-margin"`
	// HandOverRetryInterval is the pause between two tries to ask the others, NumberOfRetries how often a silent member is asked before a lease
	// decides. Zero: 1 s and 15.
	HandOverRetryInterval time.Duration `yaml:"hand-over-retry-interval"`
	NumberOfRetries       int           `yaml:"number-of-retries"`
	// LeaseRetryInterval is the pause between two tries to get the lease. Zero: 5 s.
	LeaseRetryInterval time.Duration `yaml:"lease-retry-interval"`
	// StopTakes is how long it takes to end at most once it was asked to. Zero: 1 s.
	StopTakes time.Duration `yaml:"stop-takes"`
	// EndsAfter is about how long a run lasts before it ends by itself. Zero: it does not.
	EndsAfter time.Duration `yaml:"ends-after"`
}

// Limits of singletons.
const (
	maxSingletons = 10
	maxRetries    = 1000
)

// singletonName is what package singleton takes.
var singletonName = regexp.MustCompile(`^[a-z0-9._-]{1,50}$`)

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
		c.slot(at, s)
	}
}

// slot checks what singletons and shards have in common.
func (c *checker) slot(at string, s *Singleton) {
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

// slots are the simulator's words for the singletons.
func (s *Scenario) slots() (slots []world.SlotOptions) {
	for i := range s.Cluster.Singletons {
		slots = append(slots, s.slot(&s.Cluster.Singletons[i]))
	}
	return slots
}

func (s *Scenario) slot(x *Singleton) world.SlotOptions {
	o := world.DefaultSlotOptions()
	o.Name, o.Role, o.UseLease, o.EndsAfter = x.Name, x.Role, bool(x.UseLease), x.EndsAfter
	o.Margin = cmp.Or(x.RemovalMargin, s.Cluster.SplitBrainResolver.StableAfter)
	o.HandOverRetryInterval = cmp.Or(x.HandOverRetryInterval, o.HandOverRetryInterval)
	o.NumberOfRetries = cmp.Or(x.NumberOfRetries, o.NumberOfRetries)
	o.LeaseRetryInterval = cmp.Or(x.LeaseRetryInterval, o.LeaseRetryInterval)
	o.StopTakes = cmp.Or(x.StopTakes, o.StopTakes)
	return o
}

// expectSingletons checks what is expected of singletons, in the order of their names, so that the same file has the same problems.
func (c *checker) expectSingletons(expected map[string]string) {
	var all []string
	for name := range expected {
		all = append(all, name)
	}
	slices.Sort(all)
	for _, name := range all {
		if !slices.ContainsFunc(c.s.Cluster.Singletons, func(s Singleton) bool { return s.Name == name }) {
			c.Add("expect.singletons", "no singleton is called %.60q", name)
		}
		if on := expected[name]; on != none {
			c.member("expect.singletons."+name, on)
		}
	}
}

// misplaced says which singletons run elsewhere than expected.
func (s *Scenario) misplaced(outcomes []world.SlotOutcome) (failures []string) {
	for _, o := range outcomes {
		want, ok := s.Expect.Singletons[o.Name]
		if ok && want != holder(o.On) {
			failures = append(failures, fmt.Sprintf("singletons: %s: expected on %s, found on %s", o.Name, want, holder(o.On)))
		}
	}
	return failures
}

// SingletonResult is what became of a singleton in one run.
type SingletonResult struct {
	Name string `json:"name"`
	// On is the name of the node on which it runs at the end, empty for none.
	On string `json:"on"`
	// Starts counts its runs, HandedOver those that were handed over by the run before.
	Starts     int `json:"starts"`
	HandedOver int `json:"handed-over"`
	// Overlaps counts pairs of runs that were active at once where that is no broken promise: see world.SlotOutcome.
	Overlaps int `json:"overlaps"`
	// Why says how many of the Overlaps came about for which reason.
	Why map[string]int `json:"why,omitempty"`
	// Interleaved counts writes of an older run that came after one of a newer run: what would do harm without a fence. Rejected are those of all
	// Writes that the fence kept out.
	Writes      int `json:"writes"`
	Rejected    int `json:"rejected"`
	Interleaved int `json:"interleaved"`
	// Unordered counts starts under a token that was not larger than all before, where that is no broken promise.
	Unordered int `json:"unordered"`
}

func singletonResults(outcomes []world.SlotOutcome) (all []SingletonResult) {
	for _, o := range outcomes {
		all = append(all, SingletonResult{
			Name: o.Name, On: o.On, Starts: o.Starts, HandedOver: o.HandOvers, Overlaps: o.Overlaps, Why: o.Why,
			Unordered: o.Unordered, Writes: o.Writes, Rejected: o.Rejected, Interleaved: o.Interleaved,
		})
	}
	return all
}
