package ledger

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// listed is how many of a kind WriteText lists one by one.
const listed = 10

// Clean reports whether each resource was written in order of tokens, and each token was one member's.
func (r Report) Clean() bool { return len(r.Violations) == 0 && len(r.Shared) == 0 }

// WriteText writes the report as a table, and the first of whatever should not be one by one.
func (r Report) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "lines\t%d\t%d accepted, %d refused; %d resources, %d runs\n", r.Lines, r.Accepted, r.Refused,
		r.Resources, r.Runs)
	fmt.Fprintf(t, "out of order\t%d\taccepted with an older token after a newer one\n", len(r.Violations))
	fmt.Fprintf(t, "shared tokens\t%d\thad by runs on several members\n", len(r.Shared))
	fmt.Fprintf(t, "overlaps\t%d\t%s in all, the longest %s; %d writes in them refused\n",
		len(r.Overlaps), short(r.Overlap.Total), short(r.Overlap.Max), r.Overlap.Refused)
	for _, row := range []struct {
		name string
		s    Spread
	}{{"planned changes", r.Planned}, {"unplanned changes", r.Unplanned}} {
		fmt.Fprintf(t, "%s\t%d\twithout work: p50 %s, p99 %s, max %s\n", row.name, row.s.N, short(row.s.P50),
			short(row.s.P99), short(row.s.Max))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return r.writeFaults(w)
}

// writeFaults lists what there should be none of.
func (r Report) writeFaults(w io.Writer) error {
	for _, v := range r.Violations[:min(listed, len(r.Violations))] {
		if _, err := fmt.Fprintf(w, "! %s, %s: token %d of %s after token %d\n", v.Resource, short(v.At), v.Token,
			v.Member, v.Newest); err != nil {
			return err
		}
	}
	for _, s := range r.Shared[:min(listed, len(r.Shared))] {
		if _, err := fmt.Fprintf(w, "! %s: token %d was had by %v\n", s.Resource, s.Token, s.Members); err != nil {
			return err
		}
	}
	return nil
}

// short rounds to what matters when people wait for machines.
func short(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d.Round(time.Microsecond)
	}
	return d.Round(100 * time.Microsecond)
}
