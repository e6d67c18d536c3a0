package faults

import (
	"fmt"
	"slices"
	"strings"
)

// row is what one fault leads to at each step: the outcome; what the record holds. " | " parts what may both happen.
type row struct {
	Name  string
	mode  Mode
	stays bool // until it is healed; else once
	whole bool // the server's own, not the proxy's
	Want  [6]string
}

// Names of the faults of the server itself.
const (
	Killed    = "server killed and started again"
	Withdrawn = "right to write withdrawn"
	Full      = "disk full"
)

var (
	// recovers is the row of a fault that A gets over at once.
	recovers = [6]string{"granted; A 2", "granted; A 1", "granted; A 2", "kept; A 2", "released; free 2", "catches up; B 2"}
	// cutOff is the row of a party whose requests all fail before the server sees them.
	cutOff = [6]string{"unknown; free 1", "unknown; absent", "unknown; free 1", "lost; A 2", "unknown; A 2", "blind until healed; B 2"}
	// unheard is the row of a party whose requests are executed, and that never hears of it.
	unheard = [6]string{"unknown; free 1", "unknown; A 1", "unknown; A 2", "lost; A 2", "unknown; free 2", "blind until healed; B 2"}
)

// refused is the row of an answer that says for certain that nothing was written, as reads go on.
var refused = [6]string{
	"unknown (refused); free 1", "unknown (refused); absent", "unknown (refused); free 1", "lost; A 2",
	"unknown (refused); A 2 | unknown (refused); free 2", // tried again when it is over
	"catches up; B 2",
}

// inTime is the row of a fault that is over at once: A recovers if what is left of the call suffices for another request. A heartbeat has
// more, except where the client keeps a dead connection for longer than a holder may be silent here (etcd's does, for 10 s).
func inTime(r [6]string) [6]string { return caughtUp(either(recovers, r)) }

// caughtUp is a row whose fault is over before the watch is judged.
func caughtUp(r [6]string) [6]string {
	r[5] = recovers[5]
	return r
}

// unheardFree is what is left where A has undone its write already.
var unheardFree = [6]string{"unknown; free 1", "unknown; free 1", "unknown; free 2", "lost; A 2", "unknown; free 2", "catches up; B 2"}

// either allows what any of the rows does.
func either(rows ...[6]string) (all [6]string) {
	for i := range all {
		var cells []string
		for _, r := range rows {
			for one := range strings.SplitSeq(r[i], " | ") {
				if !slices.Contains(cells, one) {
					cells = append(cells, one)
				}
			}
		}
		all[i] = strings.Join(cells, " | ")
	}
	return all
}

// Table is the expected matrix, in the order of steps: read, create, update, heartbeat, release, watch.
//
// A is struck. Before an acquire the record is free under token 1, or absent where A is to create it; before a heartbeat or a release A holds
// it under token 2. A watch begins with B holding under token 1, and B takes it again while the fault lasts.
var Table = []row{
	{Name: "refused, once", mode: Refuse, Want: inTime(cutOff)},
	{Name: "refused, from then on", mode: Refuse, stays: true, Want: cutOff},
	{Name: "reset before the write, once", mode: ResetBefore, Want: inTime(cutOff)},
	{Name: "reset before the write, from then on", mode: ResetBefore, stays: true, Want: cutOff},
	{Name: "reset after the write, once", mode: ResetAfter, Want: inTime(unheard)},
	{Name: "reset after the write, from then on", mode: ResetAfter, stays: true, Want: unheard},
	{Name: "stalled before the write, once", mode: StallBefore, Want: inTime(cutOff)},
	{Name: "stalled before the write, from then on", mode: StallBefore, stays: true, Want: cutOff},
	{Name: "stalled after the write, once", mode: StallAfter, Want: inTime(unheard)},
	{Name: "stalled after the write, from then on", mode: StallAfter, stays: true, Want: unheard},
	{Name: "half an answer, once", mode: Half, Want: inTime(unheard)},
	{Name: "half an answer, from then on", mode: Half, stays: true, Want: unheard},
	{Name: "slow beyond the time-out, once", mode: Slow, Want: inTime(unheard)},
	{Name: "slow beyond the time-out, from then on", mode: Slow, stays: true, Want: unheard},
	{Name: "written after the client gave up, once", mode: Late, Want: inTime(cutOff)},
	{Name: "written after the client gave up, from then on", mode: Late, stays: true, Want: cutOff},
	// A write that was on its way when the server came back may be executed: A's lease undoes it.
	{Name: Killed, whole: true, Want: caughtUp(either(cutOff, unheard, unheardFree))},
	{Name: Withdrawn, whole: true, Want: refused},
	{Name: Full, whole: true, Want: refused},
}

// Page is the table for people: a row for each fault and step, in Markdown, without a head. Cells are what may come of it.
func Page() string {
	var b strings.Builder
	for _, r := range Table {
		WriteRow(&b, r.Name, r.on(), r.Want[:])
	}
	return b.String()
}

// on are the stores that the row is played on.
func (r row) on() string {
	switch r.Name {
	case Withdrawn, Full:
		return "etcd, PostgreSQL"
	default:
		return "etcd, PostgreSQL, MongoDB's protocol"
	}
}

// WriteRow adds a row to a table in Markdown.
func WriteRow(b *strings.Builder, name, on string, want []string) {
	fmt.Fprintf(b, "| %s | %s |", name, on)
	for _, cell := range want {
		fmt.Fprintf(b, " %s |", strings.ReplaceAll(cell, " | ", ", or "))
	}
	b.WriteString("\n")
}

// allowed are the results that a cell may have.
func (r row) allowed(step string) []string {
	return strings.Split(r.Want[slices.Index(steps, step)], " | ")
}
