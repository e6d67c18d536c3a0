package scenario

import "time"

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
	ready, err := Prepare(s)
	if err != nil {
		return Measures{}
	}
	return ready.Measure(seed)
}
