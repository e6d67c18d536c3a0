package timing

import "time"

// Row is one line of a report for people.
type Row struct {
	// Label says what takes so long; one that begins with blanks goes on what the row before it began.
	Label string
	// Cells are the time, or two: that of the larger half, and that of a lone node.
	Cells []string
}

// String says from when to when, rounded for people.
func (s Span) String() string { return Short(s.Fastest) + " to " + Short(s.Worst) }

// Short rounds a time for people, to tenths of a second.
func Short(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }

// Rows is the report as a table. lease says whether the strategy asks for one.
func (r *Report) Rows(lease bool) (rows []Row) {
	row := func(label string, cells ...string) { rows = append(rows, Row{label, cells}) }
	both := func(label string, s Sides) { row(label, s.Majority.String(), s.Lone.String()) }
	both("Serf notices after", r.Serf)
	if r.Probes != (Sides{}) {
		both("own probes notice after", r.Probes)
	}
	both("the side decides after", r.Decision)
	row("between two condemnations", "at most "+Short(r.LargestGap))
	if !lease {
		row("resolved after", "at most "+Short(r.Resolution))
		row("both sides up", "at most "+Short(r.DoubleActive.CutOff))
	} else {
		row("resolved after", "at most "+Short(r.Resolution)+", "+Short(r.ResolutionStoreDown)+" while the lease store is unreachable")
		row("both sides up after the verdict", "at most")
		row("  the loser watches it", Short(r.DoubleActive.Watching))
		row("  the loser has to ask", Short(r.DoubleActive.Asking))
		row("  the loser cannot reach the store", Short(r.DoubleActive.CutOff))
		row("the larger side always asks first", "with a delay of at least "+Short(r.MinorityDelay)+" for the minority")
	}
	row("recommended stable-after", Short(r.StableAfter))
	return rows
}
