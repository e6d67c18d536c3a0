package web

import (
	"cmp"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// view is what the page shows, in words. The script draws it and has no opinion of its own.
type view struct {
	Tone      string     `json:"tone"`
	Title     string     `json:"title"`
	System    string     `json:"system"`
	Member    string     `json:"member"`
	State     string     `json:"state"`
	Headline  string     `json:"headline"`
	Detail    string     `json:"detail"`
	Countdown *countdown `json:"countdown"`
	Warnings  []string   `json:"warnings"`
	Facts     []fact     `json:"facts"`
	Ring      *ring      `json:"ring"`
	Groups    []group    `json:"groups"`
	Key       string     `json:"key"`
	Members   []row      `json:"members"`
	Verdict   *verdict   `json:"verdict"`
	Config    Config     `json:"config"`
}

// The tones say how bad it is.
const (
	toneCalm = "calm" // nothing to do
	toneWait = "wait" // something is under way, or not as it should be
	toneBad  = "bad"  // members are unreachable
	toneDown = "down" // this member must not work
)

var toneSigns = map[string]string{toneCalm: "✔", toneWait: "!", toneBad: "✘", toneDown: "■"}

type countdown struct {
	Text  string `json:"text"`
	At    string `json:"at"`    // RFC 3339
	Until int64  `json:"until"` // Unix milliseconds, as is From
	From  int64  `json:"from"`
}

type fact struct {
	Label string `json:"label"`
	Value string `json:"value"`
	Code  bool   `json:"code"`
	Bad   bool   `json:"bad"`
}

type verdict struct {
	Token     uint64 `json:"token"`
	By        string `json:"by"`
	Reason    string `json:"reason"`
	Survivors people `json:"survivors"`
	Down      people `json:"down"`
	Fate      string `json:"fate"`
}

// people are incarnations: a few words about them, and all of them where there are more.
type people struct {
	Short string `json:"short"`
	All   string `json:"all"`
}

// reading is one look at a Source, with what is worked out from it more than once.
type reading struct {
	downing.Status
	health  Health
	config  Config
	entries []Entry
	// alive are the members that were not downed; suspects are those of them that cannot be reached; downed are the rest.
	alive, suspects, downed []string
	// missedBy are the observers that do not reach a member, by its name.
	missedBy map[string][]string
}

func read(s Source) *reading {
	r := &reading{Status: s.Status(), health: healthOf(s), config: s.Config(), entries: s.Journal(), missedBy: make(map[string][]string)}
	for i := range r.Members {
		m := &r.Members[i]
		switch {
		case m.Status == sbr.Down.String():
			r.downed = append(r.downed, m.Name)
			continue
		case !m.Reachable:
			r.suspects = append(r.suspects, m.Name)
		}
		r.alive = append(r.alive, m.Name)
	}
	for _, p := range r.Reports {
		r.missedBy[p.Subject] = append(r.missedBy[p.Subject], p.Observer)
	}
	place := make(map[string]int, len(r.Members))
	for i := range r.Members {
		place[r.Members[i].Name] = i
	}
	for _, by := range r.missedBy {
		slices.SortFunc(by, func(a, b string) int { return cmp.Or(cmp.Compare(place[a], place[b]), cmp.Compare(a, b)) })
	}
	return r
}

// healthOf is fit to be shown.
func healthOf(s Source) Health {
	h := s.Health()
	h.Live.Reason, h.Ready.Reason = line(h.Live.Reason), line(h.Ready.Reason)
	return h
}

// viewOf puts a reading into words.
func viewOf(r *reading) *view {
	v := &view{
		System: clean(r.System), Member: clean(r.Member), State: stateWords[r.State],
		Warnings: r.warnings(), Facts: r.facts(), Members: r.rows(), Verdict: r.verdict(), Countdown: r.countdown(),
		Config: r.config,
	}
	if v.State == "" {
		v.State = cmp.Or(line(string(r.State)), "unknown")
	}
	v.Tone, v.Headline, v.Detail = r.headline()
	v.Title = toneSigns[v.Tone] + " " + v.Member + " " + v.State + " – sbr"
	v.draw(r)
	if v.Ring == nil { // what matters of very many first
		slices.SortStableFunc(v.Members, func(a, b row) int { return cmp.Compare(kindRank[a.Kind], kindRank[b.Kind]) })
	}
	return v
}

var kindRank = map[string]int{kindMissed: 0, kindReached: 1, kindDowned: 2}

func (r *reading) countdown() *countdown {
	if r.Deadline == nil || r.State == sbr.StateDown {
		return nil
	}
	c := &countdown{Until: r.Deadline.UnixMilli(), At: r.Deadline.Format(time.RFC3339Nano)}
	what := "A decision at "
	switch {
	case r.State == sbr.StateWaiting:
		what = "The next step at "
	case !r.Responsible && r.Leader != "" && r.Leader != r.Member:
		what = "Without a decision by " + clean(r.Leader) + ", this member decides at "
	}
	c.Text = what + clock(*r.Deadline)
	if r.SuspendedSince != nil {
		c.From = r.SuspendedSince.UnixMilli()
	}
	return c
}

func (r *reading) warnings() (all []string) {
	if why := r.Status.Lease.Refused; why != "" && r.State != downing.StateStarting {
		all = append(all, "The lease store refuses this member, so in a partition it cannot win: "+line(why)+
			". sbr lease doctor tries each right.")
	}
	if n := len(r.OtherStore); n > 0 {
		all = append(all, count(n, "member keeps", "members keep")+" the lease in another store than the cluster: "+list(r.OtherStore, 8)+
			". Two sides with two stores would both win, so they are suspended: give them the lease section of the others.")
	}
	if n := len(r.Disagree); n > 0 {
		all = append(all, count(n, "member has", "members have")+" another configuration: "+list(r.Disagree, 8)+
			". Two sides that decide by different rules are no resolver: give every member the same sbr.yaml.")
	}
	if n := len(r.Untagged); n > 0 {
		all = append(all, count(n, "member runs", "members run")+" no resolver: "+list(r.Untagged, 8)+
			". Without one a member is not counted and cannot be told to go down: start sbr agent on every member.")
	}
	return all
}

func (r *reading) facts() []fact {
	leader := cmp.Or(clean(r.Leader), "nobody")
	if r.Leader != "" && r.Leader == r.Member {
		leader += " (this member)"
	}
	all := []fact{
		{Label: "Members", Value: r.headcount()},
		{Label: "Leader of this side", Value: leader},
		r.lease(),
		r.answer("Live", r.health.Live), r.answer("Ready", r.health.Ready),
		{Label: "Incarnation", Value: clean(r.Incarnation), Code: true},
		{Label: "Configuration digest", Value: clean(r.ConfigDigest), Code: true, Bad: len(r.Disagree) > 0},
		{Label: "Version", Value: clean(r.Version)},
	}
	if r.SuspendedSince != nil {
		since := fact{Label: "Suspended since", Value: clock(*r.SuspendedSince), Bad: true}
		all = slices.Insert(all, 1, since)
	}
	return all
}

func (r *reading) lease() fact {
	l := &r.Status.Lease
	if l.Name == "" {
		return fact{Label: "Lease", Value: "none: the strategy needs none"}
	}
	holder := "nobody"
	if l.Holder != "" {
		holder = clean(nameOf(l.Holder))
	}
	return fact{
		Label: "Lease " + clean(l.Name) + " (" + clean(l.Kind) + ")", Value: "held by " + holder + ", token " + number(int(l.Token)),
	}
}

func (r *reading) headcount() string {
	text := count(len(r.alive), "member", "members")
	if n := len(r.suspects); n > 0 {
		text += ", " + number(n) + " unreachable"
	}
	if n := len(r.downed); n > 0 {
		text += ", " + number(n) + " downed"
	}
	return text
}

func (r *reading) answer(label string, c Check) fact {
	switch {
	case c.OK:
		return fact{Label: label, Value: "yes"}
	case c.Reason == "", r.State == sbr.StateDown: // the headline says why
		return fact{Label: label, Value: "no", Bad: true}
	}
	return fact{Label: label, Value: "no: " + line(c.Reason), Bad: true}
}

func (r *reading) verdict() *verdict {
	d := &r.Status.Verdict
	if d.Token == 0 {
		return nil
	}
	v := &verdict{
		Token: d.Token, By: clean(nameOf(d.DecidedBy)), Reason: sentence(d.Reason),
		Survivors: peopleOf(d.Survivors), Down: peopleOf(d.Down), Fate: "This member came later.",
	}
	switch {
	case slices.Contains(d.Survivors, r.Incarnation):
		v.Fate = "This member is among the survivors."
	case slices.Contains(d.Down, r.Incarnation):
		v.Fate = "This member was to go down."
	case r.State == sbr.StateDown:
		v.Fate = "This member is not among the survivors."
	}
	return v
}

// fewPeople are named outright.
const fewPeople = 12

func peopleOf(incarnations []string) people {
	if len(incarnations) == 0 {
		return people{Short: "nobody"}
	}
	names := make([]string, len(incarnations))
	for i, x := range incarnations {
		names[i] = nameOf(x)
	}
	p := people{Short: list(names, fewPeople)}
	if len(names) > fewPeople {
		p.All = list(names, len(names))
	}
	return p
}
