package explore

import (
	"embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// Known are the transitions that resolvers are known to take in what scenario files can say, in order.
type Known []KnownTransition

// KnownTransition is one of them.
type KnownTransition struct {
	// Name is what world.Coverage calls it.
	Name string
	// Provoke, when not empty, is a scenario that takes it: chance alone does so in fewer than one run in
	// 400.
	Provoke string
	// Seed is the seed to play Provoke with.
	Seed uint64
}

//go:embed testdata/transitions.txt testdata/provoke
var knownFiles embed.FS

const (
	knownList   = "testdata/transitions.txt"
	knownFolder = "testdata/provoke"
)

// KnownTransitions returns the list that this version was built with.
func KnownTransitions() Known {
	data, err := knownFiles.ReadFile(knownList)
	if err != nil {
		panic(err) // it is built in
	}
	k, err := parseKnown(string(data))
	if err != nil {
		panic(fmt.Sprintf("%s: %v", knownList, err))
	}
	return k
}

// parseKnown reads a list: a transition on each line, and behind a bar, if it is rare, the file and the seed
// that provoke it.
func parseKnown(text string) (k Known, err error) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, how, rare := strings.Cut(line, " | ")
		t := KnownTransition{Name: strings.TrimSpace(name)}
		if rare {
			file, seed, _ := strings.Cut(strings.TrimSpace(how), " ")
			t.Provoke = file
			if t.Seed, err = strconv.ParseUint(seed, 10, 64); err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
		}
		if len(k) > 0 && k[len(k)-1].Name >= t.Name {
			return nil, fmt.Errorf("line %d: %s is out of order", n, t.Name)
		}
		k = append(k, t)
	}
	return k, nil
}

// Never lists the known transitions that were never taken.
func (k Known) Never(counts map[string]uint64) (names []string) {
	for _, t := range k {
		if counts[t.Name] == 0 {
			names = append(names, t.Name)
		}
	}
	return names
}

// New lists the transitions that were taken and are not known, in order.
func (k Known) New(counts map[string]uint64) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if _, known := k.find(name); !known && counts[name] > 0 {
			names = append(names, name)
		}
	}
	return names
}

func (k Known) find(name string) (KnownTransition, bool) {
	i, ok := slices.BinarySearchFunc(k, name, func(t KnownTransition, name string) int {
		return strings.Compare(t.Name, name)
	})
	if !ok {
		return KnownTransition{}, false
	}
	return k[i], true
}

// provoke plays the scenarios that take the rare ones among the names.
func (k Known) provoke(names []string) (*Findings, error) {
	var f Findings
	for _, name := range names {
		t, _ := k.find(name)
		if t.Provoke == "" {
			continue
		}
		s, err := t.Scenario()
		if err != nil {
			return nil, err
		}
		f.add(play(t.Seed, func(uint64) *scenario.Scenario { return s }))
		for _, x := range f.failures {
			if x.Scenario == "" {
				x.Scenario = string(scenario.Format(s))
			}
		}
	}
	return &f, nil
}

// Scenario reads the scenario that provokes the transition.
func (t KnownTransition) Scenario() (*scenario.Scenario, error) {
	data, err := knownFiles.ReadFile(path.Join(knownFolder, t.Provoke))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	return scenario.Parse(t.Provoke, data)
}
