package scenario

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
)

// Measures says what a run cost: see world.Activity.
type Measures struct {
	// BothSides survived: at the end two members that cannot reach each other are up. Nobody is up at the
	// end.
	BothSides, Nobody bool
	// DoubleActive is how long two sides were up after their partition was decided, NobodyActive how long
	// none was; only of Run and Measure, as is BothSides.
	DoubleActive, NobodyActive time.Duration
	// Resolved is the time from the last step that cut something to the resolution, if Settled.
	Resolved time.Duration
	Settled  bool
}

// Compared is what the runs of one variant came to, over one scenario, or over all of them together.
type Compared struct {
	Variant string `json:"variant"`
	// Scenario is empty for all scenarios together.
	Scenario string `json:"scenario"`
	Runs     int    `json:"runs"`
	// BothSides and Nobody are runs in which at the end both sides, or none, were up; Unresolved those in
	// which something was left to be decided.
	BothSides  int `json:"both-survived"`
	Nobody     int `json:"nobody-survived"`
	Unresolved int `json:"unresolved"`
	// Resolved is about the runs that were resolved.
	DoubleActive Quantiles `json:"double-active"`
	NobodyActive Quantiles `json:"nobody-active"`
	Resolved     Quantiles `json:"resolved-after"`
}

// Quantiles are of times in seconds, or of counts.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Spread is how values are spread over many runs.
type Spread struct {
	Runs int     `json:"runs"`
	Min  float64 `json:"min"`
	Quantiles
	// Histogram is how many values there are in equal parts of what lies between Min and Max.
	Histogram []int `json:"histogram"`
}

// SpreadOf sorts all; parts is the length of the histogram, which has one part if all values are equal.
func SpreadOf(all []float64, parts int) Spread {
	if len(all) == 0 {
		return Spread{}
	}
	s := Spread{Runs: len(all), Quantiles: quantilesOf(all), Min: all[0]}
	if s.Min == s.Max {
		parts = 1
	}
	s.Histogram = make([]int, parts)
	for _, v := range all {
		i := 0
		if parts > 1 {
			i = min(int(math.Floor(float64(parts)*(v-s.Min)/(s.Max-s.Min))), parts-1)
		}
		s.Histogram[i]++
	}
	return s
}

// Compare adds up runs of a variant of a scenario; an empty name stands for all scenarios.
func Compare(variant, of string, runs []Measures) Compared {
	r := Compared{Variant: variant, Scenario: of, Runs: len(runs)}
	var double, nobody, resolved []float64
	for _, m := range runs {
		if m.BothSides {
			r.BothSides++
		}
		if m.Nobody {
			r.Nobody++
		}
		if m.Settled {
			resolved = append(resolved, m.Resolved.Seconds())
		} else {
			r.Unresolved++
		}
		double, nobody = append(double, m.DoubleActive.Seconds()), append(nobody, m.NobodyActive.Seconds())
	}
	r.DoubleActive, r.NobodyActive, r.Resolved = quantilesOf(double), quantilesOf(nobody), quantilesOf(resolved)
	return r
}

// quantilesOf sorts all, and takes the nearest rank; of nothing they are zero.
func quantilesOf(all []float64) (q Quantiles) {
	if len(all) == 0 {
		return q
	}
	slices.Sort(all)
	rank := func(percent int) float64 { return all[(len(all)*percent+99)/100-1] }
	return Quantiles{P50: rank(50), P90: rank(90), P99: rank(99), Max: rank(100)}
}

// Totals add up what became of the singletons, or of the shards, of many runs.
type Totals struct {
	// Runs is in how many runs there were any, Slots how many there were in all, Leases how many of them had
	// leases.
	Runs   int `json:"runs"`
	Slots  int `json:"slots"`
	Leases int `json:"leases"`
	// Coordinators and Resigned are those of ShardsResult.
	Coordinators int `json:"coordinators"`
	Resigned     int `json:"resigned"`
	SlotCounts
}

// Totals are those of the run of a scenario.
func (r *Result) Totals(s *Scenario) (singletons, shards Totals) {
	for i := range r.Singletons {
		singletons.Runs = 1
		singletons.slots(1, s.Cluster.Singletons[i].UseLease, &r.Singletons[i].SlotCounts)
	}
	for i := range r.Shards {
		x := &r.Shards[i]
		shards.Runs = 1
		shards.Coordinators += x.Coordinators
		shards.Resigned += x.Resigned
		shards.slots(x.Shards, s.Cluster.Shards[i].UseLease, &x.SlotCounts)
	}
	return singletons, shards
}

func (t *Totals) slots(n int, leases strictyaml.Switch, c *SlotCounts) {
	t.Slots += n
	if leases {
		t.Leases += n
	}
	t.SlotCounts.Add(c)
}

// Add adds others, of other runs.
func (t *Totals) Add(o *Totals) {
	t.Runs += o.Runs
	t.Slots += o.Slots
	t.Leases += o.Leases
	t.Coordinators += o.Coordinators
	t.Resigned += o.Resigned
	t.SlotCounts.Add(&o.SlotCounts)
}

// String is one line.
func (t *Totals) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d in %d runs, %d with a lease; started %d times, handed over %d; writes %d, refused as late %d; overlaps without the fence %d",
		t.Slots, t.Runs, t.Leases, t.Starts, t.HandedOver, t.Writes, t.Rejected, t.Overlaps)
	for i, why := range slices.Sorted(maps.Keys(t.Why)) {
		fmt.Fprintf(&b, "%s%d because %s", map[bool]string{true: ": ", false: ", "}[i == 0], t.Why[why], why)
	}
	return b.String()
}
