package ledger

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Pause is the longest time between two attempts of a run that is writing. A run that is silent for longer is
// not writing in between: it may be stopped, or partitioned.
const Pause = time.Second

// Report is what a ledger says about the runs that wrote to it.
type Report struct {
	Lines     int
	Accepted  int
	Refused   int
	Resources int
	Runs      int
	// Violations are accepted lines with a smaller token than one before had. With a fence there are none.
	Violations []Violation
	// Shared are tokens that runs on several members had: no fence can tell those apart.
	Shared []SharedToken
	// Overlaps are the times at which two runs wrote to one resource, or tried to, in order of their
	// beginning. Without a fence all of that would have been written.
	Overlaps []Overlap
	// Overlap sums their times. Refused is how many attempts the fence refused within them.
	Overlap Sum
	// Changes are the changes of owner, in order of the new one's beginning.
	Changes []Change
	// Planned is the time without work at those where the old run had said that it stops, Unplanned at all
	// others.
	Planned   Spread
	Unplanned Spread
}

// Violation is an accepted line whose token is smaller than that of an accepted line before it.
type Violation struct {
	Resource string
	At       time.Duration
	Token    uint64
	Newest   uint64
	Member   string
}

// SharedToken is a token of a resource that several members had.
type SharedToken struct {
	Resource string
	Token    uint64
	Members  []string
}

// Overlap is a time at which two runs or more wrote to one resource. It has no length where one attempt falls
// into another run's work.
type Overlap struct {
	Resource string
	From     time.Duration
	To       time.Duration
	// Refused counts the refused attempts in it.
	Refused int
}

// Sum is the length of all overlaps together, and of the longest one.
type Sum struct {
	Total   time.Duration
	Max     time.Duration
	Refused int
}

// Change is a change of owner: the first accepted work of a run after that of another one.
type Change struct {
	Resource string
	From     string // the members
	To       string
	// At is the time of the new run's first accepted work, Gap the time since the old one's last work before
	// that.
	At  time.Duration
	Gap time.Duration
	// Ended is the time of the old run's last accepted entry before that, Began that of the new one's first,
	// whatever they say. Between them nothing ran: what a run does between two entries of its own does not
	// count. Began is the earlier one where runs interleave.
	Ended time.Duration
	Began time.Duration
	// Planned: the old run had written a stop before.
	Planned bool
}

// Spread is how a time is distributed. The percentiles are values that occurred (nearest rank).
type Spread struct {
	N   int
	P50 time.Duration
	P99 time.Duration
	Max time.Duration
}

// Analyse reads lines that are in order of time, as Read returns them. The order of what it lists is that of
// the resources' names, and of time within one.
func Analyse(lines []Line) Report {
	r := Report{Lines: len(lines)}
	resources := map[string][]Line{}
	for _, l := range lines {
		resources[l.Resource] = append(resources[l.Resource], l)
		if l.Accepted {
			r.Accepted++
		} else {
			r.Refused++
		}
	}
	r.Resources = len(resources)
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		own := resources[name]
		runs := runsOf(own)
		r.Runs += len(runs)
		r.Violations = append(r.Violations, violations(own)...)
		r.Shared = append(r.Shared, shared(own)...)
		r.Overlaps = append(r.Overlaps, overlaps(own, runs)...)
		r.Changes = append(r.Changes, changes(own)...)
	}
	r.sum()
	return r
}

// sum computes what follows from the lists.
func (r *Report) sum() {
	for _, o := range r.Overlaps {
		r.Overlap.Total += o.To - o.From
		r.Overlap.Max = max(r.Overlap.Max, o.To-o.From)
		r.Overlap.Refused += o.Refused
	}
	var planned, unplanned []time.Duration
	for _, c := range r.Changes {
		if c.Planned {
			planned = append(planned, c.Gap)
		} else {
			unplanned = append(unplanned, c.Gap)
		}
	}
	r.Planned, r.Unplanned = spread(planned), spread(unplanned)
}

func spread(times []time.Duration) Spread {
	if len(times) == 0 {
		return Spread{}
	}
	slices.Sort(times)
	n := len(times)
	rank := func(percent int) time.Duration { return times[(n*percent+99)/100-1] }
	return Spread{N: n, P50: rank(50), P99: rank(99), Max: times[n-1]}
}

func violations(lines []Line) (all []Violation) {
	var newest uint64
	for _, l := range lines {
		if !l.Accepted {
			continue
		}
		if l.Token < newest {
			all = append(all, Violation{Resource: l.Resource, At: l.At, Token: l.Token, Newest: newest,
				Member: l.Member})
		}
		newest = max(newest, l.Token)
	}
	return all
}

func shared(lines []Line) (all []SharedToken) {
	members := map[uint64][]string{}
	for _, l := range lines {
		if !slices.Contains(members[l.Token], l.Member) {
			members[l.Token] = append(members[l.Token], l.Member)
		}
	}
	for _, token := range slices.Sorted(maps.Keys(members)) {
		if len(members[token]) > 1 {
			all = append(all, SharedToken{Resource: lines[0].Resource, Token: token, Members: members[token]})
		}
	}
	return all
}

// run is a run within its resource.
type run struct {
	member, name string
	token        uint64
}

func runOf(l Line) run { return run{member: l.Member, name: l.Run, token: l.Token} }

// burst is a time in which one run wrote without a Pause.
type burst struct{ from, to time.Duration }

// runsOf returns the bursts of each run.
func runsOf(lines []Line) map[run][]burst {
	runs := map[run][]burst{}
	for _, l := range lines {
		bursts := runs[runOf(l)]
		if n := len(bursts); n > 0 && l.At-bursts[n-1].to <= Pause {
			bursts[n-1].to = l.At
		} else {
			runs[runOf(l)] = append(bursts, burst{l.At, l.At})
		}
	}
	return runs
}

// overlaps returns where two bursts or more are, as few as possible. The two ends of a burst belong to it.
func overlaps(lines []Line, runs map[run][]burst) (all []Overlap) {
	type edge struct {
		at   time.Duration
		step int
	}
	var edges []edge
	for _, bursts := range runs {
		for _, b := range bursts {
			edges = append(edges, edge{b.from, 1}, edge{b.to, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.step, a.step))
	})
	writing := 0
	for _, e := range edges {
		writing += e.step
		switch {
		case e.step > 0 && writing == 2:
			all = append(all, Overlap{Resource: lines[0].Resource, From: e.at})
		case e.step < 0 && writing == 1:
			all[len(all)-1].To = e.at
		}
	}
	for i := range all {
		for _, l := range between(lines, all[i].From, all[i].To) {
			if !l.Accepted {
				all[i].Refused++
			}
		}
	}
	return all
}

// between returns the lines from one time to another, both included.
func between(lines []Line, from, to time.Duration) []Line {
	first, _ := slices.BinarySearchFunc(lines, from, func(l Line, at time.Duration) int {
		return cmp.Compare(l.At, at)
	})
	next, _ := slices.BinarySearchFunc(lines, to+1, func(l Line, at time.Duration) int {
		return cmp.Compare(l.At, at)
	})
	return lines[first:next]
}

// changes returns where a run did its first accepted work after another one had. Of runs that interleave only
// the first work of each is a change.
func changes(lines []Line) (all []Change) {
	type state struct {
		worked      time.Duration
		first, last time.Duration // accepted
		stopped     bool
	}
	runs := map[run]*state{}
	owned := map[run]bool{}
	var owner run
	for _, l := range lines {
		k := runOf(l)
		if runs[k] == nil {
			runs[k] = &state{}
		}
		if l.Accepted && runs[k].first == 0 {
			runs[k].first = l.At
		}
		if l.Accepted && l.Kind == Work && !owned[k] {
			if len(owned) > 0 {
				old := runs[owner]
				all = append(all, Change{
					Resource: l.Resource, From: owner.member, To: l.Member, At: l.At, Gap: l.At - old.worked,
					Ended: old.last, Began: runs[k].first,
					Planned: old.stopped,
				})
			}
			owned[k], owner = true, k
		}
		if l.Accepted {
			runs[k].last = l.At
		}
		switch l.Kind {
		case Work:
			runs[k].worked = l.At
		case Stop:
			runs[k].stopped = true
		}
	}
	return all
}
