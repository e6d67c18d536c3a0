package shrink

import (
	"crypto/sha256"

	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// Options bound the work.
type Options struct {
	// Tries is how often fails is called at most, the first look at the scenario included. Zero: 1000.
	Tries int
}

// Shrink returns the smallest scenario it finds that fails: first with fewer steps, then fewer members,
// rounder times and a shorter run, plainer faults and fewer settings, and again from the start until nothing
// more can be left out. Only scenarios that validate are tried. A scenario that does not fail, or does not
// validate, comes back as it is. Shrink only reads s; the result shares parts with it.
func Shrink(s *scenario.Scenario, fails func(*scenario.Scenario) bool, o Options) *scenario.Scenario {
	if o.Tries == 0 {
		o.Tries = 1000
	}
	// Candidates that do not validate cost no try, but they cost something.
	const looksPerTry = 20
	z := &shrinker{best: s, fails: fails, tries: o.Tries, looks: looksPerTry * o.Tries,
		seen: make(map[[sha256.Size]byte]bool)}
	if !z.try(s) {
		return s
	}
	for {
		before := z.best
		z.expectations()
		z.steps()
		z.members()
		z.times()
		z.faults()
		z.settings()
		if z.best == before || z.tries <= 0 {
			return z.best
		}
	}
}

// shrinker holds the smallest scenario that was seen to fail.
type shrinker struct {
	best  *scenario.Scenario
	fails func(*scenario.Scenario) bool
	// tries are the calls of fails that are left, looks the candidates.
	tries, looks int
	seen         map[[sha256.Size]byte]bool
}

// try makes c the best if it fails. Nothing is tried twice. A caller that changes a copy of the best puts new
// slices and pointers into it.
func (z *shrinker) try(c *scenario.Scenario) bool {
	if z.tries <= 0 || z.looks <= 0 {
		return false
	}
	z.looks--
	if c.Validate() != nil {
		return false
	}
	key := sha256.Sum256(scenario.Format(c))
	if z.seen[key] {
		return false
	}
	z.seen[key] = true
	z.tries--
	if !z.fails(c) {
		return false
	}
	z.best = c
	return true
}

// with tries a copy of the best that change has changed.
func (z *shrinker) with(change func(c *scenario.Scenario)) bool {
	c := *z.best
	change(&c)
	return z.try(&c)
}

// steps leaves out steps.
func (z *shrinker) steps() {
	all := z.best.Steps
	fewest(len(all), func(keep []int) bool {
		return z.with(func(c *scenario.Scenario) {
			c.Steps = picked(all, keep)
		})
	})
}

// fewest looks for a small part of 0 to n-1 that still fails, by delta debugging: it leaves out large pieces
// first, then smaller ones, and stops when no single one can be left out. It starts at the end, because what
// comes late rests on what came before. All of them are known to fail.
func fewest(n int, fails func(keep []int) bool) {
	keep := make([]int, n)
	for i := range keep {
		keep[i] = i
	}
	for size := n; size > 0; {
		smaller := false
		for end := len(keep); end > 0; {
			start := max(end-size, 0)
			rest := append(append(make([]int, 0, len(keep)), keep[:start]...), keep[end:]...)
			if fails(rest) {
				keep, smaller = rest, true
			}
			end = start
		}
		switch {
		case size > 1:
			size = (min(size, len(keep)) + 1) / 2
		case !smaller:
			size = 0
		}
	}
}
