package scenario

import (
	_ "embed"
	"path/filepath"
	"slices"
	"strings"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
)

// MaxBytes is the largest file that Parse reads.
const MaxBytes = 1 << 20

// Parse reads a scenario; name stands for the file in errors. The error has one line for each problem.
func Parse(name string, data []byte) (*Scenario, error) {
	s := Default()
	lines := make(map[string]int)
	if err := s.read(name, data, lines); err != nil {
		return nil, err
	}
	if s.Name == "" {
		base := filepath.Base(name)
		s.Name = strings.TrimSuffix(base, filepath.Ext(base))
	}
	if err := s.problems().Locate(name, lines).Err(); err != nil {
		return nil, err
	}
	return &s, nil
}

// Read takes over the keys of a part of a file; what it does not say stays as it is, and all does if it
// cannot be read. name stands for it in errors. Lists, and the settings of single members, are taken over as
// a whole. Nothing is checked but the keys and the form of their values: see Validate.
func (s *Scenario) Read(name string, data []byte) error { return s.read(name, data, nil) }

// read notes the lines of keys in lines, if that is not nil.
func (s *Scenario) read(name string, data []byte, lines map[string]int) error {
	decode := func(settings map[string]*config.SplitBrainResolver) (Scenario, error) {
		next := *s
		next.Cluster.Settings = settings
		return next, strictyaml.Decode(data, &next,
			strictyaml.Options{Name: name, MaxBytes: MaxBytes, Lines: lines})
	}
	next, err := decode(nil)
	rules := next.Cluster.SplitBrainResolver
	if err == nil && len(next.Cluster.Settings) > 0 { // once more, now that it is known what these differ from
		own := make(map[string]*config.SplitBrainResolver)
		for member := range next.Cluster.Settings {
			own[member] = &rules
		}
		next, err = decode(own)
	} else {
		next.Cluster.Settings = s.Cluster.based(rules).Settings
	}
	if err == nil {
		*s = next
	}
	return err
}

// Validate reports every problem, one line each with its key path.
func (s *Scenario) Validate() error { return s.problems().Err() }

//go:embed scenario.schema.json
var schema []byte

// Schema is the JSON Schema (draft 2020-12) of scenario files, for editors. It is made from the types of this
// package, and a test keeps it current. It accepts whatever Parse accepts. It cannot know what needs the rest
// of the file: whether a member that is named exists, whether a step is within run-for, whether a node is in
// two groups, whether settings contradict each other.
func Schema() []byte { return slices.Clone(schema) }
