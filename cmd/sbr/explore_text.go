package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/serf-sbr/serf-sbr/simulator/explore"
)

// walkReport is the answer.
type walkReport struct {
	Schema           int                 `json:"schema"`
	Version          string              `json:"version"`
	Nodes            int                 `json:"nodes"`
	Lost             int                 `json:"lost"`
	Crashes          int                 `json:"crashes"`
	Pauses           int                 `json:"pauses"`
	Leaves           int                 `json:"leaves"`
	Removals         int                 `json:"removals"`
	Forgets          int                 `json:"forgets"`
	Restarts         int                 `json:"restarts"`
	NoStore          int                 `json:"no-store"`
	LateDetection    bool                `json:"late-detection"`
	Watch            bool                `json:"watch"`
	Strategy         string              `json:"strategy"`
	WhenLeaseUnknown string              `json:"when-lease-unknown"`
	Time             string              `json:"time"`
	Complete         bool                `json:"complete"`
	Interrupted      bool                `json:"interrupted"`
	Elapsed          string              `json:"elapsed"`
	walkRow                              // of all sizes together
	Sizes            []walkRow           `json:"by-size"`
	Violations       []explore.Violation `json:"violations"`
}

// walkRow is what was counted for one kind of cut.
type walkRow struct {
	Sizes      string `json:"sizes,omitempty"`
	Partitions int    `json:"partitions"`
	Walks      int    `json:"walks"`
	Covered    int    `json:"covered"`
	States     int    `json:"states"`
	Edges      int    `json:"edges"`
	Rests      int    `json:"rests"`
	Excepted   int    `json:"excepted"`
	missing    int    // walks that were not made
}

func (w *walkRow) add(v walkRow) {
	w.Partitions += v.Partitions
	w.Walks += v.Walks
	w.Covered += v.Covered
	w.States += v.States
	w.Edges += v.Edges
	w.Rests += v.Rests
	w.Excepted += v.Excepted
	w.missing += v.missing
}

const (
	walkSchema    = 1
	maxViolations = 3
)

func (o *exploreAll) report(families []explore.Family, results []explore.FamilyResult) *walkReport {
	r := &walkReport{
		Schema: walkSchema, Version: exploreVersion(), Nodes: o.plan.Members, Lost: o.plan.Lost, Crashes: o.plan.Crashes, Pauses: o.plan.Pauses,
		Leaves: o.plan.Leaves, Removals: o.plan.Removals, Forgets: o.plan.Forgets, Restarts: o.plan.Restarts,
		NoStore: o.plan.NoStore, LateDetection: o.plan.LateCut, Watch: o.plan.Watch, Strategy: o.strategy,
		WhenLeaseUnknown: o.unknown.is, Time: o.budget.String(), Complete: true, Violations: []explore.Violation{},
	}
	index := make(map[string]int)
	known := make(map[string]bool)
	for k := range families {
		f, x := &families[k], &results[k]
		n, ok := index[f.Sizes]
		if !ok {
			n = len(r.Sizes)
			index[f.Sizes] = n
			r.Sizes = append(r.Sizes, walkRow{Sizes: f.Sizes})
		}
		row := walkRow{Walks: x.Walked, Covered: x.Covered, States: x.States, Edges: x.Edges, Rests: x.Rests, Excepted: x.Excepted}
		row.missing = len(f.Walks) - x.Walked - x.Covered
		for _, w := range f.Walks {
			if name := explore.Partition(w.Sides).String(); !known[name] {
				known[name] = true
				row.Partitions++
			}
		}
		r.Sizes[n].add(row)
		r.add(row)
		r.Complete = r.Complete && x.Complete
		for _, v := range x.Broken {
			r.violated(v)
		}
	}
	return r
}

// violated notes a violation. Of those that say the same the one with the fewest steps is kept.
func (r *walkReport) violated(v explore.Violation) {
	k := slices.IndexFunc(r.Violations, func(w explore.Violation) bool { return w.Promise == v.Promise && w.Text == v.Text })
	switch {
	case k >= 0 && len(v.Steps) < len(r.Violations[k].Steps):
		r.Violations[k] = v
	case k < 0 && len(r.Violations) < maxViolations:
		r.Violations = append(r.Violations, v)
	}
}

func (r *walkReport) json(to io.Writer) error { return writeJSON(to, r) }

// text writes a table, the violations with the steps that lead to them, and a line that says how it ended.
func (r *walkReport) text(to io.Writer) error {
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "sides\tcuts\twalks\tcovered\tstates\tedges\trests\t")
	for _, w := range append(r.Sizes, r.total()) {
		fmt.Fprintf(t, "%s\t", w.Sizes)
		for _, n := range []int{w.Partitions, w.Walks, w.Covered, w.States, w.Edges, w.Rests} {
			fmt.Fprintf(t, "%s\t", figure(n))
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	p := paint(to)
	for _, v := range r.Violations {
		fmt.Fprintf(to, "\n%s %s\n  cut into %s, and then:\n", p.red(v.Promise), v.Text, v.Cluster)
		for _, step := range v.Steps {
			fmt.Fprintf(to, "  %s\n", step)
		}
	}
	line := r.outcome(p)
	if isTerminal(to) { // elsewhere the same question gives the same text
		line += " in " + r.Elapsed
	}
	_, err := fmt.Fprintf(to, "\n%s\n", line)
	return err
}

func (r *walkReport) total() walkRow {
	w := r.walkRow
	w.Sizes = "all"
	return w
}

// outcome is the last line without the time.
func (r *walkReport) outcome(p painter) string {
	states := figure(r.States) + " states"
	switch {
	case len(r.Violations) > 0:
		return p.red("broken") + ": " + states + " seen"
	case r.Complete:
		return p.green("nothing broken") + ": everything was tried, " + states
	default:
		return p.yellow("not everything was tried") +
			fmt.Sprintf(": %s seen, nothing broken in them; %s walks not finished", states, figure(r.missing))
	}
}

func figure(n int) string { return thousands(uint64(n)) }
