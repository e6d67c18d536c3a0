package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
)

// Colours of the timeline, by kind.
var colours = map[string]string{
	KindWorld:               "\x1b[1m",
	downing.OccurredDown:    "\x1b[31m",
	downing.OccurredGranted: "\x1b[32m",
	downing.OccurredVerdict: "\x1b[32m",
	downing.OccurredRefused: "\x1b[33m",
	downing.OccurredHeld:    "\x1b[33m",
	downing.OccurredUnknown: "\x1b[33m",
}

// Line writes one line of the timeline.
func Line(w io.Writer, e Event, colour bool) {
	node := e.Node
	if node == "" {
		node = "--"
	}
	line := fmt.Sprintf("%7.2fs  %-4s %s", e.At.Seconds(), node, e.Detail)
	if c := colours[e.Kind]; colour && c != "" {
		line = c + line + "\x1b[0m"
	}
	fmt.Fprintln(w, line)
}

// Table writes the result for people.
func (r *Result) Table(w io.Writer) {
	row := func(label, format string, args ...any) {
		fmt.Fprintf(w, "%-22s%s\n", label, fmt.Sprintf(format, args...))
	}
	none := func(names []string) string {
		if len(names) == 0 {
			return "(nobody)"
		}
		return strings.Join(names, " ")
	}
	fmt.Fprintln(w)
	row("survivors", "%s", none(r.Survivors))
	row("downed", "%s", none(r.Down))
	row("time to resolution", "%v from the cut to the last member down", round(r.ResolvedAfter))
	if r.UsesLease {
		row("double-active time", "%v from the verdict to the last member down", round(r.DoubleActive))
		row("lease", "%s, holder %s, token %d", r.Lease.Name, orNobody(r.Lease.Holder), r.Lease.Token)
		row("verdict", "%d by %s: %s", r.Verdict.Token, orNobody(r.Verdict.DecidedBy), r.Verdict.Reason)
	}
	verdict := "exactly one side is up, and the downed stayed out"
	if !r.Passed {
		verdict = "NOT exactly one side is up"
	}
	row("result", "%s", verdict)
}

func orNobody(s string) string {
	if s == "" {
		return "nobody"
	}
	return s
}

func round(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}

type jsonEvent struct {
	At     string `json:"at"`
	Node   string `json:"node"`
	Kind   string `json:"kind"`
	Detail string `json:"detail"`
}

// JSON writes the result as one object.
func (r *Result) JSON(w io.Writer) error {
	events := make([]jsonEvent, len(r.Events))
	for i, e := range r.Events {
		events[i] = jsonEvent{At: round(e.At).String(), Node: e.Node, Kind: e.Kind, Detail: e.Detail}
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Passed        bool                  `json:"passed"`
		Survivors     []string              `json:"survivors"`
		Down          []string              `json:"down"`
		ResolvedAfter string                `json:"resolved-after"`
		DoubleActive  string                `json:"double-active"`
		Lease         downing.LeaseStatus   `json:"lease"`
		Verdict       downing.VerdictStatus `json:"verdict"`
		Events        []jsonEvent           `json:"events"`
	}{r.Passed, notNil(r.Survivors), notNil(r.Down), round(r.ResolvedAfter).String(), round(r.DoubleActive).String(), r.Lease, r.Verdict, events})
}

func notNil(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
