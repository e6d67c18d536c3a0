package main

import (
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr/timing"
)

// explanation is what `sbr explain timing -o json` prints. Durations are Go duration strings.
type explanation struct {
	Members  int             `json:"members"`
	Larger   int             `json:"larger-half"`
	Profile  string          `json:"profile"`
	Strategy string          `json:"strategy"`
	Steps    []step          `json:"steps"`
	Timing   timingAnswer    `json:"timing"`
	Warnings []warningAnswer `json:"warnings"`

	timeline string
}

// step is one time, and where it comes from.
type step struct {
	Name string `json:"name"`
	Text string `json:"text"`
	Sums []sum  `json:"sums"`
	// Keys change it.
	Keys []string `json:"keys"`

	cells []string // in the table
}

// sum is a time as the sum of its parts.
type sum struct {
	Of    string `json:"of"`
	Parts []part `json:"parts"`
	Total string `json:"total"`

	is time.Duration
}

// part is one summand; a negative one is taken away.
type part struct {
	Name string `json:"name"`
	Time string `json:"time"`

	d    time.Duration
	mark byte // in the timeline
}

func of(name string, is time.Duration, parts ...part) sum {
	s := sum{Of: name, Parts: []part{}, Total: is.String(), is: is}
	for _, p := range parts {
		if p.d != 0 {
			p.Time = p.d.String()
			s.Parts = append(s.Parts, p)
		}
	}
	return s
}

// Marks in the timeline.
const (
	markNotice   = '.'
	markStable   = '='
	markUnstable = '~'
	markDelay    = '-'
	markTelling  = '>'
)

// What package timing assumes; a test compares.
const (
	tellingSide      = 3 * time.Second
	watchingVerdict  = 100 * time.Millisecond
	keyResolver      = "split-brain-resolver."
	keyStable        = keyResolver + "stable-after"
	keyUnstable      = keyResolver + "down-all-when-unstable"
	keyDelay         = keyResolver + "lease-majority.acquire-lease-delay-for-minority"
	keyLeaseTimeout  = "lease.lease-operation-timeout"
	keyProfile       = "serf.profile"
	larger, lonely   = "larger half", "lone node"
	fastest, slowest = ", fastest", ", worst"
)

// explainer turns a report into steps.
type explainer struct {
	in  timing.Input
	r   *timing.Report
	big int
}

func (e *explainer) steps() []step {
	steps := []step{e.serf()}
	if e.in.Probes.On() {
		steps = append(steps, e.probes())
	}
	steps = append(steps, e.decides(), e.resolved())
	steps = append(steps, e.bothUp()...)
	steps = append(steps, e.gap(), e.stableAfter())
	if e.in.Lease {
		steps = append(steps, e.minorityDelay())
	}
	return steps
}

func (e *explainer) serf() step {
	g, n := e.in.Gossip, e.in.Members
	quick := func(is time.Duration) []part {
		return []part{{Name: "one probe", d: g.ProbeInterval}, {Name: "suspicion", d: is - g.ProbeInterval}}
	}
	slow := func(is time.Duration) []part {
		longest := g.SuspicionMax(n)
		return []part{
			{Name: "one probe", d: g.ProbeInterval}, {Name: "probing in turn until the last is suspected", d: is - g.ProbeInterval - longest},
			{Name: "suspicion that nobody confirms", d: longest},
		}
	}
	s := e.r.Serf
	return step{
		Name: "Serf notices", cells: []string{span(s.Majority), span(s.Lone)},
		Text: "Serf calls a member failed when a probe failed and its time to object is over. Few confirm the suspicions of a small side, so it learns last.",
		Sums: []sum{
			of(larger+fastest, s.Majority.Fastest, quick(s.Majority.Fastest)...), of(larger+slowest, s.Majority.Worst, slow(s.Majority.Worst)...),
			of(lonely+slowest, s.Lone.Worst, slow(s.Lone.Worst)...),
		},
		Keys: []string{keyProfile},
	}
}

func (e *explainer) probes() step {
	p, s := e.in.Probes, e.r.Probes
	slow := func(others int) []part {
		rounds := p.Rounds(others)
		return []part{
			{Name: fmt.Sprintf("%d rounds", rounds+1), d: time.Duration(rounds+1) * p.Interval}, {Name: "time-out", d: p.Timeout},
			{Name: "spreading the news", d: e.in.Gossip.Spread(e.in.Members)},
		}
	}
	return step{
		Name: "own probes notice", cells: []string{span(s.Majority), span(s.Lone)},
		Text: "Every member probes a few others directly, and more of them in each round in which probes fail.",
		Sums: []sum{
			of("fastest", s.Majority.Fastest,
				part{Name: fmt.Sprintf("%d rounds", p.Tries-1), d: time.Duration(p.Tries-1) * p.Interval}, part{Name: "time-out", d: p.Timeout}),
			of(larger+slowest, s.Majority.Worst, slow(e.in.Members-e.big)...), of(lonely+slowest, s.Lone.Worst, slow(e.in.Members-1)...),
		},
		Keys: []string{keyResolver + "probe.interval", keyResolver + "probe.timeout", keyResolver + "probe.tries", keyResolver + "probe.neighbours"},
	}
}

func (e *explainer) decides() step {
	d := e.r.Decision
	s := step{
		Name: "the side decides", cells: []string{span(d.Majority), span(d.Lone)},
		Text: "Whichever noticed first counts. The view must not change for stable-after; one that keeps changing is ended by down-all-when-unstable.",
		Sums: []sum{
			of(larger+fastest, d.Majority.Fastest, e.deciding(e.r.Detection.Majority.Fastest, 0)...), e.latest(larger),
			of(lonely+fastest, d.Lone.Fastest, e.deciding(e.r.Detection.Lone.Fastest, e.delay())...), e.latest(lonely),
		},
		Keys: e.keys(),
	}
	if e.in.Lease {
		s.Text += " The smaller side waits a little longer before it asks for the lease."
		s.Keys = append(s.Keys, keyDelay)
	}
	return s
}

// keys are those of a decision. down-all-when-unstable counts where a side is so slow that it is ended by it.
func (e *explainer) keys() []string {
	for _, side := range []string{larger, lonely} {
		for _, p := range e.latest(side).Parts {
			if p.mark == markUnstable {
				return []string{keyStable, keyUnstable}
			}
		}
	}
	return []string{keyStable}
}

// delay is what the smaller side adds.
func (e *explainer) delay() time.Duration {
	if e.in.Lease {
		return e.in.MinorityDelay
	}
	return 0
}

func (e *explainer) deciding(noticed, delay time.Duration) []part {
	return []part{{Name: "noticing", d: noticed, mark: markNotice}, {Name: "stable-after", d: e.in.StableAfter, mark: markStable}, {Name: "minority delay", d: delay, mark: markDelay}}
}

// latest is the worst decision of a side.
func (e *explainer) latest(side string) sum {
	noticed, is, size, delay := e.r.Detection.Majority.Worst, e.r.Decision.Majority.Worst, e.big, time.Duration(0)
	if side == lonely {
		noticed, is, size, delay = e.r.Detection.Lone.Worst, e.r.Decision.Lone.Worst, 1, e.delay()
	}
	if noticed+e.in.StableAfter+delay == is {
		return of(side+slowest, is, e.deciding(noticed, delay)...)
	}
	return of(side+slowest, is,
		part{Name: "noticing the first", d: e.in.Gossip.First(size, e.in.Members).Worst, mark: markNotice}, part{Name: "stable-after", d: e.in.StableAfter, mark: markStable},
		part{Name: "down-all-when-unstable", d: e.in.Unstable, mark: markUnstable}, part{Name: "minority delay", d: delay, mark: markDelay})
}

func (e *explainer) last() time.Duration {
	return max(e.r.Decision.Majority.Worst, e.r.Decision.Lone.Worst)
}

// lastKeys are those of the last decision.
func (e *explainer) lastKeys() []string {
	if e.delay() > 0 && e.r.Decision.Lone.Worst > e.r.Decision.Majority.Worst {
		return append(e.keys(), keyDelay)
	}
	return e.keys()
}

// givingUp is what a side needs that does not reach the store.
func (e *explainer) givingUp() []part {
	return []part{
		{Name: "until the decision deadline", d: e.in.LeaseDeadline},
		{Name: "two last attempts with their pauses", d: 2 * (e.in.LeaseTimeout + e.in.LeaseRetry)},
	}
}

func (e *explainer) resolved() step {
	common := []part{{Name: "the last decision", d: e.last()}, {Name: "telling the side", d: tellingSide}}
	s := step{
		Name: "resolved", cells: []string{"at most " + short(e.r.Resolution)},
		Text: "One side is up, the other down.", Sums: []sum{of("without a lease", e.r.Resolution, common...)}, Keys: e.lastKeys(),
	}
	if e.in.Lease {
		s.cells[0] += ", " + short(e.r.ResolutionStoreDown) + " while the lease store is unreachable"
		s.Sums = []sum{
			of("the store answers", e.r.Resolution, append(common[:2:2], part{Name: "one lease operation", d: e.in.LeaseTimeout})...),
			of("the store is unreachable", e.r.ResolutionStoreDown, append(common[:2:2], e.givingUp()...)...),
		}
		s.Keys = append(s.Keys, keyLeaseTimeout)
	}
	return s
}

func (e *explainer) bothUp() []step {
	d := e.r.DoubleActive
	apart := []part{
		{Name: "the last decision", d: e.last()}, {Name: "telling the side", d: tellingSide},
		{Name: "the first decision", d: -min(e.r.Decision.Majority.Fastest, e.r.Decision.Lone.Fastest)},
	}
	if !e.in.Lease {
		return []step{{
			Name: "both sides up", cells: []string{"at most " + short(d.CutOff)},
			Text: "From the winner's decision until the loser is down. Each side decides on its own clock.",
			Sums: []sum{of("worst", d.CutOff, apart...)}, Keys: e.keys(),
		}}
	}
	watching := of("the loser watches the verdict", d.Watching, part{Name: "a few round trips to the store", d: d.Watching})
	if d.Watching != watchingVerdict {
		watching = of("the loser watches the verdict", d.Watching, append(apart, part{Name: "one lease operation", d: e.in.LeaseTimeout})...)
	}
	return []step{{
		Name: "both sides up after the verdict", cells: []string{short(d.Watching) + ", " + short(d.Asking) + " or " + short(d.CutOff)},
		Text: "At most, from the winner's write until the loser is down: if the loser watches the verdict, has to ask for the lease, or cannot reach the store.",
		Sums: []sum{
			watching,
			of("the loser has to ask", d.Asking, append(apart[:3:3], part{Name: "one lease operation", d: e.in.LeaseTimeout})...),
			of("the loser cannot reach the store", d.CutOff, append(apart[:3:3], e.givingUp()...)...),
		},
		Keys: append([]string{keyResolver + "lease-majority.watch", keyLeaseTimeout}, e.lastKeys()...),
	}}
}

func (e *explainer) gap() step {
	name, all := "own probes and Serf take turns", e.r.Detection
	if !e.in.Probes.On() {
		return step{
			Name: "between two condemnations", cells: []string{"at most " + short(e.r.LargestGap)},
			Text: "A stable-after below it may decide on a partial view.",
			Sums: []sum{of("worst", e.r.LargestGap, part{Name: "suspicions that began so far apart", d: e.r.LargestGap})}, Keys: []string{keyProfile},
		}
	}
	side := all.Majority
	if all.Lone.Worst-all.Lone.Fastest > side.Worst-side.Fastest {
		side = all.Lone
	}
	return step{
		Name: "between two condemnations", cells: []string{"at most " + short(e.r.LargestGap)},
		Text: "A stable-after below it may decide on a partial view: " + name + " in being first.",
		Sums: []sum{of("worst", e.r.LargestGap, part{Name: "the last is noticed", d: side.Worst}, part{Name: "the first is noticed", d: -side.Fastest})},
		Keys: []string{keyResolver + "probe.interval", keyResolver + "probe.neighbours", keyProfile},
	}
}

func (e *explainer) stableAfter() step {
	is, gap := e.r.StableAfter, e.r.LargestGap
	s := step{
		Name: "recommended stable-after", cells: []string{short(is)},
		Text: fmt.Sprintf("It is %v now. The table of the reference resolver for %d members, or the time between two condemnations with a margin, whichever is more.", e.in.StableAfter, e.in.Members),
		Keys: []string{keyStable},
	}
	if margin := max(time.Second, gap/5); is == timing.Sizing(e.in.Members) {
		s.Sums = []sum{of("by the table", is, part{Name: fmt.Sprintf("up to %d members", e.in.Members), d: is})}
	} else {
		s.Sums = []sum{of("by the gap", is, part{Name: "between two condemnations", d: gap}, part{Name: "margin", d: margin}, part{Name: "rounding up", d: is - gap - margin})}
	}
	return s
}

func (e *explainer) minorityDelay() step {
	is, after, before := e.r.MinorityDelay, e.r.Detection.Majority.Worst, e.r.Detection.Lone.Fastest
	return step{
		Name: "the larger side always asks first", cells: []string{"with a minority delay of " + short(is)},
		Text: fmt.Sprintf("It is %v now. A shorter one is safe: then the smaller side may win.", e.in.MinorityDelay),
		Sums: []sum{of("worst", is, part{Name: "the larger half notices", d: after}, part{Name: "the lone node notices", d: -before}, part{Name: "rounding up", d: is - after + before})},
		Keys: []string{keyDelay},
	}
}
