package scenario

import (
	"path/filepath"
	"strings"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
)

// MaxBytes is the largest file that Parse reads.
const MaxBytes = 1 << 20

// Parse reads a scenario; name stands for the file in errors. The error has one line for each problem.
func Parse(name string, data []byte) (*Scenario, error) {
	s := Default()
	lines := make(map[string]int)
	if err := strictyaml.Decode(data, &s, strictyaml.Options{Name: name, MaxBytes: MaxBytes, Lines: lines}); err != nil {
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

// Validate reports every problem, one line each with its key path.
func (s *Scenario) Validate() error { return s.problems().Err() }
