package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// unmet says which expectations are not met.
func (s *Scenario) unmet(r *Result, p *player, after time.Duration, resolved bool) (failures []string) {
	fail := func(format string, args ...any) { failures = append(failures, fmt.Sprintf(format, args...)) }
	e := &s.Expect
	if e.Survivors != nil && !same(*e.Survivors, r.Survivors) {
		fail("survivors: expected %s, found %s", list(*e.Survivors), list(r.Survivors))
	}
	if one := e.SurvivorsOneOf; one != nil && !slices.ContainsFunc(*one, func(x []string) bool { return same(x, r.Survivors) }) {
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
	case !resolved:
		fail("resolved-within: expected %v, not resolved at the end of the run", *d)
	case after > *d:
		fail("resolved-within: expected %v, it took %v", *d, after)
	}
	failures = append(failures, e.misplaced(r)...)
	return append(failures, s.undecided(p)...)
}

// undecided says which members decided otherwise than expected.
func (s *Scenario) undecided(p *player) (failures []string) {
	for _, n := range p.nodes {
		want, ok := s.Expect.Decisions[n.Name]
		if !ok {
			continue
		}
		found := "no decision"
		if d, ok := n.Decision(); ok {
			found = d.Kind.String()
		}
		if want = strings.ToLower(want); found != want && (found != "no decision" || want != none) {
			failures = append(failures, fmt.Sprintf("decisions: %s: expected %s, found %s", n.Name, want, found))
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

func holder(name string) string {
	if name == "" {
		return none
	}
	return name
}
