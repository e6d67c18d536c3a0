package demo

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
)

// Colours of the timeline, by kind.
var colours = map[string]string{
	kindWorld:               "\x1b[1m",
	downing.OccurredDown:    "\x1b[31m",
	downing.OccurredGranted: "\x1b[32m",
	downing.OccurredVerdict: "\x1b[32m",
	downing.OccurredRefused: "\x1b[33m",
	downing.OccurredHeld:    "\x1b[33m",
	downing.OccurredUnknown: "\x1b[33m",
}

// Line writes one line of the timeline.
func Line(w io.Writer, e Event, colour bool) {
	line := fmt.Sprintf("%7.2fs  %-4s %s", time.Duration(e.At).Seconds(), cmp.Or(e.Node, "--"), e.Detail)
	if c := colours[e.Kind]; colour && c != "" {
		line = c + line + "\x1b[0m"
	}
	fmt.Fprintln(w, line)
}

// Table is the result for people.
func (r *Result) Table() string {
	var w strings.Builder
	row := func(label, format string, args ...any) {
		fmt.Fprintf(&w, "%-22s%s\n", label, fmt.Sprintf(format, args...))
	}
	none := func(names []string) string {
		if len(names) == 0 {
			return "(nobody)"
		}
		return strings.Join(names, " ")
	}
	fmt.Fprintln(&w)
	row("survivors", "%s", none(r.Survivors))
	row("downed", "%s", none(r.Down))
	row("time to resolution", "%v from the cut to the last member down", r.ResolvedAfter)
	if r.Lease.Name != "" { // the strategy asks for one
		row("double-active time", "%v from the verdict to the last member down", r.DoubleActive)
		row("lease", "%s, holder %s, token %d", r.Lease.Name, cmp.Or(r.Lease.Holder, "nobody"), r.Lease.Token)
		row("verdict", "%d by %s: %s", r.Verdict.Token, cmp.Or(r.Verdict.DecidedBy, "nobody"), r.Verdict.Reason)
	}
	verdict := "exactly one side is up, and the downed stayed out"
	if !r.Passed {
		verdict = "NOT exactly one side is up"
	}
	row("result", "%s", verdict)
	return w.String()
}

// span is a time that is shown rounded to what people want to know.
type span time.Duration

func (s span) String() string {
	to := time.Millisecond
	if time.Duration(s) < time.Second {
		to = 10 * time.Microsecond
	}
	return time.Duration(s).Round(to).String()
}

func (s span) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
