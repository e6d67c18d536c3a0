package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/serf-sbr/serf-sbr/simulator/explore"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// simulateStats adds up the figures of all runs.
type simulateStats struct {
	runs int
	// In seconds; of the runs that were resolved only.
	resolved, double []float64
	// survivors are the shares of the members that could be up at the end, being neither crashed nor gone,
	// and are, in percent.
	survivors []float64
	decisions map[string]int // by decision: the runs in which some member's last one was that
	coverage  scenario.Coverage
}

func newSimulateStats() *simulateStats { return &simulateStats{decisions: make(map[string]int)} }

func (s *simulateStats) add(r *played) {
	s.runs++
	if r.Measures.Settled {
		s.resolved = append(s.resolved, r.Measures.Resolved.Seconds())
	}
	s.double = append(s.double, r.Measures.DoubleActive.Seconds())
	if possible := len(r.Survivors) + len(r.Down); possible > 0 {
		s.survivors = append(s.survivors, 100*float64(len(r.Survivors))/float64(possible))
	}
	for _, kind := range slices.Compact(slices.Sorted(maps.Values(r.Decisions))) {
		s.decisions[kind]++
	}
	if r.Coverage != nil {
		s.coverage.Add(r.Coverage)
	}
}

// table has the percentiles: of times the values that so many runs did not exceed, of survivors the values
// that so many runs reached.
func (s *simulateStats) table() string {
	rows := [][]string{{"", "p50", "p90", "p99", "worst"}}
	row := func(name string, all []float64, digits int, sign float64) {
		if len(all) == 0 {
			return
		}
		signed := make([]float64, len(all))
		for i, v := range all {
			signed[i] = sign * v
		}
		q := scenario.SpreadOf(signed, 1)
		cells := []string{name}
		for _, v := range []float64{q.P50, q.P90, q.P99, q.Max} {
			cells = append(cells, fixed(sign*v, digits))
		}
		rows = append(rows, cells)
	}
	row("resolved after (s)", s.resolved, 3, 1)
	row("double-active (s)", s.double, 3, 1)
	row("survivors of the possible (%)", s.survivors, 0, -1)
	return table(rows...)
}

// fixed is a number with so many digits behind the point; zero has none.
func fixed(v float64, digits int) string {
	if v == 0 {
		return "0"
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

// full has histograms, and what the resolvers decided and went through.
func (s *simulateStats) full() string {
	var b strings.Builder
	s.histogram(&b, "resolved after (s)", s.resolved)
	s.histogram(&b, "double-active (s)", s.double)
	s.histogram(&b, "survivors of the possible (%)", s.survivors)
	b.WriteString("decisions, and the runs in which some member's last one was that\n")
	kinds := slices.SortedFunc(maps.Keys(s.decisions), func(x, y string) int {
		return cmp.Or(s.decisions[y]-s.decisions[x], strings.Compare(x, y))
	})
	for _, kind := range kinds {
		fmt.Fprintf(&b, "  %8d  %s\n", s.decisions[kind], kind)
	}
	if len(kinds) == 0 {
		b.WriteString("  none\n")
	}
	taken, known := s.coverage.Counts(), explore.KnownTransitions()
	fmt.Fprintf(&b, "\ntransitions of resolvers, and how often each was taken: %d of %d known ones\n",
		len(known)-len(known.Never(taken)), len(known))
	names := slices.SortedFunc(maps.Keys(taken), func(x, y string) int {
		return cmp.Or(cmp.Compare(taken[y], taken[x]), strings.Compare(x, y))
	})
	for _, name := range names {
		fmt.Fprintf(&b, "  %8d  %s\n", taken[name], name)
	}
	return b.String()
}

// histogram draws how the values are spread over the runs. A bar is named by its smallest value.
func (s *simulateStats) histogram(b *strings.Builder, name string, all []float64) {
	const parts, width = 10, 50
	spread := scenario.SpreadOf(all, parts)
	fmt.Fprintf(b, "%s, %d of %s\n", name, spread.Runs, count(s.runs, "run"))
	if spread.Runs == 0 {
		b.WriteString("\n")
		return
	}
	step, most, digits := (spread.Max-spread.Min)/float64(len(spread.Histogram)), slices.Max(spread.Histogram), 3
	switch {
	case step == 0:
		digits = -1 // as many as it has
	case step < 0.002:
		digits = 6 // three would give several bars one name
	}
	for i, n := range spread.Histogram {
		bar := strings.Repeat("#", (n*width+most-1)/most)
		from := strconv.FormatFloat(spread.Min+float64(i)*step, 'f', digits, 64)
		fmt.Fprintf(b, "  %8s  %-*s %d\n", from, width, bar, n)
	}
	b.WriteString("\n")
}
