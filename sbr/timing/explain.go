package timing

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Step is one time of a report, and where it comes from.
type Step struct {
	Name string `json:"name"`
	Text string `json:"text"`
	Sums []Sum  `json:"sums"`
	// Keys of the configuration change it.
	Keys []string `json:"keys"`
	// Cells are the time in a table for people, or two: that of the larger half, and that of a lone node.
	Cells []string `json:"-"`
}

// Sum is a time as the sum of its parts.
type Sum struct {
	Of    string `json:"of"`
	Parts []Part `json:"parts"`
	Total string `json:"total"`

	is time.Duration
}

// Part is one summand; a negative one is taken away.
type Part struct {
	Name string `json:"name"`
	Time string `json:"time"`

	d    time.Duration
	mark byte // in the timeline
}

// String is the sum in words: part + part = total.
func (s Sum) String() string {
	var b strings.Builder
	for i, p := range s.Parts {
		switch {
		case p.d < 0:
			b.WriteString(" - ")
		case i > 0:
			b.WriteString(" + ")
		}
		b.WriteString(exact(p.d.Abs()) + " " + p.Name)
	}
	return b.String() + " = " + exact(s.is)
}

// exact shows milliseconds: the parts must add up to the eye, too.
func exact(d time.Duration) string { return d.Round(time.Millisecond).String() }

func sum(of string, parts ...Part) Sum {
	s := Sum{Of: of, Parts: []Part{}}
	for _, p := range parts {
		if p.d != 0 {
			p.Time = p.d.String()
			s.Parts = append(s.Parts, p)
		}
		s.is += p.d
	}
	s.Total = s.is.String()
	return s
}

// has reports whether a part with this mark is in the sum.
func (s Sum) has(mark byte) bool {
	return slices.ContainsFunc(s.Parts, func(p Part) bool { return p.mark == mark })
}

// Marks in the timeline.
const (
	markNotice   = '.'
	markStable   = '='
	markUnstable = '~'
	markDelay    = '-'
	markTelling  = '>'
)

const (
	keyResolver      = "split-brain-resolver."
	keyStable        = keyResolver + "stable-after"
	keyUnstable      = keyResolver + "down-all-when-unstable"
	keyDelay         = keyResolver + "lease-majority.acquire-lease-delay-for-minority"
	keyProbe         = keyResolver + "probe."
	keyLeaseTimeout  = "lease.lease-operation-timeout"
	keyProfile       = "serf.profile"
	larger, lonely   = "larger half", "lone node"
	fastest, slowest = ", fastest", ", worst"
)

// explainer works out what follows from the detection: each time as the sum that it is.
type explainer struct {
	in    Input
	r     *Report
	sides [2]side // the larger half, and a lone node
}

// side is one side of the cut.
type side struct {
	name    string
	size    int
	noticed Span
	delay   time.Duration // what the smaller side adds
	// first and last are when it decides; with the lease: when it first asks for it.
	first, last Sum
}

func (s *side) span() Span { return Span{Fastest: s.first.is, Worst: s.last.is} }

func (e *explainer) explain() {
	e.sides = [2]side{
		{name: larger, size: e.in.larger(), noticed: e.r.Detection.Majority}, {name: lonely, size: 1, noticed: e.r.Detection.Lone},
	}
	if e.in.Lease {
		e.sides[1].delay = e.in.MinorityDelay
	}
	e.r.Steps = []Step{e.serf()}
	if e.in.Probes.On() {
		e.r.Steps = append(e.r.Steps, e.probes())
	}
	e.r.Steps = append(e.r.Steps, e.decides(), e.resolved(), e.bothUp(), e.gap(), e.stableAfter())
	if e.in.Lease {
		e.r.Steps = append(e.r.Steps, e.minorityDelay())
	}
}

func (e *explainer) serf() Step {
	g, s := e.in.Gossip, e.r.Serf
	probe := Part{Name: "one probe", d: g.ProbeInterval}
	slow := func(is time.Duration) []Part {
		longest := g.SuspicionMax(e.in.Members)
		return []Part{
			probe, {Name: "probing in turn until the last is suspected", d: is - g.ProbeInterval - longest},
			{Name: "suspicion that nobody confirms", d: longest},
		}
	}
	quick := s.Majority.Fastest
	return Step{
		Name: "Serf notices", Cells: []string{s.Majority.String(), s.Lone.String()},
		Text: "Serf calls a member failed when a probe failed and its time to object is over. " +
			"Few confirm the suspicions of a small side, so it learns last.",
		Sums: []Sum{
			sum(larger+fastest, probe, Part{Name: "suspicion", d: quick - g.ProbeInterval}),
			sum(larger+slowest, slow(s.Majority.Worst)...), sum(lonely+slowest, slow(s.Lone.Worst)...),
		},
		Keys: []string{keyProfile},
	}
}

func (e *explainer) probes() Step {
	p, s := e.in.Probes, e.r.Probes
	rounds := func(n int) Part {
		return Part{Name: fmt.Sprintf("%d rounds", n), d: time.Duration(n) * p.Interval}
	}
	timeout := Part{Name: "time-out", d: p.Timeout}
	slow := func(others int) []Part {
		return []Part{rounds(p.Rounds(others) + 1), timeout,
			{Name: "spreading the news", d: e.in.Gossip.Spread(e.in.Members)}}
	}
	return Step{
		Name: "own probes notice", Cells: []string{s.Majority.String(), s.Lone.String()},
		Text: "Every member probes a few others directly, and more of them in each round in which probes fail.",
		Sums: []Sum{
			sum("fastest", rounds(p.Tries-1), timeout),
			sum(larger+slowest, slow(e.in.Members-e.in.larger())...), sum(lonely+slowest, slow(e.in.Members-1)...),
		},
		Keys: []string{keyProbe + "interval", keyProbe + "timeout", keyProbe + "tries", keyProbe + "neighbours"},
	}
}

func (e *explainer) decides() Step {
	s := Step{
		Name: "the side decides",
		Text: "Whichever noticed first counts. The view must not change for stable-after; " +
			"one that keeps changing is ended by down-all-when-unstable.",
	}
	for i := range e.sides {
		a := &e.sides[i]
		a.first, a.last = sum(a.name+fastest, e.deciding(a.noticed.Fastest, a.delay)...), e.latest(a)
		s.Cells, s.Sums = append(s.Cells, a.span().String()), append(s.Sums, a.first, a.last)
	}
	e.r.Decision = Sides{Majority: e.sides[0].span(), Lone: e.sides[1].span()}
	e.r.last = []Sum{e.sides[0].last, e.sides[1].last}
	s.Keys = e.keys()
	if e.in.Lease {
		s.Text += " The smaller side waits a little longer before it asks for the lease."
		s.Keys = append(s.Keys, keyDelay)
	}
	return s
}

func (e *explainer) deciding(noticed, delay time.Duration) []Part {
	return []Part{
		{Name: "noticing", d: noticed, mark: markNotice}, {Name: "stable-after", d: e.in.StableAfter, mark: markStable},
		{Name: "minority delay", d: delay, mark: markDelay},
	}
}

// latest is the worst decision of a side. Each change of the view starts stable-after anew, so the last
// condemnation counts; but a view that keeps changing is ended by down-all-when-unstable, counted from the
// first one.
func (e *explainer) latest(a *side) Sum {
	last := sum(a.name+slowest, e.deciding(a.noticed.Worst, a.delay)...)
	unstable := sum(a.name+slowest,
		Part{Name: "noticing the first", d: e.in.Gossip.First(a.size, e.in.Members).Worst, mark: markNotice},
		Part{Name: "stable-after", d: e.in.StableAfter, mark: markStable},
		Part{Name: "down-all-when-unstable", d: e.in.Unstable, mark: markUnstable},
		Part{Name: "minority delay", d: a.delay, mark: markDelay})
	if e.in.Unstable > 0 && unstable.is < last.is {
		return unstable
	}
	return last
}

// keys are those of a decision. down-all-when-unstable counts where a side is so slow that it is ended by it.
func (e *explainer) keys() []string {
	if e.sides[0].last.has(markUnstable) || e.sides[1].last.has(markUnstable) {
		return []string{keyStable, keyUnstable}
	}
	return []string{keyStable}
}

// lastKeys are those of the last decision.
func (e *explainer) lastKeys() []string {
	if e.sides[1].delay > 0 && e.sides[1].last.is > e.sides[0].last.is {
		return append(e.keys(), keyDelay)
	}
	return e.keys()
}

// told are the parts of the time until the slower side has told all of its own, and then more.
func (e *explainer) told(and ...Part) []Part {
	last := max(e.sides[0].last.is, e.sides[1].last.is)
	return append([]Part{{Name: "the last decision", d: last}, {Name: "telling the side", d: telling}}, and...)
}

// asking is what a side needs that reaches the store.
func (e *explainer) asking() Part { return Part{Name: "one lease operation", d: e.in.LeaseTimeout} }

// givingUp is what one needs that does not: the decision deadline, the attempt that is under way when it
// passes, and the one attempt that a member makes which has a down order but has not tried itself.
func (e *explainer) givingUp() []Part {
	return []Part{
		{Name: "until the decision deadline", d: e.in.LeaseDeadline},
		{Name: "two last attempts with their pauses", d: 2 * (e.in.LeaseTimeout + e.in.LeaseRetry)},
	}
}

func (e *explainer) resolved() Step {
	s := Step{Name: "resolved", Text: "One side is up, the other down.", Keys: e.lastKeys()}
	if e.in.Lease {
		s.Sums = []Sum{
			sum("the store answers", e.told(e.asking())...),
			sum("the store is unreachable", e.told(e.givingUp()...)...),
		}
		s.Keys = append(s.Keys, keyLeaseTimeout)
	} else {
		s.Sums = []Sum{sum("without a lease", e.told()...)}
	}
	e.r.Resolution, e.r.ResolutionStoreDown = s.Sums[0].is, s.Sums[len(s.Sums)-1].is
	s.Cells = []string{"at most " + short(e.r.Resolution)}
	if e.in.Lease {
		s.Cells[0] += ", " + short(e.r.ResolutionStoreDown) + " while the lease store is unreachable"
	}
	return s
}

// bothUp is the headline measure. Any side may win, so the winner's fastest decision is that of the faster
// side.
func (e *explainer) bothUp() Step {
	d := &e.r.DoubleActive
	apart := func(of string, and ...Part) Sum {
		first := min(e.sides[0].first.is, e.sides[1].first.is)
		return sum(of, e.told(append([]Part{{Name: "the first decision", d: -first}}, and...)...)...)
	}
	if !e.in.Lease {
		worst := apart("worst")
		*d = DoubleActive{Watching: worst.is, Asking: worst.is, CutOff: worst.is}
		return Step{
			Name: "both sides up", Cells: []string{"at most " + short(d.CutOff)},
			Text: "From the winner's decision until the loser is down. Each side decides on its own clock.",
			Sums: []Sum{worst}, Keys: e.keys(),
		}
	}
	const watches = "the loser watches the verdict"
	asking, cutOff := apart("the loser has to ask", e.asking()),
		apart("the loser cannot reach the store", e.givingUp()...)
	watching := sum(watches, Part{Name: "a few round trips to the store", d: watchRoundTrips * roundTrip})
	if asking.is < watching.is {
		watching = apart(watches, e.asking())
	}
	*d = DoubleActive{Watching: watching.is, Asking: asking.is, CutOff: cutOff.is}
	return Step{
		Name: "both sides up after the verdict",
		Cells: []string{fmt.Sprintf("at most %s watching the lease, %s asking for it, %s cut off from it",
			short(d.Watching), short(d.Asking), short(d.CutOff))},
		Text: "At most, from the winner's write until the loser is down: " +
			"if the loser watches the verdict, has to ask for the lease, or cannot reach the store.",
		Sums: []Sum{watching, asking, cutOff},
		Keys: append([]string{keyResolver + "lease-majority.watch", keyLeaseTimeout}, e.lastKeys()...),
	}
}

func (e *explainer) gap() Step {
	is := e.r.LargestGap
	s := Step{
		Name: "between two failure detections", Cells: []string{"at most " + short(is)},
		Text: "A stable-after below it may decide on a partial view",
	}
	if !e.in.Probes.On() {
		s.Text += "."
		s.Sums, s.Keys = []Sum{sum("worst", Part{Name: "suspicions that began so far apart", d: is})},
			[]string{keyProfile}
		return s
	}
	side := e.r.Detection.Majority
	if e.r.Detection.Lone.width() > side.width() {
		side = e.r.Detection.Lone
	}
	s.Text += ": own probes and Serf take turns in being first."
	s.Sums = []Sum{sum("worst", Part{Name: "the last is noticed", d: side.Worst},
		Part{Name: "the first is noticed", d: -side.Fastest})}
	s.Keys = []string{keyProbe + "interval", keyProbe + "neighbours", keyProfile}
	return s
}

func (e *explainer) stableAfter() Step {
	is, gap, auto := e.r.StableAfter, e.r.LargestGap, ""
	if e.in.Auto {
		auto = ", because it is auto, and follows the number of members"
	}
	s := Step{
		Name: "recommended stable-after", Cells: []string{short(is)},
		Text: fmt.Sprintf("It is %v now%s. The table of the reference resolver for %d members, "+
			"or the time between two failure detections with a margin, whichever is more.", e.in.StableAfter, auto, e.in.Members),
		Keys: []string{keyStable},
	}
	if margin, table := gapMargin(gap), Sizing(e.in.Members); is == roundUp(table) {
		s.Sums = []Sum{sum("by the table", Part{Name: fmt.Sprintf("for %d members", e.in.Members), d: table},
			Part{Name: "rounding up", d: is - table})}
	} else {
		s.Sums = []Sum{sum("by the gap", Part{Name: "between two failure detections", d: gap},
			Part{Name: "margin", d: margin},
			Part{Name: "rounding up", d: is - gap - margin})}
	}
	return s
}

func (e *explainer) minorityDelay() Step {
	is, after, before := e.r.MinorityDelay, e.r.Detection.Majority.Worst, e.r.Detection.Lone.Fastest
	return Step{
		Name: "the larger side always asks first", Cells: []string{"with a minority delay of " + short(is)},
		Text: fmt.Sprintf("It is %v now. A shorter one is safe: then the smaller side may win.",
			e.in.MinorityDelay),
		Sums: []Sum{sum("worst", Part{Name: "the larger half notices", d: after},
			Part{Name: "the lone node notices", d: -before},
			Part{Name: "rounding up", d: is - after + before})},
		Keys: []string{keyDelay},
	}
}

// columns is the width of the timeline.
const columns = 64

// Table is the report for people: a line for each step, with its name and its cells.
func (r *Report) Table() (lines [][]string) {
	for i := range r.Steps {
		lines = append(lines, append([]string{r.Steps[i].Name}, r.Steps[i].Cells...))
	}
	return lines
}

// Timeline draws the worst case of both sides to scale.
func (r *Report) Timeline() string {
	if r.Resolution <= 0 {
		return ""
	}
	scale := r.Resolution / columns
	var b strings.Builder
	fmt.Fprintf(&b, "The worst case; a column is %s:\n\n", scale.Round(10*time.Millisecond))
	for i, name := range []string{larger, lonely} {
		parts := append(slices.Clip(r.last[i].Parts), Part{d: r.Resolution - r.last[i].is, mark: markTelling})
		fmt.Fprintf(&b, "  %-13s%s\n", name, bar(parts, scale))
	}
	legend := "  . not noticed   = stable-after   "
	if strings.ContainsRune(b.String(), markUnstable) {
		legend += "~ keeps changing   "
	}
	if r.last[1].has(markDelay) {
		legend += "- minority delay   > lease, and "
	} else {
		legend += "> "
	}
	return b.String() + "\n" + legend + "telling the side\n"
}

// bar rounds where the parts end, not how long they are: so the bars of both sides stay in step.
func bar(parts []Part, scale time.Duration) string {
	var b strings.Builder
	var until time.Duration
	for _, p := range parts {
		until += p.d
		for n := int((until + scale/2) / scale); b.Len() < n; {
			b.WriteByte(p.mark)
		}
	}
	return b.String()
}
