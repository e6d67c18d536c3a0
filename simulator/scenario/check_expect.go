package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

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
			c.Add("expect.resolved-within", "has nothing to count from: no step cuts, crashes, pauses or downs anything")
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
