package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

const decideHelp = `Decide evaluates one strategy once, on paper: it reads what one member sees and answers what the strategy makes of it.

Input, YAML or JSON:
  strategy      keep-majority, static-quorum, keep-oldest, keep-referee, down-all or lease-majority
  settings      role, quorum-size, down-if-alone, acquire-lease-delay-for-minority, down-all-when-indirectly-connected,
                indirectly-connected (keep-largest-group or down, for lease-majority), address,
                down-all-if-less-than-nodes; absent ones take their defaults
  self          the name of the member that looks
  members       a list of name, addr (host:port), status (joining, weakly-up, up, leaving, exiting, down; default up),
                roles, and age (1 is the oldest; without one a member is the youngest)
  unreachable   names; if absent, the subjects of reachability; self in it is ignored
  reachability  a list of observer and subject: who cannot reach whom. With keep-largest-group each report between
                two members that are heard is a broken link; heard are self, members that are not unreachable, and
                observers
  seen-by       names of the members that share this view
  lease         granted, held or unknown; absent: not asked yet

The strategy is evaluated whether or not self would act on it; "responsible" says whether it would. Where the decision asks for
the lease and the input does not say how that went, "down" and "survivors" are those of a granted lease. "survivors" are the
members that are not downed and not on their way out already (exiting, down).`

const decideExample = `  echo '{"strategy": "keep-majority", "self": "A", "unreachable": ["C"],
         "members": [{"name": "A"}, {"name": "B"}, {"name": "C"}]}' | sbr decide -o json`

// decideAnswer is what decide prints.
type decideAnswer struct {
	Strategy      string   `json:"strategy"`
	Self          string   `json:"self"`
	Leader        string   `json:"leader"`
	Responsible   bool     `json:"responsible"`
	Decision      string   `json:"decision"`
	FinalDecision string   `json:"final-decision"`
	AcquireDelay  string   `json:"acquire-delay"`
	Minority      bool     `json:"minority"`
	Down          []string `json:"down"`
	Survivors     []string `json:"survivors"`
	Reason        string   `json:"reason"`
	// BrokenLinks are those between members that are heard, where the largest group stays.
	BrokenLinks [][2]sbr.ID `json:"broken-links,omitempty"`
}

func newDecide(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "decide [-f FILE]", Short: "evaluate a strategy over one view of a cluster",
		Long: decideHelp, Example: decideExample, Args: cobra.NoArgs,
	}
	output := addFormat(c)
	file := c.Flags().StringP("file", "f", "",
		"read the view from this file instead of the standard input (YAML or JSON)")
	c.RunE = verb(func() error {
		name, data, err := readInput(*file, s.in, maxDecideInput)
		if err != nil {
			return err
		}
		in, err := parseDecide(name, data)
		if err != nil {
			return badInput{err}
		}
		answer, view := in.decide()
		return s.print(*output, answer, func(to io.Writer) error { return answer.write(to, &view) })
	})
	return c
}

// decide evaluates the strategy. The input was checked, so nothing can fail.
func (in *decideInput) decide() (decideAnswer, sbr.View) {
	strategy, _ := in.strategy()
	view := in.view()
	threshold := float64(in.Settings.Threshold)
	d := sbr.Decide(strategy, &view, threshold)
	decision := d.Kind
	switch in.Lease {
	case leaseGranted:
		d.Final = d.Final.Granted()
	case leaseHeld, leaseUnknown: // unknown past the deadline is decided like held
		d = d.Reversed(&view, threshold)
	}
	answer := decideAnswer{
		Strategy: strings.ToLower(in.Strategy), Self: in.Self, Responsible: view.Responsible(),
		Decision: decision.String(), FinalDecision: d.Final.String(), AcquireDelay: d.Delay.String(),
		Minority: d.Minority,
		Down:     make([]string, 0, len(d.Down)), Survivors: make([]string, 0, len(view.Members)),
		Reason: d.Reason + ".",
	}
	if d.Group != nil {
		answer.BrokenLinks = d.Group.Broken
	}
	if leader := view.Leader(); leader != nil {
		answer.Leader = leader.Name
	}
	down := make(map[sbr.ID]bool, len(d.Down))
	for _, id := range d.Down {
		down[id] = true
		answer.Down = append(answer.Down, string(id))
	}
	for i := range view.Members {
		if m := &view.Members[i]; m.Downable() && !down[m.ID] {
			answer.Survivors = append(answer.Survivors, m.Name)
		}
	}
	return answer, view
}

// write prints the answer for people: the decision, why, and a table of the members.
func (a *decideAnswer) write(to io.Writer, view *sbr.View) error {
	p := paint(to)
	var rows [][]string
	row := func(cells ...string) { rows = append(rows, cells) }
	if a.Decision != a.FinalDecision {
		row("  decision", a.Decision+", which became "+a.FinalDecision)
	}
	row("  because", a.Reason)
	if len(a.BrokenLinks) > 0 {
		row("  broken links", a.links())
	}
	if a.AcquireDelay != "0s" {
		row("  asks for the lease", "after "+a.AcquireDelay)
	}
	acts := "acts"
	if !a.Responsible {
		acts = "does not act"
	}
	row("  seen by", fmt.Sprintf("%s, which %s (leader: %s)", a.Self, acts, a.Leader))
	_, err := fmt.Fprintf(to, "%s: %s\n\n%s\n%s", p.bold(a.Strategy), p.bold(a.FinalDecision), table(rows...),
		a.members(view, p))
	return err
}

// links reads "A-B, A-C"; many are cut short.
func (a *decideAnswer) links() string {
	var text []string
	for _, l := range a.BrokenLinks {
		text = append(text, string(l[0])+"-"+string(l[1]))
	}
	return first(12, text, ", ")
}

func (a *decideAnswer) members(view *sbr.View, p painter) string {
	rows := [][]string{{"  MEMBER", "ADDRESS", "STATUS", "REACHABLE", "FATE"}}
	down := make(map[string]bool, len(a.Down))
	for _, name := range a.Down {
		down[name] = true
	}
	for i := range view.Members {
		m := &view.Members[i]
		reachable, fate := "yes", p.green("stays up")
		if m.Unreachable {
			reachable = "no"
		}
		switch {
		case down[m.Name]:
			fate = p.red("goes down")
		case !m.Downable():
			fate = "on its way out"
		}
		rows = append(rows, []string{"  " + m.Name, m.Addr, m.Status.String(), reachable, fate})
	}
	return table(rows...)
}

// maxDecideInput is the largest input of decide: room for tens of thousands of members.
const maxDecideInput = 16 << 20

// decideInput is what decide reads.
type decideInput struct {
	Strategy     string         `yaml:"strategy"`
	Settings     decideSettings `yaml:"settings"`
	Self         string         `yaml:"self"`
	Members      []decideMember `yaml:"members"`
	Unreachable  *[]string      `yaml:"unreachable"`
	Reachability []decideReport `yaml:"reachability"`
	SeenBy       []string       `yaml:"seen-by"`
	Lease        string         `yaml:"lease"`
}

// decideSettings are the settings of all strategies side by side; a strategy takes those that it has.
type decideSettings struct {
	Role          string                   `yaml:"role"`
	QuorumSize    int                      `yaml:"quorum-size"`
	DownIfAlone   bool                     `yaml:"down-if-alone"`
	MinorityDelay time.Duration            `yaml:"acquire-lease-delay-for-minority"`
	Threshold     strictyaml.OnOffFraction `yaml:"down-all-when-indirectly-connected"`
	Indirect      string                   `yaml:"indirectly-connected"`
	Address       string                   `yaml:"address"`
	RefereeLimit  int                      `yaml:"down-all-if-less-than-nodes"`
}

type decideMember struct {
	Name   string   `yaml:"name"`
	Addr   string   `yaml:"addr"`
	Status string   `yaml:"status"`
	Roles  []string `yaml:"roles"`
	Age    *int64   `yaml:"age"`
}

type decideReport struct {
	Observer string `yaml:"observer"`
	Subject  string `yaml:"subject"`
}

var (
	statuses = []string{"joining", "weakly-up", "up", "leaving", "exiting", "down"}
	leases   = []string{leaseGranted, leaseHeld, leaseUnknown}
)

const (
	leaseGranted = "granted"
	leaseHeld    = "held"
	leaseUnknown = "unknown"
)

// parseDecide decodes and checks the input. The error has every problem, each with its place.
func parseDecide(name string, data []byte) (*decideInput, error) {
	defaults, lines := strategies.DefaultSettings(), make(map[string]int)
	in := decideInput{Settings: decideSettings{
		DownIfAlone:   defaults.KeepOldest.DownIfAlone,
		MinorityDelay: defaults.LeaseMajority.AcquireLeaseDelayForMinority,
		Threshold:     strictyaml.OnOffFraction(sbr.DefaultConfig().DownAllWhenIndirectlyConnected),
		Indirect:      string(defaults.LeaseMajority.IndirectlyConnected),
		RefereeLimit:  defaults.KeepReferee.DownAllIfLessThanNodes,
	}}
	err := strictyaml.Decode(data, &in, strictyaml.Options{Name: name, MaxBytes: maxDecideInput, Lines: lines})
	if err != nil {
		return nil, err
	}
	return &in, in.problems().Locate(name, lines).Err()
}

// problems are all things that decoding alone does not find.
func (in *decideInput) problems() (ps strictyaml.Problems) {
	in.checkStrategy(&ps)
	names := in.checkMembers(&ps)
	known := func(path, name string) {
		if _, ok := names[name]; !ok {
			ps.Add(path, "%s is no member", strictyaml.Quote(name))
		}
	}
	if in.Self == "" {
		ps.Add("self", "is not set: it must be the name of a member")
	} else {
		known("self", in.Self)
	}
	if in.Unreachable != nil {
		for i, name := range *in.Unreachable {
			known(at("unreachable", i), name)
		}
	}
	for i, r := range in.Reachability {
		known(at("reachability", i)+".observer", r.Observer)
		known(at("reachability", i)+".subject", r.Subject)
		if r.Observer == r.Subject {
			ps.Add(at("reachability", i), "%s reports itself", strictyaml.Quote(r.Subject))
		}
	}
	for i, name := range in.SeenBy {
		known(at("seen-by", i), name)
	}
	if in.Lease != "" {
		ps.OneOf("lease", in.Lease, leases)
	}
	return ps
}

func (in *decideInput) checkStrategy(ps *strictyaml.Problems) {
	if in.Strategy == "" {
		ps.Add("strategy", "is not set: known are %s", strings.Join(strategies.Keys(), ", "))
		return
	}
	before := len(*ps)
	ps.OneOf("strategy", strings.ToLower(in.Strategy), strategies.Keys())
	if in.Settings.MinorityDelay < 0 {
		ps.Add("settings.acquire-lease-delay-for-minority", "is %v: it must not be negative",
			in.Settings.MinorityDelay)
	}
	ps.OneOf("settings.indirectly-connected", in.Settings.Indirect,
		[]string{string(strategies.KeepLargestGroup), string(strategies.DownIndirectlyConnected)})
	printable(ps, "settings.address", in.Settings.Address)
	if len(*ps) > before {
		return
	}
	if _, err := in.strategy(); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			key, text, _ := strings.Cut(line, " ")
			_, key, _ = strings.Cut(key, ".") // here the settings of all strategies stand side by side
			ps.Add("settings."+key, "%s", text)
		}
	}
}

// checkMembers returns the names that are taken.
func (in *decideInput) checkMembers(ps *strictyaml.Problems) map[string]int {
	if len(in.Members) == 0 {
		ps.Add("members", "is empty: at least one member is needed")
	}
	names := make(map[string]int, len(in.Members))
	for i, m := range in.Members {
		path := at("members", i)
		switch first, twice := names[m.Name]; {
		case m.Name == "":
			ps.Add(path+".name", "is not set")
		case !printable(ps, path+".name", m.Name):
		case twice:
			ps.Add(path+".name", "%s is the name of %s already", strictyaml.Quote(m.Name), at("members", first))
		default:
			names[m.Name] = i
		}
		printable(ps, path+".addr", m.Addr)
		if m.Status != "" {
			ps.OneOf(path+".status", m.Status, statuses)
		}
		if m.Age != nil && *m.Age < 1 {
			ps.Add(path+".age", "is %d: it must be at least 1, the oldest", *m.Age)
		}
	}
	return names
}

func at(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }

// printable keeps what could drive a terminal out of the answer.
func printable(ps *strictyaml.Problems, path, s string) bool {
	is := !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
	if !is {
		ps.Add(path, "is %s: it must not contain control characters", strictyaml.Quote(s))
	}
	return is
}

// strategy returns the strategy that the input names, with its settings.
func (in *decideInput) strategy() (sbr.Strategy, error) {
	s := in.Settings
	return strategies.New(in.Strategy, strategies.Settings{
		StaticQuorum: strategies.StaticQuorum{QuorumSize: s.QuorumSize, Role: s.Role},
		KeepMajority: strategies.KeepMajority{Role: s.Role},
		KeepOldest:   strategies.KeepOldest{DownIfAlone: s.DownIfAlone, Role: s.Role},
		KeepReferee:  strategies.KeepReferee{Address: s.Address, DownAllIfLessThanNodes: s.RefereeLimit},
		LeaseMajority: strategies.LeaseMajority{
			Role: s.Role, AcquireLeaseDelayForMinority: s.MinorityDelay,
			IndirectlyConnected: strategies.IndirectlyConnected(s.Indirect),
		},
	})
}

// view is what self sees. Names serve as incarnation ids: the input has one of each.
func (in *decideInput) view() sbr.View {
	unreachable := in.unreachable()
	members := make([]sbr.Member, 0, len(in.Members))
	for _, m := range in.Members {
		status, _ := sbr.ParseStatus(cmp.Or(m.Status, sbr.Up.String())) // checked
		born := int64(0)
		if m.Age != nil {
			born = *m.Age
		}
		members = append(members, sbr.Member{
			ID: sbr.ID(m.Name), Name: m.Name, Addr: m.Addr, Roles: m.Roles, Born: born, Status: status,
			Unreachable: unreachable[m.Name],
		})
	}
	var reports []sbr.Report
	for _, r := range in.Reachability {
		reports = append(reports, sbr.Report{Observer: sbr.ID(r.Observer), Subject: sbr.ID(r.Subject)})
	}
	var seenBy []sbr.ID
	for _, name := range in.SeenBy {
		seenBy = append(seenBy, sbr.ID(name))
	}
	return sbr.NewView(sbr.ID(in.Self), members, reports, seenBy)
}

// unreachable is the list, or the subjects of reachability where it is absent. Self is never in it: what
// others say of it makes it indirectly connected, not unreachable to itself.
func (in *decideInput) unreachable() map[string]bool {
	var names []string
	for _, r := range in.Reachability {
		names = append(names, r.Subject)
	}
	if in.Unreachable != nil {
		names = *in.Unreachable
	}
	set := make(map[string]bool)
	for _, name := range names {
		set[name] = name != in.Self
	}
	return set
}
