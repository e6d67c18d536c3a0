//go:build linux

package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
)

// plannedRow is one scene under one guard.
type plannedRow struct {
	Scene  scene         `json:"scene"`
	Guard  cluster.Guard `json:"guard"`
	Rounds int           `json:"rounds"`
	Gap    figures       `json:"gap"`
	// Prompt are the changes that took no longer than is promised.
	Prompt int `json:"prompt"`
}

// slowMove is a change that took longer.
type slowMove struct {
	Round int   `json:"round"`
	Scene scene `json:"scene"`
	Move  move  `json:"move"`
}

// plannedSummary is what rounds of planned changes have shown.
type plannedSummary struct {
	Rows []plannedRow `json:"rows"`
	// Single and Several sum up the scenes in which one member changes, and the others.
	Single  plannedRow `json:"single"`
	Several plannedRow `json:"several"`
	Slow    []slowMove `json:"slow"`
}

// summarizePlanned sums up rounds of planned changes; nil: there were none.
func summarizePlanned(results []result) *plannedSummary {
	s := &plannedSummary{Slow: []slowMove{}}
	var single, several []result
	for _, r := range results {
		if r.Single == nil || !r.Plan.Single.planned() {
			continue
		}
		if r.Plan.Single.Scene.single() {
			single = append(single, r)
		} else {
			several = append(several, r)
		}
		for _, m := range r.ownMoves() {
			if m.Gap > handOverTime.Seconds() {
				s.Slow = append(s.Slow, slowMove{r.Plan.Round, r.Plan.Single.Scene, m})
			}
		}
	}
	if len(single)+len(several) == 0 {
		return nil
	}
	for _, x := range plannedScenes {
		for _, g := range guards {
			s.Rows = append(s.Rows, plannedRowOf(x, g, slices.Concat(single, several), func(p *singlePlan) bool { return p.Scene == x && p.Guard == g }))
		}
	}
	every := func(*singlePlan) bool { return true }
	s.Single, s.Several = plannedRowOf("one at a time, in all", "", single, every), plannedRowOf("several at a time, in all", "", several, every)
	slices.SortStableFunc(s.Slow, func(a, b slowMove) int { return a.Round - b.Round })
	return s
}

// ownMoves are the changes that belong to what the round was about.
func (r *result) ownMoves() []move {
	return slices.DeleteFunc(slices.Clone(r.Single.Moves), func(m move) bool { return m.Cause != cause(r.Plan.Single.Scene) })
}

func plannedRowOf(name scene, g cluster.Guard, results []result, of func(*singlePlan) bool) plannedRow {
	x := plannedRow{Scene: name, Guard: g}
	var gaps []float64
	for _, r := range results {
		if !of(r.Plan.Single) {
			continue
		}
		x.Rounds++
		for _, m := range r.ownMoves() {
			gaps = append(gaps, m.Gap)
			if m.Gap <= handOverTime.Seconds() {
				x.Prompt++
			}
		}
	}
	x.Gap = distribution(gaps)
	return x
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
		t = append(t, []string{string(x.Scene), string(x.Guard), strconv.Itoa(x.Rounds), strconv.Itoa(x.Gap.Count), short(x.Gap.P50), short(x.Gap.P99), short(x.Gap.Max), share})
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
