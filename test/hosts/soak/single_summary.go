//go:build linux

package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/serf-sbr/serf-sbr/internal/ledger"
	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
)

// movesRow sums up the changes of one cause under one guard.
type movesRow struct {
	Cause cause
	Guard cluster.Guard
	// Rounds is how many had them; of planned changes only.
	Rounds int
	Gap    figures
	// Prompt are those without work for no longer than is promised of a planned change.
	Prompt int
	Since  figures
	// Beyond is what of Since came after the verdict and the margin.
	Beyond figures
	// Bound is that of Since, Over how many were above.
	Bound float64
	Over  int
}

// singleSummary is what a run has shown of singletons.
type singleSummary struct {
	Rows []movesRow
	// Ledger is the sum over all stages; its lists are empty but for those of what must not be.
	Ledger ledger.Report
	// Overlaps counts what would have been double work without the fence, by guard.
	Overlaps map[cluster.Guard]overlaps
	Scenes   map[scene]int
	// Planned is about rounds of planned changes; nil: there were none.
	Planned *plannedSummary
	Guards  map[cluster.Guard]int
}

// overlaps are those of some rounds.
type overlaps struct {
	Rounds  int
	With    int // rounds with any
	Count   int
	Sum     ledger.Sum
	Refused int
}

var guards = []cluster.Guard{cluster.ByMembers, cluster.ByBoth}

// summarizeSingle sums up rounds with singletons; nil: there were none.
func summarizeSingle(results []result, reports []ledger.Report) *singleSummary {
	s := &singleSummary{Overlaps: make(map[cluster.Guard]overlaps), Scenes: make(map[scene]int),
		Guards: make(map[cluster.Guard]int)}
	moves := make(map[cluster.Guard]map[cause][]move)
	for _, g := range guards {
		moves[g] = make(map[cause][]move)
	}
	for _, r := range results {
		if r.Single == nil {
			continue
		}
		g := r.Plan.Single.Guard
		s.Scenes[r.Plan.Single.Scene]++
		s.Guards[g]++
		o := s.Overlaps[g]
		o.add(r.Single)
		s.Overlaps[g] = o
		for _, m := range r.Single.Moves {
			moves[g][m.Cause] = append(moves[g][m.Cause], m)
		}
	}
	if len(s.Scenes) == 0 {
		return nil
	}
	s.Planned = summarizePlanned(results)
	for _, c := range causes {
		for _, g := range guards {
			s.Rows = append(s.Rows, movesRowOf(c, g, moves[g][c]))
		}
	}
	for _, r := range reports {
		s.Ledger.Lines += r.Lines
		s.Ledger.Accepted += r.Accepted
		s.Ledger.Refused += r.Refused
		s.Ledger.Runs += r.Runs
		s.Ledger.Violations = append(s.Ledger.Violations, r.Violations...)
		s.Ledger.Shared = append(s.Ledger.Shared, r.Shared...)
	}
	return s
}

func (o *overlaps) add(r *singleResult) {
	o.Rounds++
	if r.Overlaps > 0 {
		o.With++
	}
	o.Count += r.Overlaps
	o.Sum.Total += r.Overlap.Total
	o.Sum.Max = max(o.Sum.Max, r.Overlap.Max)
	o.Sum.Refused += r.Overlap.Refused
	o.Refused += r.Refused
}

func movesRowOf(c cause, g cluster.Guard, moves []move) movesRow {
	x := movesRow{Cause: c, Guard: g}
	var gaps, since, beyond []float64
	for _, m := range moves {
		gaps = append(gaps, m.Gap)
		if m.Gap <= handOverTime.Seconds() {
			x.Prompt++
		}
		if m.Bound == 0 {
			continue
		}
		since = append(since, m.Since)
		if m.Beyond > 0 {
			beyond = append(beyond, m.Beyond)
		}
		x.Bound = max(x.Bound, m.Bound)
		if m.Since > m.Bound {
			x.Over++
		}
	}
	x.Gap, x.Since, x.Beyond = distribution(gaps), distribution(since), distribution(beyond)
	return x
}

// broken reports whether the fence has let through what it must not, or could not tell runs apart.
func (s *singleSummary) broken() bool { return s != nil && !s.Ledger.Clean() }

// late reports whether planned changes took longer than is promised.
func (s *singleSummary) late() bool { return s != nil && s.Planned.late() }

func (s *singleSummary) movesTable() table {
	t := table{{"what happened", "kept in one place by", "moves", "without work, p50 / p99 / max",
		"from the fault to work, p50 / p99 / max", "computed bound", "above it", "after verdict and margin"}}
	for _, x := range s.Rows {
		if x.Gap.Count == 0 {
			continue
		}
		bound, over := "", ""
		if x.Since.Count > 0 {
			bound, over = short(x.Bound), fmt.Sprintf("%d of %d", x.Over, x.Since.Count)
		}
		t = append(t, []string{string(x.Cause), string(x.Guard), strconv.Itoa(x.Gap.Count), x.Gap.three(),
			x.Since.three(), bound, over, x.Beyond.three()})
	}
	return t
}

func (s *singleSummary) overlapTable() table {
	t := table{{"kept in one place by", "rounds", "rounds with an overlap", "overlaps", "in all", "the longest",
		"writes in them that the fence refused", "refused in all"}}
	for _, g := range guards {
		o := s.Overlaps[g]
		t = append(t, []string{
			string(g), strconv.Itoa(o.Rounds), strconv.Itoa(o.With), strconv.Itoa(o.Count),
			short(o.Sum.Total.Seconds()), short(o.Sum.Max.Seconds()),
			strconv.Itoa(o.Sum.Refused), strconv.Itoa(o.Refused),
		})
	}
	return t
}

func (s *singleSummary) orderTable() table {
	return table{
		{"what", "value"},
		{"entries that reached the ledger", fmt.Sprintf("%d: %d accepted, %d refused; %d runs", s.Ledger.Lines, s.Ledger.Accepted, s.Ledger.Refused, s.Ledger.Runs)},
		{"accepted with an older token after a newer one", strconv.Itoa(len(s.Ledger.Violations))},
		{"tokens that several members had", strconv.Itoa(len(s.Ledger.Shared))},
	}
}

func (s *singleSummary) write(w io.Writer) error {
	tables := []table{s.orderTable(), s.movesTable(), s.overlapTable()}
	if s.Planned != nil {
		tables = []table{s.orderTable(), s.Planned.table()}
	}
	for _, t := range tables {
		if err := t.text(w); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	if s.Planned != nil {
		for _, line := range s.Planned.slow() {
			fmt.Fprintf(w, "SLOW: %s\n", line)
		}
	}
	return nil
}
