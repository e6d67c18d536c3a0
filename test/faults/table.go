package faults

import (
	"fmt"
	"slices"
	"strings"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Row is what one fault leads to at each step: the outcome; what the record holds. " | " parts what may both
// be.
type Row struct {
	Name string
	// On are the names of the stores that it is played on.
	On string
	// Stays: until it is healed; else once.
	Stays bool
	// Answer makes A's store, as Open returned it, take another answer for that of the server, or none. Late:
	// its write is executed when A has given up.
	Answer func(store lease.Store, step string, on bool)
	Late   bool
	Want   [6]string

	mode  Mode        // what the proxy does
	deed  func(*cell) // what another process does right before the request; where it stays, before each write
	whole bool        // the server's own: see Whole
}

// The stores.
const (
	Kubernetes = "Kubernetes"
	others     = "etcd, PostgreSQL, MongoDB's protocol"
	all        = Kubernetes + ", " + others
)

// Names of the faults of the server itself.
const (
	Killed    = "server killed and started again"
	Withdrawn = "right to write withdrawn"
	Full      = "disk full"
	Forbidden = "403: the right is withdrawn"
	Stopped   = "etcd stopped and continued"
)

var (
	// Recovers is the row of a fault that A gets over at once.
	Recovers = [6]string{"granted; A 2", "granted; A 1", "granted; A 2", "kept; A 2", "released; free 2",
		"catches up; B 2"}
	// CutOff is the row of a party whose requests all fail before the server sees them.
	CutOff = [6]string{"unknown; free 1", "unknown; absent", "unknown; free 1", "lost; A 2", "unknown; A 2",
		"blind until healed; B 2"}
	// Unheard is the row of a party whose requests are executed, and that never hears of it.
	Unheard = [6]string{"unknown; free 1", "unknown; A 1", "unknown; A 2", "lost; A 2", "unknown; free 2",
		"blind until healed; B 2"}
)

// refused is the row of an answer that says for certain that nothing was written, as reads go on.
var refused = [6]string{
	"unknown (refused); free 1", "unknown (refused); absent", "unknown (refused); free 1", "lost; A 2",
	"unknown (refused); A 2 | unknown (refused); free 2", // tried again when it is over
	"catches up; B 2",
}

// inTime is the row of a fault that is over at once: A recovers if what is left of the call suffices for
// another request. A heartbeat has more, except where the client keeps a dead connection for longer than a
// holder may be silent here (etcd's does, for 10 s).
func inTime(r [6]string) [6]string { return caughtUp(either(Recovers, r)) }

// caughtUp is a row whose fault is over before the watch is judged.
func caughtUp(r [6]string) [6]string {
	r[5] = Recovers[5]
	return r
}

// half is the row of a fault that takes up most of a call, as a dead connection does that the client notices
// late: what is left may be enough for another request, or for half of one, which is undone then.
func half(r [6]string) [6]string {
	r = either(inTime(r), [6]string{"unknown; A 2", "unknown; A 1", "unknown; A 2", "kept; A 2",
		"unknown; free 2", Recovers[5]})
	r[3] = Recovers[3]
	return r
}

// unheardFree is what is left where A has undone its write already.
var unheardFree = [6]string{"unknown; free 1", "unknown; free 1", "unknown; free 2", "lost; A 2",
	"unknown; free 2", "catches up; B 2"}

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
// A is struck. Before an acquire the record is free under token 1, or absent where A is to create it; before
// a heartbeat or a release A holds it under token 2. A watch begins with B holding under token 1, and B takes
// it again while the fault lasts.
var Table = []Row{
	// Kubernetes' client ends its requests well before the call ends.
	{Name: "refused, once", On: Kubernetes, mode: Refuse, Want: Recovers},
	{Name: "refused, once", On: others, mode: Refuse, Want: inTime(CutOff)},
	{Name: "refused, from then on", On: all, mode: Refuse, Stays: true, Want: CutOff},
	{Name: "reset before the write, once", On: Kubernetes, mode: ResetBefore, Want: Recovers},
	{Name: "reset before the write, once", On: others, mode: ResetBefore, Want: inTime(CutOff)},
	{Name: "reset before the write, from then on", On: all, mode: ResetBefore, Stays: true, Want: CutOff},
	{Name: "reset after the write, once", On: Kubernetes, mode: ResetAfter, Want: Recovers},
	{Name: "reset after the write, once", On: others, mode: ResetAfter, Want: inTime(Unheard)},
	{Name: "reset after the write, from then on", On: all, mode: ResetAfter, Stays: true, Want: Unheard},
	{Name: "stalled before the write, once", On: Kubernetes, mode: StallBefore, Want: half(CutOff)},
	{Name: "stalled before the write, once", On: others, mode: StallBefore, Want: either(inTime(CutOff), half(CutOff))},
	{Name: "stalled before the write, from then on", On: all, mode: StallBefore, Stays: true, Want: CutOff},
	{Name: "stalled after the write, once", On: Kubernetes, mode: StallAfter, Want: half(Unheard)},
	{Name: "stalled after the write, once", On: others, mode: StallAfter, Want: either(inTime(Unheard), half(Unheard))},
	{Name: "stalled after the write, from then on", On: all, mode: StallAfter, Stays: true, Want: Unheard},
	{Name: "half an answer, once", On: Kubernetes, mode: Half, Want: Recovers},
	{Name: "half an answer, once", On: others, mode: Half, Want: inTime(Unheard)},
	{Name: "half an answer, from then on", On: all, mode: Half, Stays: true, Want: Unheard},
	{Name: "slow beyond the time-out, once", On: Kubernetes, mode: Slow, Want: half(Unheard)},
	{Name: "slow beyond the time-out, once", On: others, mode: Slow, Want: either(inTime(Unheard), half(Unheard))},
	{Name: "slow beyond the time-out, from then on", On: all, mode: Slow, Stays: true, Want: Unheard},
	{Name: "written after the client gave up, once", On: Kubernetes, mode: Late, Want: half(CutOff)},
	// The second request may be the one that nobody hears of any more.
	{
		Name: "written after the client gave up, once", On: others, mode: Late,
		Want: either(inTime(either(CutOff, Unheard)), half(CutOff)),
	},
	{Name: "written after the client gave up, from then on", On: all, mode: Late, Stays: true, Want: CutOff},
	{Name: "another hand writes the same again, once", On: all, deed: (*cell).touch, Want: Recovers},
	{Name: "another hand writes the same again, before each write", On: all, deed: (*cell).touch, Stays: true, Want: [6]string{
		"unknown; free 1", "unknown; free 0", "unknown; free 1", "lost; A 2", "unknown; A 2", "catches up; B 2",
	}},
	{Name: "the record is deleted", On: all, deed: (*cell).remove, Want: [6]string{
		"granted; A 1", "granted; A 1", "granted; A 2", "lost; absent", "not-released; absent", "catches up; B 2",
	}},
	{Name: "somebody else gets the lease", On: all, deed: (*cell).overtake, Want: [6]string{
		"held by B; B 2", "held by B; B 1", "held by B; B 2", "lost; operator 2", "not-released; operator 2", "catches up; B 3",
	}},
	{Name: "another life under A's name gets the lease", On: all, deed: (*cell).displace, Want: [6]string{
		"granted; A 3", "granted; A 2", "granted; A 3", "lost; A 3", "not-released; A 3", "catches up; B 3",
	}},
	// A write that was on its way when the server came back may be executed: A's lease undoes it.
	{Name: Killed, On: all, whole: true, Want: caughtUp(either(CutOff, Unheard, unheardFree))},
	{Name: Stopped, On: Kubernetes, whole: true, Want: caughtUp(either(CutOff, Unheard, unheardFree))},
	{Name: Withdrawn, On: "etcd, PostgreSQL", whole: true, Want: refused},
	{Name: Forbidden, On: Kubernetes, whole: true, Want: [6]string{
		"unknown; free 1", "unknown (refused); absent", "unknown (refused); free 1", "lost; A 2",
		"unknown (refused); A 2 | unknown (refused); free 2", "catches up; B 2",
	}},
	{Name: Full, On: "etcd, PostgreSQL", whole: true, Want: refused},
}

// Page is the table for people: a row for each fault and step, in Markdown, without a head. Cells are what
// may come of it.
func Page(more []Row) string {
	var b strings.Builder
	for _, r := range slices.Concat(Table, more) {
		fmt.Fprintf(&b, "| %s | %s |", r.Name, r.On)
		for _, cell := range r.Want {
			fmt.Fprintf(&b, " %s |", strings.ReplaceAll(cell, " | ", ", or "))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// allowed are the results that a cell may have.
func (r *Row) allowed(step string) []string {
	return strings.Split(r.Want[slices.Index(steps, step)], " | ")
}
