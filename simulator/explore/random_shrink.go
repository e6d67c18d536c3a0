package explore

import (
	"context"
	"fmt"

	"github.com/serf-sbr/serf-sbr/simulator/internal/shrink"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// Shrink makes the scenario of the failure as small as so many tries allow, and notes its size. It returns the file of the original: that
// of the failure if it has one, else that of its seed. What does not fail in the same way when it is played alone stays as it is; once
// ctx is done, what was found so far has to do.
func (f *Failure) Shrink(ctx context.Context, generate func(seed uint64) *scenario.Scenario, tries int) (original string, err error) {
	s, err := f.original(generate)
	if err != nil {
		return "", fmt.Errorf("the scenario of seed %d: %w", f.Seed, err)
	}
	original = string(scenario.Format(s))
	same := shrink.Same(s, f.Seed)
	fails := func(c *scenario.Scenario) bool { return ctx.Err() == nil && same(c) && f.in(c) }
	small := shrink.Shrink(s, fails, shrink.Options{Tries: tries})
	f.Scenario, f.Steps, f.Members = string(scenario.Format(small)), len(small.Steps), members(small)
	return original, nil
}

func (f *Failure) original(generate func(seed uint64) *scenario.Scenario) (s *scenario.Scenario, err error) {
	if f.Scenario != "" {
		return scenario.Parse("the scenario of the failure", []byte(f.Scenario))
	}
	defer func() {
		if p := recover(); p != nil { // then that is the failure
			err = fmt.Errorf("making it panicked: %v", p)
		}
	}()
	return generate(f.Seed), nil
}

// in reports whether the run of s with the seed of the failure fails in the same way.
func (f *Failure) in(s *scenario.Scenario) bool {
	_, ok := broken(func() scenario.Result { return scenario.Judge(s, f.Seed) })[kind{f.Promise, f.Shape}]
	return ok
}

// members is how many members a scenario has, with those that join.
func members(s *scenario.Scenario) int {
	n := s.Cluster.Nodes.Count
	if s.Cluster.Nodes.List != nil {
		n = len(s.Cluster.Nodes.List)
	}
	for i := range s.Steps {
		if s.Steps[i].Join != nil {
			n++
		}
	}
	return n
}
