package scenario

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Measures says what a run cost: see world.Activity.
type Measures struct {
	// Passed is about the promises and the expectations, as in Result.
	Passed bool
	// BothSides survived: at the end two members that cannot reach each other are up. Nobody is up at the end.
	BothSides, Nobody bool
	// Survivors is how many are up at the end.
	Survivors int
	// DoubleActive is how long two sides were up after their partition was decided, NobodyActive how long nobody was; only of Run and
	// Measure, as is BothSides.
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
	// Runs is in how many runs there were any, Slots how many there were in all, Leases how many of them had leases.
	Runs   uint64 `json:"runs"`
	Slots  uint64 `json:"slots"`
	Leases uint64 `json:"leases"`
	// Coordinators and Resigned are those of ShardsResult, the others those of SingletonResult.
	Coordinators uint64            `json:"coordinators"`
	Resigned     uint64            `json:"resigned"`
	Starts       uint64            `json:"starts"`
	HandedOver   uint64            `json:"handed-over"`
	Overlaps     uint64            `json:"overlaps"`
	Why          map[string]uint64 `json:"why"`
	Writes       uint64            `json:"writes"`
	Rejected     uint64            `json:"rejected"`
	Interleaved  uint64            `json:"interleaved"`
	Unordered    uint64            `json:"unordered"`
}

// Totals are those of the run of a scenario.
func (r *Result) Totals(s *Scenario) (singletons, shards Totals) {
	for i, x := range r.Singletons {
		t := Totals{Runs: 1, Slots: 1}
		t.counts(x.Starts, x.HandedOver, x.Overlaps, x.Writes, x.Rejected, x.Interleaved, x.Unordered, x.Why)
		if bool(s.Cluster.Singletons[i].UseLease) {
			t.Leases = 1
		}
		singletons.Add(&t)
	}
	for i, x := range r.Shards {
		t := Totals{Runs: 1, Slots: uint64(x.Shards), Coordinators: uint64(x.Coordinators), Resigned: uint64(x.Resigned)}
		t.counts(x.Starts, x.HandedOver, x.Overlaps, x.Writes, x.Rejected, x.Interleaved, x.Unordered, x.Why)
		if bool(s.Cluster.Shards[i].UseLease) {
			t.Leases = t.Slots
		}
		shards.Add(&t)
	}
	singletons.Runs, shards.Runs = min(singletons.Runs, 1), min(shards.Runs, 1)
	return singletons, shards
}

func (t *Totals) counts(starts, handedOver, overlaps, writes, rejected, interleaved, unordered int, why map[string]int) {
	t.Starts, t.HandedOver, t.Overlaps, t.Writes = uint64(starts), uint64(handedOver), uint64(overlaps), uint64(writes)
	t.Rejected, t.Interleaved, t.Unordered = uint64(rejected), uint64(interleaved), uint64(unordered)
	t.Why = make(map[string]uint64, len(why))
	for reason, n := range why {
		t.Why[reason] = uint64(n)
	}
}

// numbers are all counts.
func (t *Totals) numbers() []*uint64 {
	return []*uint64{&t.Runs, &t.Slots, &t.Leases, &t.Coordinators, &t.Resigned, &t.Starts, &t.HandedOver, &t.Overlaps, &t.Writes, &t.Rejected, &t.Interleaved,
		&t.Unordered}
}

// Add adds others, of other runs.
func (t *Totals) Add(o *Totals) {
	from := o.numbers()
	for i, n := range t.numbers() {
		*n += *from[i]
	}
	if t.Why == nil {
		t.Why = make(map[string]uint64)
	}
	for why, n := range o.Why {
		t.Why[why] += n
	}
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
