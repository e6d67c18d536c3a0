package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// maxTables is how many scenarios get a table of their own.
const maxTables = 8

// text writes a table over all scenarios, and one for each where there are few.
func (c *comparison) text(to io.Writer) error {
	p := paint(to)
	var b bytes.Buffer
	of := make(map[string][]compareRow)
	for _, r := range c.Rows {
		of[r.Scenario] = append(of[r.Scenario], r)
	}
	if n := len(of) - 1; 0 < n && n <= maxTables {
		for _, name := range c.Scenarios {
			fmt.Fprintf(&b, "%s\n\n%s\n", p.bold(name), compareTable(of[name]))
		}
	}
	what := count(uint64(len(c.Scenarios)), "scenario") + " together"
	if len(c.Scenarios) == 1 {
		what = c.Scenarios[0]
	}
	fmt.Fprintf(&b, "%s\n\n%s", p.bold(what), compareTable(of[""]))
	fmt.Fprintf(&b, "\nSeeds %s. Times are seconds: half of the runs, 99 in 100, the longest. Double-active: both sides up after the decision;\n"+
		"nobody-active: nobody up; resolved: from the last cut until nothing was left to be decided.\n", c.Seeds)
	if len(of)-1 > maxTables {
		b.WriteString("-o json has the figures of each scenario.\n")
	}
	_, err := to.Write(b.Bytes())
	return err
}

// compareTable is aligned text; colour would count as width.
func compareTable(rows []compareRow) string {
	const share1, share2, group, unresolved = 13, 14, 8, 14
	name := 0
	for i := range rows {
		name = max(name, len(rows[i].Variant))
	}
	var b strings.Builder
	line := func(cells ...string) {
		fmt.Fprintf(&b, "%-*s%*s%*s", name, cells[0], share1, cells[1], share2, cells[2])
		for _, c := range cells[3 : len(cells)-1] {
			fmt.Fprintf(&b, "%*s", group*9/(len(cells)-4), c)
		}
		fmt.Fprintf(&b, "%*s\n", unresolved, cells[len(cells)-1])
	}
	line("", "both", "nobody", "double-active (s)", "nobody-active (s)", "resolved (s)", "not")
	line("", "survived", "survived", "p50", "p99", "max", "p50", "p99", "max", "p50", "p99", "max", "resolved")
	for i := range rows {
		r := &rows[i]
		cells := []string{r.Variant, share(r.BothSides, r.Runs), share(r.Nobody, r.Runs)}
		for _, q := range []quantiles{r.DoubleActive, r.NobodyActive, r.Resolved} {
			cells = append(cells, tenths(q.P50), tenths(q.P99), tenths(q.Max))
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

func tenths(s float64) string {
	if s == 0 {
		return "0"
	}
	return fmt.Sprintf("%.1f", s)
}
