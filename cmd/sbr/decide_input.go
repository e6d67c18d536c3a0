package main

import (
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

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
	opts := strictyaml.Options{Name: name, MaxBytes: maxDecideInput}
	in, err := decodeDecide(data, opts)
	if err != nil {
		return nil, err
	}
	problems := in.problems()
	if len(problems) == 0 {
		return in, nil
	}
	// Lines are wanted only now; for a large input they take more room than the input.
	opts.Lines = make(map[string]int)
	if _, err := decodeDecide(data, opts); err != nil {
		return nil, err
	}
	return nil, problems.Locate(name, opts.Lines).Err()
}

func decodeDecide(data []byte, opts strictyaml.Options) (*decideInput, error) {
	defaults := strategies.DefaultSettings()
	in := decideInput{Settings: decideSettings{
		DownIfAlone:   defaults.KeepOldest.DownIfAlone,
		MinorityDelay: defaults.LeaseMajority.AcquireLeaseDelayForMinority,
		Threshold:     strictyaml.OnOffFraction(sbr.DefaultConfig().DownAllWhenIndirectlyConnected),
		RefereeLimit:  defaults.KeepReferee.DownAllIfLessThanNodes,
	}}
	return &in, strictyaml.Decode(data, &in, opts)
}

// problems are all things that decoding alone does not find.
func (in *decideInput) problems() (ps strictyaml.Problems) {
	in.checkStrategy(&ps)
	names := in.checkMembers(&ps)
	known := func(path, name string) {
		if _, ok := names[name]; !ok {
			ps.Add(path, "%s is no member", quoted(name))
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
			if name == in.Self {
				ps.Add(at("unreachable", i), "%s is self: nobody is unreachable to itself", quoted(name))
			}
		}
	}
	for i, r := range in.Reachability {
		known(at("reachability", i)+".observer", r.Observer)
		known(at("reachability", i)+".subject", r.Subject)
		if r.Observer == r.Subject {
			ps.Add(at("reachability", i), "%s reports itself", quoted(r.Subject))
		}
	}
	for i, name := range in.SeenBy {
		known(at("seen-by", i), name)
	}
	if in.Lease != "" {
		oneOf(&ps, "lease", in.Lease, leases)
	}
	return ps
}

func (in *decideInput) checkStrategy(ps *strictyaml.Problems) {
	if in.Strategy == "" {
		ps.Add("strategy", "is not set: known are %s", strings.Join(strategies.Keys(), ", "))
		return
	}
	before := len(*ps)
	oneOf(ps, "strategy", strings.ToLower(in.Strategy), strategies.Keys())
	if in.Settings.MinorityDelay < 0 {
		ps.Add("settings.acquire-lease-delay-for-minority", "is %v: it must not be negative", in.Settings.MinorityDelay)
	}
	if !printable(in.Settings.Address) {
		ps.Add("settings.address", "is %s: it must not contain control characters", quoted(in.Settings.Address))
	}
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
		case !printable(m.Name):
			ps.Add(path+".name", "is %s: it must not contain control characters", quoted(m.Name))
		case twice:
			ps.Add(path+".name", "%s is the name of %s already", quoted(m.Name), at("members", first))
		default:
			names[m.Name] = i
		}
		if !printable(m.Addr) {
			ps.Add(path+".addr", "is %s: it must not contain control characters", quoted(m.Addr))
		}
		if m.Status != "" {
			oneOf(ps, path+".status", m.Status, statuses)
		}
		if m.Age != nil && *m.Age < 1 {
			ps.Add(path+".age", "is %d: it must be at least 1, the oldest", *m.Age)
		}
	}
	return names
}

func oneOf(ps *strictyaml.Problems, path, word string, known []string) {
	if err := strictyaml.OneOf(word, known); err != nil {
		ps.Add(path, "%v", err)
	}
}

func at(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }

// printable keeps what could drive a terminal out of the answer.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// quoted shows a name from the input: one line, and short whatever it was.
func quoted(name string) string {
	const limit = 64
	if len(name) > limit {
		name = strings.ToValidUTF8(name[:limit], "") + "…"
	}
	return strconv.Quote(name)
}

// strategy returns the strategy that the input names, with its settings.
func (in *decideInput) strategy() (sbr.Strategy, error) {
	s := in.Settings
	return strategies.New(in.Strategy, strategies.Settings{
		StaticQuorum:  strategies.StaticQuorum{QuorumSize: s.QuorumSize, Role: s.Role},
		KeepMajority:  strategies.KeepMajority{Role: s.Role},
		KeepOldest:    strategies.KeepOldest{DownIfAlone: s.DownIfAlone, Role: s.Role},
		KeepReferee:   strategies.KeepReferee{Address: s.Address, DownAllIfLessThanNodes: s.RefereeLimit},
		LeaseMajority: strategies.LeaseMajority{Role: s.Role, AcquireLeaseDelayForMinority: s.MinorityDelay},
	})
}

// view is what self sees. Names serve as incarnation ids: the input has one of each.
func (in *decideInput) view() sbr.View {
	unreachable := in.unreachable()
	members := make([]sbr.Member, 0, len(in.Members))
	for _, m := range in.Members {
		status := sbr.Up
		if m.Status != "" {
			status, _ = sbr.ParseStatus(m.Status) // checked
		}
		born := int64(0)
		if m.Age != nil {
			born = *m.Age
		}
		members = append(members, sbr.Member{
			ID: sbr.ID(m.Name), Name: m.Name, Addr: m.Addr, Roles: m.Roles, Born: born, Status: status, Unreachable: unreachable[m.Name],
		})
	}
	reports := make([]sbr.Report, 0, len(in.Reachability))
	for _, r := range in.Reachability {
		reports = append(reports, sbr.Report{Observer: sbr.ID(r.Observer), Subject: sbr.ID(r.Subject)})
	}
	seenBy := make([]sbr.ID, 0, len(in.SeenBy))
	for _, name := range in.SeenBy {
		seenBy = append(seenBy, sbr.ID(name))
	}
	return sbr.NewView(sbr.ID(in.Self), members, reports, seenBy)
}

// unreachable is the list, or the subjects of reachability where it is absent. Self is never in it: what others say of it
// makes it indirectly connected, not unreachable to itself.
func (in *decideInput) unreachable() map[string]bool {
	set := make(map[string]bool)
	if in.Unreachable != nil {
		for _, name := range *in.Unreachable {
			set[name] = true
		}
		return set
	}
	for _, r := range in.Reachability {
		set[r.Subject] = r.Subject != in.Self
	}
	return set
}
