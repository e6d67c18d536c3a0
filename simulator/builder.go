package simulator

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// Scenario is a scenario in the making: what a file says, and nemeses. Start with New. Each method changes it
// and returns it, and mistakes are kept for Build, which names all of them at once. Do not use a Scenario
// from other goroutines while a method changes it; Build may run several times at once.
type Scenario struct {
	base  scenario.Scenario
	texts []func(*scenario.Scenario) error
	acts  []act
}

// act is what happens from some time on.
type act struct {
	at   time.Duration
	what []Nemesis
}

// New begins a scenario as an empty file does: five members n1 to n5, defaults everywhere, and nothing
// happens.
func New(name string) *Scenario {
	b := &Scenario{base: scenario.Default()}
	b.base.Name = name
	return b
}

// Set takes over keys of a scenario file, written as there; what they do not say stays as it is. Steps are
// those of the file, and what At says comes on top.
//
//	Set(`
//	cluster: {nodes: 7, split-brain-resolver: {stable-after: 7s}}
//	expect: {survivors: [n1, n2, n3], resolved-within: 60s}`)
//
// Without run-for the run goes on for 5 minutes after the last step is over.
func (b *Scenario) Set(yaml string) *Scenario {
	b.texts = append(b.texts, func(s *scenario.Scenario) error { return s.Read("Set", []byte(yaml)) })
	return b
}

// Config takes over the text of an sbr.yaml: the file that production runs with, or a part of it. It is read
// and checked as strictly as the agent does. What the simulator has no use for (http, hooks, where Serf
// listens) is left out; serf.profile sets how members notice, as detection does. Keys that are absent stay as
// they are.
func (b *Scenario) Config(yaml string) *Scenario {
	b.texts = append(b.texts, func(s *scenario.Scenario) error {
		f := config.Default()
		f.System, f.SplitBrainResolver, f.Lease = s.Cluster.System, s.Cluster.SplitBrainResolver, s.Cluster.Lease
		f.Serf.Profile = ""
		if err := strictyaml.Decode([]byte(yaml), &f, strictyaml.Options{Name: "Config"}); err != nil {
			return err
		}
		profile := f.Serf.Profile
		f.Serf.Profile = cmp.Or(profile, config.Default().Serf.Profile)
		if err := f.Validate(); err != nil {
			return fmt.Errorf("Config: %s", strings.ReplaceAll(err.Error(), "\n", "\nConfig: "))
		}
		if f.DowningProvider != config.ProviderResolver {
			return fmt.Errorf("Config: downing-provider: is %.40q: the simulator plays %s only", f.DowningProvider,
				config.ProviderResolver)
		}
		s.Cluster.System, s.Cluster.SplitBrainResolver, s.Cluster.Lease = f.System, f.SplitBrainResolver, f.Lease
		if profile != "" {
			s.Cluster.Detection = scenario.DefaultDetection()
			s.Cluster.Detection.Profile = "serf-" + profile
		}
		return nil
	})
	return b
}

// At lets nemeses begin at that time, all of them at once.
func (b *Scenario) At(t time.Duration, what ...Nemesis) *Scenario {
	b.acts = append(b.acts, act{t, what})
	return b
}

// Build returns the scenario of a seed, with plain steps: the same seed gives the same steps, and without
// random nemeses all seeds do. The error names every mistake, one line each.
func (b *Scenario) Build(seed uint64) (*scenario.Scenario, error) {
	s := b.base
	var found problems
	for _, text := range b.texts {
		found.all(text(&s), func(line string) string { return line })
	}
	members := s.Members()
	taken := make(map[string]bool)
	for _, name := range members {
		taken[name] = true
	}
	var end time.Duration
	for i, a := range b.acts {
		// A stream for each, so that a new one leaves the others as they are.
		p := &Plan{rng: rand.New(rand.NewPCG(seed, uint64(i))), now: a.at, members: members, taken: taken,
			problems: &found}
		p.Play(Together(a.what...))
		s.Steps = append(s.Steps, p.steps...)
		end = max(end, p.now)
	}
	slices.SortStableFunc(s.Steps, func(a, b scenario.Step) int { return cmp.Compare(begins(&a), begins(&b)) })
	if s.RunFor == 0 {
		s.RunFor = max(end, s.Over()) + 5*time.Minute
	}
	found.all(s.Validate(), func(line string) string { return located(line, s.Steps) })
	if len(found.lines) > 0 {
		return nil, fmt.Errorf("scenario %q: %s", s.Name,
			strings.Join(found.lines, "\n"+fmt.Sprintf("scenario %q: ", s.Name)))
	}
	return &s, nil
}

// begins is when a step happens: at once, if it does not say so, which Validate reports.
func begins(st *scenario.Step) time.Duration {
	if st.At == nil {
		return 0
	}
	return st.At.From
}

// located adds the time to a problem of a step: the author of a nemesis knows no numbers of steps.
func located(line string, steps []scenario.Step) string {
	var i int
	if _, err := fmt.Sscanf(line, "steps[%d]", &i); err != nil || i >= len(steps) || steps[i].At == nil {
		return line
	}
	return fmt.Sprintf("at %v: %s", *steps[i].At, line)
}

// names are those of the members at the start.
func names(s *scenario.Scenario) (names []string) {
	for _, n := range s.Cluster.Nodes.All() {
		names = append(names, n.Name)
	}
	return names
}
