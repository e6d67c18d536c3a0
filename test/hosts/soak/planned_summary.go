//go:build linux

package main

import (
	"fmt"
	"slices"
	"strconv"
)

// slowMove is a change that took longer than is promised.
type slowMove struct {
	Round int
	Scene scene
	Move  move
}

// plannedSummary is what rounds of planned changes have shown.
type plannedSummary struct {
	Rows []movesRow
	// Single and Several sum up the scenes in which one member changes, and the others.
	Single  movesRow
	Several movesRow
	Slow    []slowMove
}

// summarizePlanned sums up rounds of planned changes; nil: there were none.
func summarizePlanned(results []result) *plannedSummary {
	planned := slices.DeleteFunc(slices.Clone(results), func(r result) bool {
		return r.Single == nil || !r.Plan.Single.planned()
	})
	if len(planned) == 0 {
		return nil
	}
	s := &plannedSummary{Slow: []slowMove{}}
	// row is over the changes that belong to what the rounds were about.
	row := func(name string, of func(*singlePlan) bool) (x movesRow) {
		var own []move
		rounds := 0
		for _, r := range planned {
			if p := r.Plan.Single; of(p) {
				rounds++
				own = append(own, r.ownMoves()...)
			}
		}
		x = movesRowOf(cause(name), "", own)
		x.Rounds = rounds
		return x
	}
	for _, x := range plannedScenes {
		for _, g := range guards {
			r := row(string(x), func(p *singlePlan) bool { return p.Scene == x && p.Guard == g })
			r.Guard = g
			s.Rows = append(s.Rows, r)
		}
	}
	s.Single = row("one at a time, in all", func(p *singlePlan) bool { return p.Scene.single() })
	s.Several = row("several at a time, in all", func(p *singlePlan) bool { return !p.Scene.single() })
	for _, r := range planned {
		for _, m := range r.ownMoves() {
			if m.Gap > handOverTime.Seconds() {
				s.Slow = append(s.Slow, slowMove{r.Plan.Round, r.Plan.Single.Scene, m})
			}
		}
	}
	slices.SortStableFunc(s.Slow, func(a, b slowMove) int { return a.Round - b.Round })
	return s
}

// ownMoves are the changes that belong to what the round was about.
func (r *result) ownMoves() []move {
	of := cause(r.Plan.Single.Scene)
	return slices.DeleteFunc(slices.Clone(r.Single.Moves), func(m move) bool { return m.Cause != of })
}

// late reports whether changes of one member took longer than is promised, but for one in a hundred.
func (s *plannedSummary) late() bool { return s != nil && s.Single.Gap.P99 > handOverTime.Seconds() }

func (s *plannedSummary) table() table {
	t := table{{"what happened", "kept in one place by", "rounds", "changes", "p50", "p99", "max", "at most " + handOverTime.String()}}
	for _, x := range append(slices.Clone(s.Rows), s.Single, s.Several) {
		if x.Gap.Count == 0 {
			continue
		}
		share := fmt.Sprintf("%d (%.1f %%)", x.Prompt, 100*float64(x.Prompt)/float64(x.Gap.Count))
		t = append(t, []string{
			string(x.Cause), string(x.Guard), strconv.Itoa(x.Rounds), strconv.Itoa(x.Gap.Count),
			short(x.Gap.P50), short(x.Gap.P99), short(x.Gap.Max), share,
		})
	}
	return t
}

// slow are the changes that took longer than is promised, one a line.
func (s *plannedSummary) slow() (lines []string) {
	for _, x := range s.Slow {
		lines = append(lines, fmt.Sprintf("round %d, %s, %s to %s: %s", x.Round, x.Scene, x.Move.From, x.Move.To, short(x.Move.Gap)))
	}
	return lines
}
