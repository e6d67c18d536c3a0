package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/internal/cores"
	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// asWritten is the variant that plays the files as they are.
const asWritten = "as-written"

// maxCompared bounds how many runs one comparison keeps the figures of.
const maxCompared = 2_000_000

// compare plays the same files with the same seeds under each variant, and tabulates. Expectations are not
// looked at: they were written for one variant.
func compare(s streams, paths []string, seeds seedRange, output string, variants []string) error {
	if output == formatJUnit {
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
	each := seeds.count()
	total := uint64(len(cells)) * each
	if total > maxCompared {
		return badInput{fmt.Errorf("%d runs are too many to compare: at most %d", total, maxCompared)}
	}
	relaxCollector()
	show := newProgress(s.err, "run", total)
	runs := make([]scenario.Measures, total) // those of a cell, then those of the next
	cores.All(int(total), func(k int) {
		runs[k] = cells[uint64(k)/each].Measure(seeds.from+uint64(k)%each, nil).Measures
		show.done(false)
	})
	show.end()
	c := comparison{Seeds: seeds.String()}
	of := uint64(len(files)) * each // the runs of a variant, over all files
	for i, v := range variants {
		c.Rows = append(c.Rows, scenario.Compare(v, "", runs[uint64(i)*of:uint64(i+1)*of]))
	}
	for k := range cells {
		if len(files) > 1 {
			own := runs[uint64(k)*each : uint64(k+1)*each]
			c.Rows = append(c.Rows, scenario.Compare(variants[k/len(files)], files[k%len(files)].Name, own))
		}
	}
	for _, f := range files {
		c.Scenarios = append(c.Scenarios, f.Name)
	}
	return s.show(output, c, c.text)
}

// comparedCells are the files under the first variant, then those under the next. The error names whatever
// does not fit.
func comparedCells(files []*scenarioFile, variants []string) (cells []*scenario.Prepared, err error) {
	var problems []error
	if len(variants) == 0 {
		problems = append(problems,
			fmt.Errorf("--compare needs at least one name: %s, %s or a file such as sbr.yaml",
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
			var ready *scenario.Prepared
			s, err := change(f.Scenario)
			if err == nil {
				ready, err = scenario.Prepare(s)
			}
			if err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", f.path, err))
			}
			cells = append(cells, ready)
		}
	}
	return cells, errors.Join(problems...)
}

// variant reads one name of --compare: as-written, a strategy, or a file like sbr.yaml.
func variant(name string) (func(*scenario.Scenario) (*scenario.Scenario, error), error) {
	switch known := append([]string{asWritten}, strategies.Keys()...); {
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
			return nil, fmt.Errorf("--compare: %w, or a file such as sbr.yaml", err)
		}
		return func(s *scenario.Scenario) (*scenario.Scenario, error) { return s.WithStrategy(name) }, nil
	}
}

// comparison is the whole answer.
type comparison struct {
	Seeds     string              `json:"seeds"`
	Scenarios []string            `json:"scenarios"`
	Rows      []scenario.Compared `json:"rows"`
}

// maxTables is how many scenarios get a table of their own.
const maxTables = 8

// text is a table over all scenarios, and one for each where there are few.
func (c *comparison) text(p painter) string {
	var b strings.Builder
	of := make(map[string][]scenario.Compared)
	for _, r := range c.Rows {
		of[r.Scenario] = append(of[r.Scenario], r)
	}
	if n := len(of) - 1; 0 < n && n <= maxTables {
		for _, name := range c.Scenarios {
			fmt.Fprintf(&b, "%s\n\n%s\n", p.bold(name), compareTable(of[name]))
		}
	}
	what := count(len(c.Scenarios), "scenario") + " together"
	if len(c.Scenarios) == 1 {
		what = c.Scenarios[0]
	}
	fmt.Fprintf(&b, "%s\n\n%s", p.bold(what), compareTable(of[""]))
	fmt.Fprintf(&b, "\nSeeds %s. Times are seconds: half of the runs, 99 in 100, the longest. Double-active: both sides up after the decision;\n"+
		"nobody-active: nobody up; resolved: from the last cut until nothing was left to be decided.\n", c.Seeds)
	if len(of)-1 > maxTables {
		b.WriteString("-o json has the figures of each scenario.\n")
	}
	return b.String()
}

// compareTable is aligned text; colour would count as width.
func compareTable(rows []scenario.Compared) string {
	name := 0
	for i := range rows {
		name = max(name, len(rows[i].Variant))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%*s%13s%14s%24s%24s%24s%14s\n", name, "",
		"both", "nobody", "double-active (s)", "nobody-active (s)", "resolved (s)", "not")
	line := func(cells ...any) {
		fmt.Fprintf(&b, "%-*s%13s%14s%8s%8s%8s%8s%8s%8s%8s%8s%8s%14s\n", append([]any{name}, cells...)...)
	}
	line("", "survived", "survived", "p50", "p99", "max", "p50", "p99", "max", "p50", "p99", "max", "resolved")
	for i := range rows {
		r := &rows[i]
		cells := []any{r.Variant, share(r.BothSides, r.Runs), share(r.Nobody, r.Runs)}
		for _, q := range []scenario.Quantiles{r.DoubleActive, r.NobodyActive, r.Resolved} {
			cells = append(cells, fixed(q.P50, 1), fixed(q.P99, 1), fixed(q.Max, 1))
		}
		line(append(cells, share(r.Unresolved, r.Runs))...)
	}
	return b.String()
}

// share is a count and its part of all: 3 (1.5%).
func share(n, of int) string {
	if n == 0 || of == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%.3g%%)", n, 100*float64(n)/float64(of))
}
