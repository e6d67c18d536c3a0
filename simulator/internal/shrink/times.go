package shrink

import (
	"cmp"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// grains are how round a time may be, the roundest first.
var grains = []time.Duration{
	10 * time.Second, 5 * time.Second, time.Second, 500 * time.Millisecond, 100 * time.Millisecond,
	10 * time.Millisecond, time.Millisecond,
}

// round calls f with d rounded more and more finely, until f reports success or d itself is as round.
func round(d time.Duration, f func(time.Duration) bool) {
	for _, g := range grains {
		if g > d/2 {
			continue // as round, but another time
		}
		if r := d.Round(g); r == d || f(r) {
			return
		}
	}
}

// times makes times round, gaps short, and the run.
func (z *shrinker) times() {
	z.sort()
	for _, g := range grains {
		if z.with(func(c *scenario.Scenario) {
			eachAt(c, func(at time.Duration) time.Duration { return at.Round(g) })
		}) {
			break
		}
	}
	z.gaps()
	for i := range z.best.Steps {
		round(z.best.Steps[i].At.From, func(d time.Duration) bool {
			return z.step(i, func(st *scenario.Step) { st.At = moved(st.At, d) })
		})
		if f := z.best.Steps[i].For; f != nil {
			round(f.From, func(d time.Duration) bool {
				return z.step(i, func(st *scenario.Step) { st.For = moved(st.For, d) })
			})
		}
		if f := z.best.Steps[i].LeaseStore; f != nil && f.Change.Restore != nil {
			round(*f.Change.Restore, func(d time.Duration) bool {
				return z.step(i, func(st *scenario.Step) {
					st.LeaseStore = &scenario.StoreFault{Change: scenario.StoreChange{Restore: &d}}
				})
			})
		}
	}
	z.runFor()
}

// step tries a change of one step.
func (z *shrinker) step(i int, change func(st *scenario.Step)) bool {
	return z.with(func(c *scenario.Scenario) {
		c.Steps = slices.Clone(c.Steps)
		change(&c.Steps[i])
	})
}

// eachAt changes the time of every step.
func eachAt(c *scenario.Scenario, change func(at time.Duration) time.Duration) {
	c.Steps = slices.Clone(c.Steps)
	for i := range c.Steps {
		at := c.Steps[i].At
		c.Steps[i].At = moved(at, change(at.From))
	}
}

// moved is a time that begins elsewhere, as long a range as it was.
func moved(t *scenario.Time, from time.Duration) *scenario.Time {
	return &scenario.Time{From: from, Spread: t.Spread}
}

// sort writes the steps in the order in which they happen, if that makes no difference.
func (z *shrinker) sort() {
	z.with(func(c *scenario.Scenario) {
		c.Steps = slices.Clone(c.Steps)
		slices.SortStableFunc(c.Steps, func(a, b scenario.Step) int { return cmp.Compare(a.At.From, b.At.From) })
	})
}

// gaps moves everything from some step on closer to the step before; the first step comes soon after the
// start.
func (z *shrinker) gaps() {
	const start = 10 * time.Second
	ats := func() (ats []time.Duration) {
		for i := range z.best.Steps {
			ats = append(ats, z.best.Steps[i].At.From)
		}
		slices.Sort(ats)
		return slices.Compact(ats)
	}
	for i := 0; i < len(ats()); i++ {
		from := ats()[i]
		previous, shortest := time.Duration(0), start
		if i > 0 {
			previous, shortest = ats()[i-1], 0
		}
		for _, gap := range []time.Duration{shortest, time.Second, 10 * time.Second, (from - previous) / 2} {
			by := from - previous - gap
			if by > 0 && gap >= shortest && z.earlier(from, by) {
				break
			}
		}
	}
}

// earlier moves the steps from some time on, and the end of the run.
func (z *shrinker) earlier(from, by time.Duration) bool {
	return z.with(func(c *scenario.Scenario) {
		eachAt(c, func(at time.Duration) time.Duration {
			if at >= from {
				at -= by
			}
			return at
		})
		c.RunFor -= by
	})
}

// runFor ends the run earlier.
func (z *shrinker) runFor() {
	last := z.best.Over()
	for _, tail := range []time.Duration{10, 30, 60, 120, 180, 300, 600, 1200} {
		d := (last + tail*time.Second).Round(10 * time.Second)
		if d >= z.best.RunFor || z.with(func(c *scenario.Scenario) { c.RunFor = d }) {
			break
		}
	}
	round(z.best.RunFor, func(d time.Duration) bool {
		return z.with(func(c *scenario.Scenario) { c.RunFor = d })
	})
}
