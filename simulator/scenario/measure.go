package scenario

import (
	"slices"
	"time"
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
	ready, err := Prepare(s)
	if err != nil {
		return Measures{}
	}
	return ready.Measure(seed)
}

// Compared is what the runs of one variant came to, over one scenario, or over all of them together.
type Compared struct {
	Variant string `json:"variant"`
	// Scenario is empty for all scenarios together.
	Scenario string `json:"scenario"`
	Runs     int    `json:"runs"`
	// BothSides and Nobody are runs in which at the end both sides, or nobody, were up; Unresolved those in which something was left to
	// be decided.
	BothSides  int `json:"both-survived"`
	Nobody     int `json:"nobody-survived"`
	Unresolved int `json:"unresolved"`
	// Resolved is about the runs that were resolved.
	DoubleActive Quantiles `json:"double-active"`
	NobodyActive Quantiles `json:"nobody-active"`
	Resolved     Quantiles `json:"resolved-after"`
}

// Quantiles are in seconds.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Compare adds up runs of a variant of a scenario; an empty name stands for all scenarios.
func Compare(variant, of string, runs []Measures) Compared {
	r := Compared{Variant: variant, Scenario: of, Runs: len(runs)}
	var double, nobody, resolved []time.Duration
	for _, m := range runs {
		if m.BothSides {
			r.BothSides++
		}
		if m.Nobody {
			r.Nobody++
		}
		if m.Settled {
			resolved = append(resolved, m.Resolved)
		} else {
			r.Unresolved++
		}
		double, nobody = append(double, m.DoubleActive), append(nobody, m.NobodyActive)
	}
	r.DoubleActive, r.NobodyActive, r.Resolved = quantilesOf(double), quantilesOf(nobody), quantilesOf(resolved)
	return r
}

// quantilesOf takes the nearest rank; of nothing they are zero.
func quantilesOf(all []time.Duration) (q Quantiles) {
	if len(all) == 0 {
		return q
	}
	slices.Sort(all)
	rank := func(percent int) float64 { return all[(len(all)*percent+99)/100-1].Seconds() }
	return Quantiles{P50: rank(50), P99: rank(99), Max: rank(100)}
}
