package main

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// asWritten is the variant that plays the files as they are.
const asWritten = "as-written"

// maxCompared bounds how many runs one comparison keeps the figures of.
const maxCompared = 2_000_000

// compare plays the same files with the same seeds under each variant, and tabulates. Expectations are not looked at: they were written
// for one variant.
func compare(s streams, paths []string, seeds seedRange, output simulateFormat, variants []string) error {
	if format(output) == formatJUnit {
		return badInput{errors.New("--compare writes a table: use -o text or -o json")}
	}
	files, err := loadScenarios(paths, s.in)
	if err != nil {
		return badInput{err}
	}
	cells, err := comparedCells(files, variants)
	if err != nil {
		return badInput{err}
	}
	total := uint64(len(cells)) * seeds.count()
	if total > maxCompared {
		return badInput{fmt.Errorf("%d runs are too many to compare: at most %d", total, maxCompared)}
	}
	relaxCollector()
	show := newProgress(s.err, total)
	var mu sync.Mutex
	for i := range cells {
		cells[i].runs = make([]scenario.Measures, seeds.count())
	}
	onAllCores(int(total), func(k int) {
		c, seed := &cells[uint64(k)/seeds.count()], uint64(k)%seeds.count()
		c.runs[seed] = c.ready.Measure(seeds.from + seed)
		mu.Lock()
		show.done(0)
		mu.Unlock()
	})
	show.end()
	c := comparison{Seeds: seeds.String(), Rows: compareRows(cells, variants)}
	for _, f := range files {
		c.Scenarios = append(c.Scenarios, f.Name)
	}
	if format(output) == formatJSON {
		return writeJSON(s.out, c)
	}
	return c.text(s.out)
}

// onAllCores calls f with 0 to n-1, from several goroutines.
func onAllCores(n int, f func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				f(int(i))
			}
		})
	}
	wg.Wait()
}

// comparedCell is one file under one variant, and what each seed came to.
type comparedCell struct {
	variant  string
	scenario string
	ready    *scenario.Prepared
	runs     []scenario.Measures
}

// comparedCells lists every variant of every file. The error names whatever does not fit.
func comparedCells(files []*scenarioFile, variants []string) (cells []comparedCell, err error) {
	var problems []error
	if len(variants) == 0 {
		problems = append(problems, fmt.Errorf("--compare needs at least one name: %s, %s or a file such as sbr.yaml",
			strings.Join(strategies.Keys(), ", "), asWritten))
	}
	for i, name := range variants {
		if slices.Contains(variants[:i], name) {
			problems = append(problems, fmt.Errorf("--compare names %s twice", name))
			continue
		}
		change, err := variant(name)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		for _, f := range files {
			s, err := change(f.Scenario)
			var ready *scenario.Prepared
			if err == nil {
				ready, err = scenario.Prepare(s)
			}
			if err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", f.path, err))
			}
			cells = append(cells, comparedCell{variant: name, scenario: f.Name, ready: ready})
		}
	}
	return cells, errors.Join(problems...)
}

// variant reads one name of --compare: as-written, a strategy, or a file like sbr.yaml.
func variant(name string) (func(*scenario.Scenario) (*scenario.Scenario, error), error) {
	known := append([]string{asWritten}, strategies.Keys()...)
	switch {
	case name == asWritten:
		return func(s *scenario.Scenario) (*scenario.Scenario, error) { return s, nil }, nil
	case strings.ContainsAny(name, "./"):
		f, err := config.Load(name)
		if err != nil {
			return nil, err
		}
		return func(s *scenario.Scenario) (*scenario.Scenario, error) { return s.WithConfig(name, f) }, nil
	default:
		if err := strictyaml.OneOf(name, known); err != nil {
			return nil, fmt.Errorf("--compare: %s %w, or a file such as sbr.yaml", name, err)
		}
		return func(s *scenario.Scenario) (*scenario.Scenario, error) { return s.WithStrategy(name) }, nil
	}
}

// comparison is the whole answer.
type comparison struct {
	Seeds     string       `json:"seeds"`
	Scenarios []string     `json:"scenarios"`
	Rows      []compareRow `json:"rows"`
}

// compareRow is one variant over one scenario, or over all of them together.
type compareRow struct {
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
	DoubleActive quantiles `json:"double-active"`
	NobodyActive quantiles `json:"nobody-active"`
	Resolved     quantiles `json:"resolved-after"`
}

// quantiles are in seconds.
type quantiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// compareRows are the rows over all scenarios, then those of each scenario where there are several.
func compareRows(cells []comparedCell, variants []string) (rows []compareRow) {
	for _, v := range variants {
		var all []scenario.Measures
		for i := range cells {
			if cells[i].variant == v {
				all = append(all, cells[i].runs...)
			}
		}
		rows = append(rows, newCompareRow(v, "", all))
	}
	if len(cells) == len(variants) {
		return rows
	}
	for i := range cells {
		rows = append(rows, newCompareRow(cells[i].variant, cells[i].scenario, cells[i].runs))
	}
	return rows
}

func newCompareRow(variant, of string, runs []scenario.Measures) compareRow {
	r := compareRow{Variant: variant, Scenario: of, Runs: len(runs)}
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
	r.DoubleActive, r.NobodyActive, r.Resolved = newQuantiles(double), newQuantiles(nobody), newQuantiles(resolved)
	return r
}

// newQuantiles takes the nearest rank; of nothing they are zero.
func newQuantiles(all []time.Duration) (q quantiles) {
	if len(all) == 0 {
		return q
	}
	slices.Sort(all)
	rank := func(percent int) float64 { return all[(len(all)*percent+99)/100-1].Seconds() }
	return quantiles{P50: rank(50), P99: rank(99), Max: rank(100)}
}
