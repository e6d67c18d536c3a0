package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

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
