//go:build linux

package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/partial"
	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
)

// quick bounds the 99th percentile of the double-active time of losers that reach the store.
const quick = time.Second

// figures are a distribution, in seconds.
type figures struct {
	Count int
	P50   float64
	P99   float64
	Max   float64
}

// distribution uses the nearest rank: a percentile is a value that was measured.
func distribution(values []float64) figures {
	if len(values) == 0 {
		return figures{}
	}
	v := slices.Sorted(slices.Values(values))
	rank := func(p float64) float64 { return v[int(math.Ceil(p*float64(len(v))))-1] }
	return figures{Count: len(v), P50: rank(0.5), P99: rank(0.99), Max: v[len(v)-1]}
}

// row sums up the rounds that had one shape or fault.
type row struct {
	Fault    string
	Rounds   int
	Outcomes map[outcome]int
	Failed   int
	// Up of Possible members were up where single links were cut.
	Up, Possible int
	Active       figures
	CutOff       figures
	Resolution   figures
	Nobody       figures
}

// summary is what a run has shown.
type summary struct {
	Seed     uint64
	Planned  int
	Played   int
	Parallel int
	Seconds  float64
	Busy     float64
	Versions []string
	Verdicts int
	Restarts int
	Modes    map[mode]int
	Classes  map[class]figures
	Bound    float64
	Bounded  figures
	All      row
	Shapes   []row
	Faults   []row
	Problems map[int]string
	Rejoin   figures
	Stranded int
	// TwoSides, Broken and NotWhole count rounds: with two sides up, with a broken chain of verdicts, with
	// members missing when all should be there.
	TwoSides int
	Broken   int
	NotWhole int
	Single   *singleSummary
}

// noFault stands for the rounds with nothing but the cut.
const noFault = "nothing else"

func summarize(results []result, planned int, took time.Duration, versions []string, o options) summary {
	s := summary{
		Seed: o.seed, Planned: planned, Played: len(results), Parallel: o.parallel, Seconds: took.Seconds(),
		Versions: versions, Modes: make(map[mode]int), Classes: make(map[class]figures),
		Problems: make(map[int]string),
		All:      rowOf("all", results),
	}
	active := make(map[class][]float64)
	var bounded, rejoin []float64
	for _, r := range results {
		s.Modes[r.Plan.Mode]++
		s.Busy += r.Busy / float64(len(results))
		s.Verdicts += len(r.Verdicts)
		s.Restarts += len(r.Downs)
		s.Bound = max(s.Bound, r.Bound)
		count := func(is bool, n *int) {
			if is {
				*n++
			}
		}
		count(r.TwoSides, &s.TwoSides)
		count(r.BrokenChain, &s.Broken)
		count(r.NotWhole, &s.NotWhole)
		if r.failed() {
			s.Problems[r.Plan.Round] = r.Error
			continue
		}
		rejoin = append(rejoin, r.Rejoin)
		if r.Stranded {
			s.Stranded++
		}
		if r.Plan.forgets() != nil {
			continue // what a loser reads of a store that has forgotten is no measure
		}
		for _, a := range r.Active {
			active[a.Class] = append(active[a.Class], a.Seconds)
			if a.Class == cutOff && r.Plan.bounded() {
				bounded = append(bounded, a.Seconds)
			}
		}
	}
	for _, c := range classes {
		s.Classes[c] = distribution(active[c])
	}
	s.Bounded, s.Rejoin = distribution(bounded), distribution(rejoin)
	shapes := []shape{halves, lone, threeWay, isolated, bridge, oneWay, flapping, loss}
	for i := range partial.Shapes {
		shapes = append(shapes, ofShape(i))
	}
	for _, shape := range shapes {
		s.Shapes = append(s.Shapes, rowOf(string(shape),
			having(results, func(p *plan) bool { return p.Shape == shape })))
	}
	s.Faults = append(s.Faults, rowOf(noFault, having(results, func(p *plan) bool {
		return len(p.Faults) == 0
	})))
	for _, k := range append([]kind{storeSome, storeSide, storeAll, pause, kill, storeKilled, storePaused,
		healEarly, secondCut}, deeds...) {
		s.Faults = append(s.Faults, rowOf(string(k), having(results, func(p *plan) bool {
			return p.has(k) != nil
		})))
	}
	for _, stable := range slices.Compact(slices.Concat(stables, reference)) {
		all := having(results, func(p *plan) bool { return p.Stable == stable && p.has(storeSide) == nil })
		cut := having(results, func(p *plan) bool { return p.Stable == stable && p.has(storeSide) != nil })
		name := "stable-after " + stable
		s.Faults = append(s.Faults, rowOf(name, all), rowOf(name+", "+string(storeSide), cut))
	}
	return s
}

func having(results []result, want func(*plan) bool) (some []result) {
	for i := range results {
		if want(&results[i].Plan) {
			some = append(some, results[i])
		}
	}
	return some
}

func rowOf(name string, results []result) row {
	x := row{Fault: name, Rounds: len(results), Outcomes: make(map[outcome]int)}
	var active, cut, resolution, idle []float64
	for _, r := range results {
		if r.failed() {
			x.Failed++
			continue
		}
		x.Outcomes[r.Outcome]++
		if r.Possible > 0 {
			x.Up, x.Possible = x.Up+len(r.Up), x.Possible+r.Possible
		}
		for _, a := range r.Active {
			switch a.Class {
			case reaches:
				active = append(active, a.Seconds)
			case cutOff:
				cut = append(cut, a.Seconds)
			}
		}
		if r.Resolution > 0 {
			resolution, idle = append(resolution, r.Resolution), append(idle, r.Nobody)
		}
	}
	x.Active, x.CutOff, x.Resolution, x.Nobody = distribution(active), distribution(cut),
		distribution(resolution), distribution(idle)
	return x
}

// slow reports whether the losers that reach the store took too long.
func (s *summary) slow() bool { return s.Classes[reaches].P99 > quick.Seconds() }

// Failed reports whether the run shows what it must not: a round that failed, rounds that were not played,
// slow losers.
func (s *summary) Failed() bool {
	return len(s.Problems) > 0 || s.Played < s.Planned || s.slow() || s.Single.broken() || s.Single.late()
}

// command plays a round again.
func command(o *options, round int) string {
	text := fmt.Sprintf("go run -C test ./hosts/soak --seed %d --round %d", o.seed, round)
	switch {
	case o.singleton:
		text += " --singleton"
	case o.shards:
		text += " --shards"
	case o.planned:
		text += " --planned"
	case o.family != mixed:
		text += " --family " + string(o.family)
		if o.members != usualMembers {
			text += fmt.Sprint(" --members ", o.members)
		}
	}
	if o.store != "" && o.store != cluster.Stores[0] {
		text += " --store " + o.store
	}
	return text
}

func writeProgress(w io.Writer, r *result, done, total int, o *options) {
	if r.CutShort {
		fmt.Fprintf(w, "%3d/%d  round %d was cut short\n", done, total, r.Plan.Round)
		return
	}
	state := string(r.Outcome)
	if len(r.Up) > 0 && r.Outcome == oneSide {
		state = strings.Join(r.Up, " ") + " up"
	}
	if r.failed() {
		state = "FAILED"
	}
	fmt.Fprintf(w, "%3d/%d  round %d  %s  %s: %s; %s; %.0f s, processors %.0f %% busy\n",
		done, total, r.Plan.Round, r.Plan.Mode, r.Text, state, r.times(), r.Took, 100*r.Busy)
	if r.failed() {
		fmt.Fprintf(w, "        %s\n        again: %s\n        logs:  %s\n",
			strings.ReplaceAll(r.Error, "\n", "\n        "), command(o, r.Plan.Round), r.Logs)
	}
}

// times are the figures of a round on one line.
func (r *result) times() string {
	if r.Single != nil && r.Plan.Single.planned() {
		return r.Single.String()
	}
	worst := make(map[class]float64)
	for _, a := range r.Active {
		worst[a.Class] = max(worst[a.Class], a.Seconds)
	}
	parts := []string{fmt.Sprintf("resolved in %.1f s, nobody active %.1f s", r.Resolution, r.Nobody)}
	for _, c := range classes {
		if x, ok := worst[c]; ok {
			parts = append(parts, fmt.Sprintf("double-active %s (%s)", short(x), c))
		}
	}
	if r.Single != nil {
		parts = append(parts, r.Single.String())
	}
	return strings.Join(parts, ", ")
}

// short is a time for people.
func short(seconds float64) string {
	switch {
	case seconds == 0:
		return "0"
	case seconds < 1:
		return fmt.Sprintf("%.0f ms", 1000*seconds)
	default:
		return fmt.Sprintf("%.1f s", seconds)
	}
}

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
	t := table{{first, "rounds", "one side", "nobody", "nothing decided", "failed", "up of the possible",
		"double-active, store reached", "double-active, cut off", "resolution", "nobody active"}}
	for _, x := range rows {
		if x.Rounds == 0 {
			continue
		}
		t = append(t, []string{
			x.Fault, strconv.Itoa(x.Rounds), strconv.Itoa(x.Outcomes[oneSide]), strconv.Itoa(x.Outcomes[nobody]),
			strconv.Itoa(x.Outcomes[nothing]), strconv.Itoa(x.Failed),
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
		for _, t := range []table{s.classTable(), rowsTable("shape", append(s.Shapes, s.All)),
			rowsTable("further fault", s.Faults)} {
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
	text := fmt.Sprintf("%d rounds of seed %d in %v, %d at a time: %d failed", s.Played, s.Seed,
		time.Duration(s.Seconds*float64(time.Second)).Round(time.Second), s.Parallel, len(s.Problems))
	if s.Played < s.Planned {
		text += fmt.Sprintf("; %d were planned", s.Planned)
	}
	return text
}
