package simulator

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// Scenario is a scenario in the making. Start with New. Each method changes it and returns it, and mistakes are kept for Build, which
// names all of them at once. Whoever still calls methods must not let others use it at the same time; Build may be called by several.
type Scenario struct {
	s        scenario.Scenario
	acts     []act
	zones    []mark
	roles    []mark
	problems problems
}

// act is what happens from some time on.
type act struct {
	at   time.Duration
	what []Nemesis
}

// mark is a role or a zone, and who has it.
type mark struct {
	name    string
	members []string
}

// New begins a scenario as an empty file does: five members n1 to n5, defaults everywhere, and nothing happens.
func New(name string) *Scenario { return &Scenario{s: withName(scenario.Default(), name)} }

func withName(s scenario.Scenario, name string) scenario.Scenario {
	s.Name = name
	return s
}

// Nodes sets how many members there are: n1 and so on, the oldest first.
func (b *Scenario) Nodes(n int) *Scenario {
	b.s.Cluster.Nodes = scenario.Nodes{Count: n}
	return b
}

// Members sets how the members are called, the oldest first, which also has the lowest address.
func (b *Scenario) Members(names ...string) *Scenario {
	list := make([]scenario.Node, len(names))
	for i, name := range names {
		list[i].Name = name
	}
	b.s.Cluster.Nodes = scenario.Nodes{List: list}
	return b
}

// Role gives members a role, besides those that they have.
func (b *Scenario) Role(role string, members ...string) *Scenario {
	b.roles = append(b.roles, mark{role, members})
	return b
}

// Zone puts members into a zone, whose name then stands for them in Partition and in faults of the store.
func (b *Scenario) Zone(zone string, members ...string) *Scenario {
	b.zones = append(b.zones, mark{zone, members})
	return b
}

// At lets nemeses begin at that time, all of them at once.
func (b *Scenario) At(t time.Duration, what ...Nemesis) *Scenario {
	b.acts = append(b.acts, act{t, what})
	return b
}

// RunFor sets how much time passes in all. Without it the run goes on for 5 minutes after the last step is over.
func (b *Scenario) RunFor(d time.Duration) *Scenario {
	b.s.RunFor = d
	return b
}

// Build returns the scenario of a seed, with plain steps: the same seed gives the same steps, and without random nemeses all seeds
// do. The error names every mistake, one line each.
func (b *Scenario) Build(seed uint64) (*scenario.Scenario, error) {
	s := b.s
	found := problems{lines: slices.Clone(b.problems.lines)}
	s.Cluster.Nodes = b.nodes(&found)
	members := names(&s)
	taken := make(map[string]bool)
	for _, name := range members {
		taken[name] = true
	}
	var end time.Duration
	for i, a := range b.acts {
		// A stream for each, so that a new one leaves the others as they are.
		p := &Plan{rng: rand.New(rand.NewPCG(seed, uint64(i))), now: a.at, members: members, taken: taken, problems: &found}
		p.Play(Together(a.what...))
		s.Steps = append(s.Steps, p.steps...)
		end = max(end, p.now)
	}
	slices.SortStableFunc(s.Steps, func(a, b scenario.Step) int { return cmp.Compare(a.At.From, b.At.From) })
	if s.RunFor == 0 {
		s.RunFor = max(end, s.Over()) + 5*time.Minute
	}
	if err := s.Validate(); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			found.add("%s", located(line, s.Steps))
		}
	}
	if len(found.lines) > 0 {
		return nil, fmt.Errorf("scenario %q: %s", s.Name, strings.Join(found.lines, "\n"+fmt.Sprintf("scenario %q: ", s.Name)))
	}
	return &s, nil
}

// located adds the time to a problem of a step: whoever planned it knows no numbers of steps.
func located(line string, steps []scenario.Step) string {
	var i int
	if _, err := fmt.Sscanf(line, "steps[%d]", &i); err != nil || i >= len(steps) {
		return line
	}
	return fmt.Sprintf("at %v: %s", *steps[i].At, line)
}

// nodes are the members with their roles and zones: a number where nobody has any.
func (b *Scenario) nodes(found *problems) scenario.Nodes {
	n := b.s.Cluster.Nodes
	if len(b.roles)+len(b.zones) == 0 {
		return n
	}
	list := make([]scenario.Node, 0, len(n.List))
	for _, name := range names(&b.s) {
		list = append(list, scenario.Node{Name: name})
	}
	each := func(what string, m mark, set func(*scenario.Node)) {
		for _, name := range m.members {
			i := slices.IndexFunc(list, func(n scenario.Node) bool { return n.Name == name })
			if i < 0 {
				found.add("%s %q: no member is called %.40q", what, m.name, name)
				continue
			}
			set(&list[i])
		}
	}
	for _, r := range b.roles {
		each("role", r, func(n *scenario.Node) { n.Roles = append(n.Roles, r.name) })
	}
	for _, z := range b.zones {
		each("zone", z, func(n *scenario.Node) {
			if n.Zone != "" && n.Zone != z.name {
				found.add("zone %q: %s is already in zone %q", z.name, n.Name, n.Zone)
			}
			n.Zone = z.name
		})
	}
	return scenario.Nodes{List: list}
}

// names are those of the members at the start.
func names(s *scenario.Scenario) (names []string) {
	for _, n := range s.Cluster.Nodes.All() {
		names = append(names, n.Name)
	}
	return names
}
