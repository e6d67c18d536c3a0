package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Unmet says which expectations a run has not met.
func (s *Scenario) Unmet(r *Result) (failures []string) {
	fail := func(format string, args ...any) { failures = append(failures, fmt.Sprintf(format, args...)) }
	e := &s.Expect
	if e.Survivors != nil && !same(*e.Survivors, r.Survivors) {
		fail("survivors: expected %s, found %s", list(*e.Survivors), list(r.Survivors))
	}
	if one := e.SurvivorsOneOf; one != nil && !slices.ContainsFunc(*one, func(x []string) bool {
		return same(x, r.Survivors)
	}) {
		var sets []string
		for _, x := range *one {
			sets = append(sets, list(x))
		}
		fail("survivors: expected one of %s, found %s", strings.Join(sets, " | "), list(r.Survivors))
	}
	if n := e.SurvivorCount; n != nil && *n != len(r.Survivors) {
		fail("survivors: expected %d, found %d: %s", *n, len(r.Survivors), list(r.Survivors))
	}
	if e.Down != nil && !same(*e.Down, r.Down) {
		fail("down: expected %s, found %s", list(*e.Down), list(r.Down))
	}
	if h := e.LeaseHolder; h != nil && *h != holder(r.LeaseHolder) {
		fail("lease-holder: expected %s, found %s", *h, holder(r.LeaseHolder))
	}
	switch d := e.ResolvedWithin; {
	case d == nil:
	case !r.Measures.Settled:
		fail("resolved-within: expected %v, not resolved at the end of the run", *d)
	case r.Measures.Resolved > *d:
		fail("resolved-within: expected %v, it took %v", *d, r.Measures.Resolved)
	}
	failures = append(failures, e.misplaced(r)...)
	for _, name := range slices.Sorted(maps.Keys(e.Decisions)) {
		want, found := strings.ToLower(e.Decisions[name]), cmp.Or(r.Decisions[name], "no decision")
		if found != want && (found != "no decision" || want != none) {
			fail("decisions: %s: expected %s, found %s", name, want, found)
		}
	}
	return failures
}

// list shows names, a few of many.
func list(names []string) string {
	const limit = 12
	if len(names) > limit {
		return fmt.Sprintf("[%s … %d in all]", strings.Join(names[:limit], " "), len(names))
	}
	return fmt.Sprint(names)
}

func holder(name string) string { return cmp.Or(name, none) }

func (c *checker) expect(e *Expect) {
	c.set("expect.survivors", e.Survivors)
	c.set("expect.down", e.Down)
	if e.SurvivorsOneOf != nil {
		if len(*e.SurvivorsOneOf) == 0 {
			c.Add("expect.survivors-one-of", "is empty: it must be a list of lists")
		}
		for i := range *e.SurvivorsOneOf {
			c.set(fmt.Sprintf("expect.survivors-one-of[%d]", i), &(*e.SurvivorsOneOf)[i])
		}
	}
	if n := e.SurvivorCount; n != nil && (*n < 0 || *n > len(c.names.Nodes)) {
		c.Add("expect.survivor-count", "is %d: it must be 0 to %d, the number of members", *n, len(c.names.Nodes))
	}
	if h := e.LeaseHolder; h != nil && *h != none {
		c.member("expect.lease-holder", *h)
	}
	if d := e.ResolvedWithin; d != nil {
		c.span("expect.resolved-within", *d, false)
		if _, ok := c.s.Disturbed(); !ok {
			c.Add("expect.resolved-within", "has nothing to count from: no step cuts, crashes, restarts, pauses or downs anything, or worsens a link")
		}
	}
	c.decisions(e.Decisions)
	c.expectSlots(e)
}

// decisions are checked in the order of their names, so that the same file has the same problems.
func (c *checker) decisions(d map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(d)) {
		at := "expect.decisions." + name
		if err := c.names.unknown(name, false); err != nil {
			c.Add("expect.decisions", "%v", err)
		}
		c.OneOf(at, strings.ToLower(d[name]), kinds())
	}
}

// set checks a list of names without zones.
func (c *checker) set(path string, names *[]string) {
	if names == nil {
		return
	}
	seen := make(map[string]bool)
	for i, name := range *names {
		at := fmt.Sprintf("%s[%d]", path, i)
		c.member(at, name)
		if seen[name] {
			c.Add(at, "%s is named twice", name)
		}
		seen[name] = true
	}
}
