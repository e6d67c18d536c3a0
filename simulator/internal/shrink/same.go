package shrink

import (
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

const (
	// settle is what a run gets on top to show that its failure is one that lasts.
	settle = 15 * time.Minute
	// enough is the time after the last step that nobody can call too short.
	enough = 3 * time.Minute
)

// Same returns a function that says whether a scenario fails with that seed as s does: it breaks the same promise, or, where s breaks
// none, misses the first expectation in the same words. A run that panics fails like any other that panics.
//
// A run that ends before anybody could decide fails at its end, and shows nothing. So what fails at its end must leave as much time
// after its last step as s does (3 minutes are enough), and must go on failing when it runs for longer, if s does.
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

// cause is why a run failed; empty: it did not.
type cause string

func reason(s *scenario.Scenario, seed uint64) cause {
	lines := scenario.Judge(s, seed).Failures
	for _, line := range lines {
		if c, promise := kind(line); promise {
			return c
		}
	}
	if len(lines) == 0 {
		return ""
	}
	c, _ := kind(lines[0])
	return c
}

// in reports whether a run fails for that cause, and whether only at its end.
func (c cause) in(s *scenario.Scenario, seed uint64) (fails, atEnd bool) {
	for _, line := range scenario.Judge(s, seed).Failures {
		if k, _ := kind(line); k != c || c == "" {
			continue
		}
		fails = true
		if at, ok := brokenAt(line); ok && at < s.RunFor || c == scenario.Panicked {
			return true, false
		}
	}
	return fails, fails
}

// brokenAt is when a promise was broken. The world rounds it to milliseconds.
func brokenAt(line string) (at time.Duration, ok bool) {
	_, rest, _ := strings.Cut(line, " broken at ")
	when, _, _ := strings.Cut(rest, ": ")
	at, err := time.ParseDuration(when)
	return at + time.Millisecond, err == nil
}

// kind is what two failures have in common that fail for the same reason: the name of the promise, or the words of the expectation
// without the time that it took.
func kind(line string) (c cause, promise bool) {
	for _, broken := range []string{" broken at ", " broken in "} {
		if name, _, ok := strings.Cut(line, broken); ok && !strings.Contains(name, ":") {
			return cause(name), true
		}
	}
	if strings.HasPrefix(line, scenario.Panicked) {
		return scenario.Panicked, true
	}
	line, _, _ = strings.Cut(line, ", it took ")
	return cause(line), false
}
