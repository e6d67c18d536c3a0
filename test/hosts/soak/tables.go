//go:build linux

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// table is one of the summary.
type table [][]string

func (t table) text(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, cells := range t {
		fmt.Fprintln(out, strings.Join(cells, "\t"))
	}
	return out.Flush()
}

// three are p50, p99 and max of a distribution, empty if nothing was measured.
func (f figures) three() string {
	if f.Count == 0 {
		return ""
	}
	return fmt.Sprintf("%s / %s / %s", short(f.P50), short(f.P99), short(f.Max))
}

// survivors says how many members were up of those that could be; empty where that is not known.
func (x *row) survivors() string {
	if x.Possible == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d", x.Up, x.Possible)
}

func rowsTable(first string, rows []row) table {
	t := table{{first, "rounds", "one side", "nobody", "nothing decided", "failed", "up of the possible", "double-active, store reached", "double-active, cut off", "resolution", "nobody active"}}
	for _, x := range rows {
		if x.Rounds == 0 {
			continue
		}
		t = append(t, []string{
			x.Fault, strconv.Itoa(x.Rounds), strconv.Itoa(x.Outcomes[oneSide]), strconv.Itoa(x.Outcomes[nobody]), strconv.Itoa(x.Outcomes[nothing]), strconv.Itoa(x.Failed),
			x.survivors(), x.Active.three(), x.CutOff.three(), x.Resolution.three(), x.Nobody.three(),
		})
	}
	return t
}

func (s *summary) classTable() table {
	t := table{{"loser", "losers", "p50", "p99", "max", "bound"}}
	add := func(name string, f figures, bound string) {
		if f.Count == 0 {
			t = append(t, []string{name, "0", "", "", "", bound})
			return
		}
		t = append(t, []string{name, strconv.Itoa(f.Count), short(f.P50), short(f.P99), short(f.Max), bound})
	}
	add(string(reaches), s.Classes[reaches], "p99 at most "+short(quick.Seconds()))
	add("cut off from the store, clean cut", s.Bounded, short(s.Bound)+", computed")
	add("cut off from the store, all", s.Classes[cutOff], "")
	add("stood still, from when it went on", s.Classes[stoodStill], "")
	add("loses packets", s.Classes[lossyClass], "")
	return t
}

// write prints the summary.
func (s *summary) write(w io.Writer) error {
	fmt.Fprintf(w, "\n%s\n%s\n", s.headline(), strings.Join(s.Versions, "; "))
	fmt.Fprintf(w, "beside the stock agent / beside Debian's / own node: %d / %d / %d rounds; processors busy %.0f %%; back as a member: %s\n\n",
		s.Modes[moduleMode], s.Modes[debianMode], s.Modes[ownMode], 100*s.Busy, s.Rejoin.three())
	if s.Single == nil {
		fmt.Fprintf(w, "two sides up: %d rounds; chain of verdicts broken: %d rounds; not all members again: %d rounds\n\n", s.TwoSides, s.Broken, s.NotWhole)
	}
	if s.Single == nil || s.Single.Planned == nil {
		fmt.Fprintln(w, "Double-active time (p50, p99, max below: of each row)")
		for _, t := range []table{s.classTable(), rowsTable("shape", append(s.Shapes, s.All)), rowsTable("further fault", s.Faults)} {
			if err := t.text(w); err != nil {
				return err
			}
			fmt.Fprintln(w)
		}
	}
	if s.Single != nil {
		if err := s.Single.write(w); err != nil {
			return err
		}
	}
	if s.slow() {
		fmt.Fprintf(w, "TOO SLOW: the p99 of losers that reach the store is above %v\n", quick)
	}
	if s.Single.late() {
		fmt.Fprintf(w, "TOO SLOW: the p99 of planned changes of one member is above %v\n", handOverTime)
	}
	for _, round := range slices.Sorted(maps.Keys(s.Problems)) {
		fmt.Fprintf(w, "FAILED: round %d: %s\n", round, s.Problems[round])
	}
	return nil
}

func (s *summary) headline() string {
	text := fmt.Sprintf("%d rounds of seed %d in %v, %d at a time: %d failed", s.Played, s.Seed, time.Duration(s.Seconds*float64(time.Second)).Round(time.Second), s.Parallel, len(s.Problems))
	if s.Played < s.Planned {
		text += fmt.Sprintf("; %d were planned", s.Planned)
	}
	return text
}
