package scenario

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/simulator/internal/world"
)

// All members of a cluster should have the same settings. A run can show what becomes of one whose members
// have not.

// Rules are those of a member: its own, or those of all.
func (c *Cluster) Rules(member string) *config.SplitBrainResolver {
	if own := c.Settings[member]; own != nil {
		return own
	}
	return &c.SplitBrainResolver
}

// rules are the simulator's words for a member's own rules; nil where it has those of all, and nobody has
// others.
func (c *Cluster) rules(member string) (*world.Rules, error) {
	if len(c.Settings) == 0 {
		return nil, nil
	}
	r := c.Rules(member)
	strategy, err := r.Strategy()
	if err != nil {
		return nil, err
	}
	f := config.Default()
	f.System, f.SplitBrainResolver, f.Lease = c.System, *r, c.Lease
	times := c.Lease.Settings(r.LeaseMajority.LeaseImplementation)
	return &world.Rules{Resolver: r.Resolver(times), Strategy: strategy, Digest: f.Digest()}, nil
}

// settings checks each member's own rules as those of all are, and refuses what a run cannot show of one
// member alone.
func (c *checker) settings() {
	cl := &c.s.Cluster
	if len(cl.Settings) > 0 && len(cl.Singletons)+len(cl.Shards) > 0 {
		c.Add("cluster.settings", "and singletons or shards do not go together: what these promise is worked out from rules that all have")
	}
	for _, name := range slices.Sorted(maps.Keys(cl.Settings)) {
		at, own, all := "cluster.settings."+name, cl.Settings[name], &cl.SplitBrainResolver
		c.member(at, name)
		switch {
		case own == nil || *own == *all:
			c.Add(at, "says nothing that differs from cluster.split-brain-resolver: leave it out")
			continue
		case own.Probe != all.Probe:
			c.Add(at+".probe", "differs: a run has one failure detector, that of all")
		case own.LeaseMajority.LeaseImplementation != all.LeaseMajority.LeaseImplementation,
			own.LeaseMajority.LeaseName != all.LeaseMajority.LeaseName:
			c.Add(at+".lease-majority", "is about another lease: a run has one, that of all")
		}
		c.Problems = append(c.Problems, own.Problems(at)...)
	}
}

// based returns the cluster under other rules for all; what differs at single members differs as it did.
func (c Cluster) based(rules config.SplitBrainResolver) Cluster {
	old, settings := c.SplitBrainResolver, maps.Clone(c.Settings)
	for name, own := range settings {
		next := rules
		keep(reflect.ValueOf(&next).Elem(), reflect.ValueOf(own).Elem(), reflect.ValueOf(&old).Elem())
		settings[name] = &next
	}
	c.SplitBrainResolver, c.Settings = rules, settings
	return c
}

// keep sets in to what of own differs from old.
func keep(to, own, old reflect.Value) {
	for i := range to.NumField() {
		switch {
		case own.Field(i).Equal(old.Field(i)):
		case own.Field(i).Kind() == reflect.Struct:
			keep(to.Field(i), own.Field(i), old.Field(i))
		default:
			to.Field(i).Set(own.Field(i))
		}
	}
}

// WithStrategy is the scenario under another strategy, everything else as it was. What the strategy cannot do
// without and the file does not say is what most would choose: a quorum of more than half of the nodes, the
// first node as referee. The error, one line for each problem, says what does not fit.
func (s *Scenario) WithStrategy(name string) (*Scenario, error) {
	c, rules := *s, s.Cluster.SplitBrainResolver
	r := &rules
	r.ActiveStrategy = name
	nodes := c.Cluster.Nodes.All()
	if r.StaticQuorum.QuorumSize == 0 {
		r.StaticQuorum.QuorumSize = len(nodes)/2 + 1
	}
	if r.KeepReferee.Address == "" && len(nodes) > 0 {
		r.KeepReferee.Address = nodes[0].Name
	}
	c.Cluster = c.Cluster.based(rules)
	return c.checked(name)
}

// WithConfig is the scenario under the settings of an sbr.yaml: its split-brain-resolver and its lease times.
func (s *Scenario) WithConfig(name string, f *config.File) (*Scenario, error) {
	c := *s
	c.Cluster = c.Cluster.based(f.SplitBrainResolver)
	c.Cluster.Lease = f.Lease
	return c.checked(name)
}

func (s *Scenario) checked(variant string) (*Scenario, error) {
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("%s under %s: %w", s.Name, variant, err)
	}
	return s, nil
}
