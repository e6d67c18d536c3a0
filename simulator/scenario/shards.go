package scenario

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/simulator/internal/world"
)

// Shards are some of one type, each of which runs on one member: see package sharding. Times that are zero are at their defaults.
type Shards struct {
	// Type is what the expectations call them. Required.
	Type string `yaml:"type"`
	// Count is how many there are: "0", "1" and so on. Zero: 8.
	Count int `yaml:"count"`
	// The others are those of Singleton, of each shard; with UseLease their coordinator has a lease as well.
	Role                  string            `yaml:"role"`
	UseLease              strictyaml.Switch `yaml:"use-lease"`
	RemovalMargin         time.Duration     `yaml:"removal-margin"`
	HandOverRetryInterval time.Duration     `yaml:"hand-over-retry-interval"`
	NumberOfRetries       int               `yaml:"number-of-retries"`
	LeaseRetryInterval    time.Duration     `yaml:"lease-retry-interval"`
	StopTakes             time.Duration     `yaml:"stop-takes"`
	EndsAfter             time.Duration     `yaml:"ends-after"`
	// ReopenedAfter is about how long a member hosts shards before its manager is stopped and another one started. Zero: it is not.
	ReopenedAfter time.Duration `yaml:"reopened-after"`
}

// Limits of shards.
const (
	maxTypes  = 4
	maxShards = 64
)

// shardsType is what package sharding takes.
var shardsType = regexp.MustCompile(`^[a-z0-9._-]{1,40}$`)

// each is one of them, as a singleton.
func (x *Shards) each() *Singleton {
	return &Singleton{
		Name: x.Type, Role: x.Role, UseLease: x.UseLease, RemovalMargin: x.RemovalMargin, HandOverRetryInterval: x.HandOverRetryInterval,
		NumberOfRetries: x.NumberOfRetries, LeaseRetryInterval: x.LeaseRetryInterval, StopTakes: x.StopTakes, EndsAfter: x.EndsAfter,
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
		c.slot(at, x.each())
		c.slotSpan(at+".reopened-after", x.ReopenedAfter, true)
	}
}

// shards are the simulator's words for the shards.
func (s *Scenario) shards() (all []world.ShardsOptions) {
	for i := range s.Cluster.Shards {
		x := &s.Cluster.Shards[i]
		o := world.DefaultShardsOptions()
		o.SlotOptions, o.ReopensAfter = s.slot(x.each()), x.ReopenedAfter
		if x.Count > 0 {
			o.Count = x.Count
		}
		all = append(all, o)
	}
	return all
}

// expectShards checks what is expected of shards, in the order of their types, so that the same file has the same problems.
func (c *checker) expectShards(expected map[string][]string) {
	for _, kind := range slices.Sorted(maps.Keys(expected)) {
		if !slices.ContainsFunc(c.s.Cluster.Shards, func(x Shards) bool { return x.Type == kind }) {
			c.Add("expect.shards", "no shards are of the type %.60q", kind)
		}
		members := expected[kind]
		c.set("expect.shards."+kind, &members)
	}
}

// misplacedShards says which shards run elsewhere than expected: each must run on one of the members, and each of these must run some.
func (s *Scenario) misplacedShards(results []ShardsResult) (failures []string) {
	for _, r := range results {
		want, ok := s.Expect.Shards[r.Type]
		switch {
		case !ok:
		case !same(want, r.On):
			failures = append(failures, fmt.Sprintf("shards: %s: expected on %s, found on %s", r.Type, list(want), list(r.On)))
		case len(want) > 0 && r.Running < r.Shards:
			failures = append(failures, fmt.Sprintf("shards: %s: only %d of %d run", r.Type, r.Running, r.Shards))
		}
	}
	return failures
}

// ShardsResult is what became of the shards of a type in one run.
type ShardsResult struct {
	Type string `json:"type"`
	// Shards is how many there are, Running how many of them run at the end, On the names of the nodes on which they do, in order.
	Shards  int      `json:"shards"`
	Running int      `json:"running"`
	On      []string `json:"on"`
	// Coordinators counts the runs of the coordinator, Resigned those that ended of themselves.
	Coordinators int `json:"coordinators"`
	Resigned     int `json:"resigned"`
	// The others are those of SingletonResult, of all shards together.
	Starts      int            `json:"starts"`
	HandedOver  int            `json:"handed-over"`
	Overlaps    int            `json:"overlaps"`
	Why         map[string]int `json:"why,omitempty"`
	Writes      int            `json:"writes"`
	Rejected    int            `json:"rejected"`
	Interleaved int            `json:"interleaved"`
	Unordered   int            `json:"unordered"`
}

func shardsResults(outcomes []world.ShardsOutcome) (all []ShardsResult) {
	for _, o := range outcomes {
		r := ShardsResult{Type: o.Name, Shards: len(o.Shards), On: []string{}, Coordinators: o.Coordinators, Resigned: o.Resigned}
		for _, x := range o.Shards {
			if x.On != "" {
				r.Running++
				r.On = append(r.On, x.On)
			}
			r.Starts += x.Starts
			r.HandedOver += x.HandOvers
			r.Overlaps += x.Overlaps
			r.Writes += x.Writes
			r.Rejected += x.Rejected
			r.Interleaved += x.Interleaved
			r.Unordered += x.Unordered
			for why, n := range x.Why {
				if r.Why == nil {
					r.Why = make(map[string]int)
				}
				r.Why[why] += n
			}
		}
		slices.Sort(r.On)
		r.On = slices.Compact(r.On)
		all = append(all, r)
	}
	return all
}
