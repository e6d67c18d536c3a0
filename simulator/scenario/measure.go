package scenario

import (
	"time"

	"github.com/serf-sbr/serf-sbr/simulator/world"
)

// Measures says what a run cost: see world.Activity.
type Measures struct {
	// Passed is about the promises and the expectations, as in Result.
	Passed bool
	// BothSides survived: at the end two members that cannot reach each other are up. Nobody is up at the end.
	BothSides, Nobody bool
	// DoubleActive is how long two sides were up after their partition was decided, NobodyActive how long nobody was.
	DoubleActive, NobodyActive time.Duration
	// Resolved is the time from the last step that cut something to the resolution, if Settled.
	Resolved time.Duration
	Settled  bool
}

// Measure plays a scenario as Judge does, and measures. A scenario that does not validate gives the zero Measures.
func Measure(s *Scenario, seed uint64) Measures {
	r, p := run(s, seed, func(o *world.Options) { o.Measure = true })
	if p == nil {
		return Measures{}
	}
	a := p.w.Activity()
	m := Measures{
		Passed: r.Passed, BothSides: a.BothSides, Nobody: len(r.Survivors) == 0,
		DoubleActive: a.DoubleActive, NobodyActive: a.NobodyActive,
	}
	m.Resolved, m.Settled = s.resolved(p.w)
	return m
}
