package scenario

import (
	"path/filepath"
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
	decode := func(into *Scenario) error {
		return strictyaml.Decode(data, into, strictyaml.Options{Name: name, MaxBytes: MaxBytes, Lines: lines})
	}
	if err := decode(&s); err != nil {
		return nil, err
	}
	if first := s.Cluster; len(first.Settings) > 0 { // once more, now that it is known what these differ from
		s = Default()
		s.Cluster.Settings = make(map[string]*config.SplitBrainResolver)
		for member := range first.Settings {
			s.Cluster.Settings[member] = &first.SplitBrainResolver
		}
		if err := decode(&s); err != nil {
			return nil, err
		}
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

// Validate reports every problem, one line each with its key path.
func (s *Scenario) Validate() error { return s.problems().Err() }
