package timing

import (
	"fmt"
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
	// Cells are as those of a Row.
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

func of(name string, is time.Duration, parts ...Part) Sum {
	s := Sum{Of: name, Parts: []Part{}, Total: is.String(), is: is}
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

// Explain says where each time of a report comes from, which is what Compute made of in; and draws the worst case of both sides to scale.
func Explain(in Input, r *Report) (steps []Step, timeline string) {
	in.Members = max(1, in.Members)
	e := explainer{in: in, r: r}
	e.big = e.in.larger()
	steps = []Step{e.serf()}
	if e.in.Probes.On() {
		steps = append(steps, e.probes())
	}
	steps = append(steps, e.decides(), e.resolved(), e.bothUp(), e.gap(), e.stableAfter())
	if e.in.Lease {
		steps = append(steps, e.minorityDelay())
	}
	return steps, e.timeline()
}

// explainer turns a report into steps.
type explainer struct {
	in  Input
	r   *Report
	big int
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
			of(larger+fastest, quick, probe, Part{Name: "suspicion", d: quick - g.ProbeInterval}),
			of(larger+slowest, s.Majority.Worst, slow(s.Majority.Worst)...),
			of(lonely+slowest, s.Lone.Worst, slow(s.Lone.Worst)...),
		},
		Keys: []string{keyProfile},
	}
}

func (e *explainer) probes() Step {
	p, s := e.in.Probes, e.r.Probes
	rounds := func(n int) Part { return Part{Name: fmt.Sprintf("%d rounds", n), d: time.Duration(n) * p.Interval} }
	timeout := Part{Name: "time-out", d: p.Timeout}
	slow := func(others int) []Part {
		return []Part{rounds(p.Rounds(others) + 1), timeout, {Name: "spreading the news", d: e.in.Gossip.Spread(e.in.Members)}}
	}
	return Step{
		Name: "own probes notice", Cells: []string{s.Majority.String(), s.Lone.String()},
		Text: "Every member probes a few others directly, and more of them in each round in which probes fail.",
		Sums: []Sum{
			of("fastest", s.Majority.Fastest, rounds(p.Tries-1), timeout),
			of(larger+slowest, s.Majority.Worst, slow(e.in.Members-e.big)...),
			of(lonely+slowest, s.Lone.Worst, slow(e.in.Members-1)...),
		},
		Keys: []string{keyProbe + "interval", keyProbe + "timeout", keyProbe + "tries", keyProbe + "neighbours"},
	}
}

func (e *explainer) decides() Step {
	d, noticed := e.r.Decision, e.r.Detection
	s := Step{
		Name: "the side decides", Cells: []string{d.Majority.String(), d.Lone.String()},
		Text: "Whichever noticed first counts. The view must not change for stable-after; " +
			"one that keeps changing is ended by down-all-when-unstable.",
		Sums: []Sum{
			of(larger+fastest, d.Majority.Fastest, e.deciding(noticed.Majority.Fastest, 0)...), e.latest(larger),
			of(lonely+fastest, d.Lone.Fastest, e.deciding(noticed.Lone.Fastest, e.delay())...), e.latest(lonely),
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

func (e *explainer) deciding(noticed, delay time.Duration) []Part {
	return []Part{
		{Name: "noticing", d: noticed, mark: markNotice}, {Name: "stable-after", d: e.in.StableAfter, mark: markStable},
		{Name: "minority delay", d: delay, mark: markDelay},
	}
}

// latest is the worst decision of a side.
func (e *explainer) latest(side string) Sum {
	noticed, is, size, delay := e.r.Detection.Majority.Worst, e.r.Decision.Majority.Worst, e.big, time.Duration(0)
	if side == lonely {
		noticed, is, size, delay = e.r.Detection.Lone.Worst, e.r.Decision.Lone.Worst, 1, e.delay()
	}
	if noticed+e.in.StableAfter+delay == is {
		return of(side+slowest, is, e.deciding(noticed, delay)...)
	}
	return of(side+slowest, is,
		Part{Name: "noticing the first", d: e.in.Gossip.First(size, e.in.Members).Worst, mark: markNotice},
		Part{Name: "stable-after", d: e.in.StableAfter, mark: markStable},
		Part{Name: "down-all-when-unstable", d: e.in.Unstable, mark: markUnstable},
		Part{Name: "minority delay", d: delay, mark: markDelay})
}

// told are the parts of the time until the slower side has told all of its own.
func (e *explainer) told() []Part {
	last := max(e.r.Decision.Majority.Worst, e.r.Decision.Lone.Worst)
	return []Part{{Name: "the last decision", d: last}, {Name: "telling the side", d: telling}}
}

// lastKeys are those of the last decision.
func (e *explainer) lastKeys() []string {
	if e.delay() > 0 && e.r.Decision.Lone.Worst > e.r.Decision.Majority.Worst {
		return append(e.keys(), keyDelay)
	}
	return e.keys()
}

// asking is what a side needs that reaches the store, givingUp what one needs that does not.
func (e *explainer) asking() Part { return Part{Name: "one lease operation", d: e.in.LeaseTimeout} }

func (e *explainer) givingUp() []Part {
	return []Part{
		{Name: "until the decision deadline", d: e.in.LeaseDeadline},
		{Name: "two last attempts with their pauses", d: e.in.givingUp() - e.in.LeaseDeadline},
	}
}

func (e *explainer) resolved() Step {
	s := Step{Name: "resolved", Text: "One side is up, the other down.", Keys: e.lastKeys()}
	cell := "at most " + short(e.r.Resolution)
	if e.in.Lease {
		cell += ", " + short(e.r.ResolutionStoreDown) + " while the lease store is unreachable"
		s.Sums = []Sum{
			of("the store answers", e.r.Resolution, append(e.told(), e.asking())...),
			of("the store is unreachable", e.r.ResolutionStoreDown, append(e.told(), e.givingUp()...)...),
		}
		s.Keys = append(s.Keys, keyLeaseTimeout)
	} else {
		s.Sums = []Sum{of("without a lease", e.r.Resolution, e.told()...)}
	}
	s.Cells = []string{cell}
	return s
}

func (e *explainer) bothUp() Step {
	d := e.r.DoubleActive
	apart := func(and ...Part) []Part {
		first := min(e.r.Decision.Majority.Fastest, e.r.Decision.Lone.Fastest)
		return append(append(e.told(), Part{Name: "the first decision", d: -first}), and...)
	}
	if !e.in.Lease {
		return Step{
			Name: "both sides up", Cells: []string{"at most " + short(d.CutOff)},
			Text: "From the winner's decision until the loser is down. Each side decides on its own clock.",
			Sums: []Sum{of("worst", d.CutOff, apart()...)}, Keys: e.keys(),
		}
	}
	watching := []Part{{Name: "a few round trips to the store", d: d.Watching}}
	if d.Watching != watchRoundTrips*roundTrip {
		watching = apart(e.asking())
	}
	return Step{
		Name:  "both sides up after the verdict",
		Cells: []string{short(d.Watching) + ", " + short(d.Asking) + " or " + short(d.CutOff)},
		Text: "At most, from the winner's write until the loser is down: " +
			"if the loser watches the verdict, has to ask for the lease, or cannot reach the store.",
		Sums: []Sum{
			of("the loser watches the verdict", d.Watching, watching...),
			of("the loser has to ask", d.Asking, apart(e.asking())...),
			of("the loser cannot reach the store", d.CutOff, apart(e.givingUp()...)...),
		},
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
		s.Sums, s.Keys = []Sum{of("worst", is, Part{Name: "suspicions that began so far apart", d: is})}, []string{keyProfile}
		return s
	}
	side := e.r.Detection.Majority
	if e.r.Detection.Lone.width() > side.width() {
		side = e.r.Detection.Lone
	}
	s.Text += ": own probes and Serf take turns in being first."
	s.Sums = []Sum{of("worst", is, Part{Name: "the last is noticed", d: side.Worst}, Part{Name: "the first is noticed", d: -side.Fastest})}
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
		s.Sums = []Sum{of("by the table", is, Part{Name: fmt.Sprintf("for %d members", e.in.Members), d: table},
			Part{Name: "rounding up", d: is - table})}
	} else {
		s.Sums = []Sum{of("by the gap", is, Part{Name: "between two failure detections", d: gap}, Part{Name: "margin", d: margin},
			Part{Name: "rounding up", d: is - gap - margin})}
	}
	return s
}

func (e *explainer) minorityDelay() Step {
	is, after, before := e.r.MinorityDelay, e.r.Detection.Majority.Worst, e.r.Detection.Lone.Fastest
	return Step{
		Name: "the larger side always asks first", Cells: []string{"with a minority delay of " + short(is)},
		Text: fmt.Sprintf("It is %v now. A shorter one is safe: then the smaller side may win.", e.in.MinorityDelay),
		Sums: []Sum{of("worst", is, Part{Name: "the larger half notices", d: after}, Part{Name: "the lone node notices", d: -before},
			Part{Name: "rounding up", d: is - after + before})},
		Keys: []string{keyDelay},
	}
}

// columns is the width of the timeline.
const columns = 64

// timeline draws the worst case of both sides to scale.
func (e *explainer) timeline() string {
	if e.r.Resolution <= 0 {
		return ""
	}
	scale := e.r.Resolution / columns
	var b strings.Builder
	fmt.Fprintf(&b, "The worst case; a column is %s:\n\n", scale.Round(10*time.Millisecond))
	for _, side := range []string{larger, lonely} {
		s := e.latest(side)
		parts := append(s.Parts, Part{d: e.r.Resolution - s.is, mark: markTelling})
		fmt.Fprintf(&b, "  %-13s%s\n", side, bar(parts, scale))
	}
	legend := "  . not noticed   = stable-after   "
	if strings.ContainsRune(b.String(), markUnstable) {
		legend += "~ keeps changing   "
	}
	if e.delay() > 0 {
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
