package shrink

import (
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

const (
	// settle is what a run gets on top to show that its failure lasts.
	settle = 15 * time.Minute
	// enough is the time after the last step that nobody can call too short.
	enough = 3 * time.Minute
)

// Same returns a function that says whether a scenario fails with that seed as s does: it breaks the same
// promise, or, where s breaks none, misses the first expectation in the same words. A run that panics fails
// like any other that panics.
//
// A run that ends before a member could decide fails at its end, and shows nothing. So a scenario that fails
// at its end must leave as much time after its last step as s does (3 minutes are enough), and must go on
// failing when it runs for longer, if s does.
func Same(s *scenario.Scenario, seed uint64) func(*scenario.Scenario) bool {
	want := reason(s, seed)
	ends := func(c *scenario.Scenario) time.Duration { return c.RunFor - c.Over() }
	longer := func(c *scenario.Scenario) *scenario.Scenario {
		l := *c
		l.RunFor += settle
		return &l
	}
	lasting, _ := want.in(longer(s), seed)
	tail := ends(s)
	if lasting {
		tail = min(tail, enough)
	}
	return func(c *scenario.Scenario) bool {
		fails, atEnd := want.in(c, seed)
		if !fails || !atEnd {
			return fails
		}
		if lasting {
			fails, _ = want.in(longer(c), seed)
		}
		return fails && ends(c) >= tail
	}
}

// cause is why a run failed: the promise that it broke, or the words of the expectation without the time that
// it took. Empty: it did not fail.
type cause string

func reason(s *scenario.Scenario, seed uint64) cause {
	switch r := scenario.Judge(s, seed); {
	case len(r.Broken) > 0:
		return cause(r.Broken[0].Promise)
	case len(r.Unmet) > 0:
		return causeOf(r.Unmet[0])
	default:
		return ""
	}
}

func causeOf(unmet string) cause {
	if strings.HasPrefix(unmet, scenario.Panicked) {
		return scenario.Panicked
	}
	words, _, _ := strings.Cut(unmet, ", it took ")
	return cause(words)
}

// in reports whether a run fails for that cause, and whether only at its end.
func (c cause) in(s *scenario.Scenario, seed uint64) (fails, atEnd bool) {
	r := scenario.Judge(s, seed)
	for _, v := range r.Broken {
		if cause(v.Promise) == c {
			if fails = true; v.At < s.RunFor {
				return true, false
			}
		}
	}
	for _, line := range r.Unmet {
		fails = fails || causeOf(line) == c
	}
	return fails, fails && c != scenario.Panicked
}
