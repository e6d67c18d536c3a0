package scenario

import (
	"fmt"

	"github.com/serf-sbr/serf-sbr/internal/config"
)

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
