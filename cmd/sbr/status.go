package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr"
)

const statusHelp = `Status asks a running sbr agent how it is: what its member sees, who leads, when it decides, who holds
the lease, the last verdict, and where the singletons run whose programs are attached to it.
With -o json it prints the agent's answer as it came.

With --watch it asks every second: on a terminal it draws the answer anew, elsewhere it prints one line (or one object) for each change.
An agent that stops answering meanwhile is asked again.
` + agentHelp + `

Exit statuses: 0 an agent answered; 1 none did; 2 bad usage; 3 with --check: an agent answered, but its member is not up.`

const statusExample = `  sbr status
  sbr status -f sbr.yaml --check
  sbr status --url https://n1.example.com:7380 --ca-file ca.pem --token-file token -o json
  sbr status --watch`

func newStatus(s streams) *cobra.Command {
	c := &cobra.Command{Use: "status", Short: "ask a running agent how it is", Long: statusHelp,
		Example: statusExample, Args: cobra.NoArgs}
	check := c.Flags().Bool("check", false, "exit status 3 unless the state is up")
	c.RunE = s.showAgent(c, statusView, func(a *agentAnswer) error {
		if *check && a.State != sbr.StateUp {
			return exit{fmt.Errorf("%s is %s, not up", a.name(), clean(string(a.State))), exitHeld}
		}
		return nil
	})
	c.MarkFlagsMutuallyExclusive("check", "watch")
	return c
}

// showAgent makes of c a verb that asks an agent and shows its answer, once or with --watch. then, where it
// is not nil, judges the one answer.
func (s streams) showAgent(c *cobra.Command, view agentView,
	then func(*agentAnswer) error) func(*cobra.Command, []string) error {
	flags, watching, output := addAgent(c), addWatch(c), addFormat(c)
	return flags.asking(func(ctx context.Context, client *agentClient, _ []string) error {
		if watching.on() {
			return watching.run(ctx, s, client, view, *output)
		}
		a, err := client.status(ctx)
		if err != nil {
			return err
		}
		err = s.show(*output, view.json(a), func(p painter) string { return view.text(a, p) })
		if err != nil || then == nil {
			return err
		}
		return then(a)
	})
}

// agentView is one way to show an answer.
type agentView struct {
	text func(*agentAnswer, painter) string
	line func(*agentAnswer) string // for --watch
	json func(*agentAnswer) any    // one object
}

var statusView = agentView{text: statusText, line: statusLine, json: func(a *agentAnswer) any {
	return json.RawMessage(a.raw)
}}

// change is what --watch prints without a terminal: one line.
func (v agentView) change(a *agentAnswer, output string) (string, error) {
	if output == formatText {
		return v.line(a), nil
	}
	var line strings.Builder
	err := writeChange(&line, output, v.json(a))
	return strings.TrimSuffix(line.String(), "\n"), err
}

var statusDown = sbr.Down.String()

// listed is how many names a line shows: in a cluster of hundreds the rest is for sbr members.
const listed = 20

// statusText is the answer for people.
func statusText(a *agentAnswer, p painter) string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-13s%s\n", name, fmt.Sprintf(format, args...))
	}
	switch {
	case a.unwatched():
		row("member", "a node of %s; %s", clean(a.System), unwatched)
	case a.Member == "":
		row("member", "of %s; its name comes from the Serf agent", clean(a.System))
	default:
		row("member", "%s of %s, incarnation %s", p.bold(clean(a.Member)), clean(a.System), clean(a.Incarnation))
	}
	row("state", "%s", p.state(a.State))
	if a.StartingBecause != "" {
		row("  waits for", "%s", strings.TrimPrefix(clean(a.StartingBecause), "waiting for "))
	}
	if a.SuspendedSince != nil {
		row("  since", "%s, %s", a.SuspendedSince.UTC().Format(time.RFC3339),
			ago(a.SuspendedSince.Truncate(time.Second), a.now))
	}
	if a.SuspendedBecause != "" {
		row("  because", "%s", clean(a.SuspendedBecause))
	}
	if a.Deadline != nil {
		row("  decides", "%s if nothing changes", within(*a.Deadline, a.now))
	}
	if a.alone() {
		row("lease", "%s", leaseName(&a.Lease))
	} else {
		membershipText(row, a, p)
	}
	for i := range a.Singletons {
		row("singleton", "%s", singletonText(&a.Singletons[i]))
	}
	row("rules", "digest %s, version %s", clean(a.ConfigDigest), clean(a.Version))
	for _, warning := range statusWarnings(a) {
		fmt.Fprintln(&b, p.yellow("warning: "+warning))
	}
	return b.String()
}

// alone reports whether the member has not looked at its cluster yet, or never will.
func (a *agentAnswer) alone() bool {
	return a.unwatched() || a.State == downing.StateStarting && len(a.Members) == 0
}

func membershipText(row func(name, format string, args ...any), a *agentAnswer, p painter) {
	members := membersText(a)
	if a.MembersAsOf != nil {
		members = p.yellow("as of "+ago(*a.MembersAsOf, a.now)) + ": " + members
	}
	row("members", "%s", members)
	downed := downedNames(a)
	missing := slices.DeleteFunc(slices.Clone(a.Unreachable), func(name string) bool {
		return slices.Contains(downed, name)
	})
	if len(missing) > 0 {
		row("unreachable", "%s", p.red(namesText(missing)))
	}
	if len(downed) > 0 {
		row("downed", "%s", p.yellow(namesText(downed)))
	}
	row("leader", "%s", leaderText(a))
	row("lease", "%s", leaseText(a))
	verdictText(row, a)
}

func verdictText(row func(name, format string, args ...any), a *agentAnswer) {
	v := &a.Verdict
	if v.Token == 0 {
		row("verdict", "none yet")
		return
	}
	row("verdict", "token %d, by %s", v.Token, clean(v.DecidedBy))
	row("", "%s", clean(v.Reason))
	row("  survive", "%s", cmp.Or(namesText(v.Survivors), "-"))
	row("  down", "%s", cmp.Or(namesText(v.Down), "-"))
}

// statusWarnings are what an operator should put right.
func statusWarnings(a *agentAnswer) (all []string) {
	if a.Lease.Refused != "" {
		all = append(all, "the lease store refuses this member: "+clean(a.Lease.Refused)+"; see sbr lease doctor")
	}
	if a.State != downing.StateStarting && a.Lease.Kind != "" && a.Lease.Store == "" {
		all = append(all, "it is not known which store keeps the lease, so a member with another one is not noticed; "+
			"see sbr lease doctor")
	}
	if a.StateFile != "" {
		all = append(all, "the state file cannot be written: "+clean(a.StateFile)+
			"; a restart would forget who the members are: free some space")
	}
	if len(a.OtherStore) > 0 {
		all = append(all, "the lease in another store than the cluster's: "+namesText(a.OtherStore)+
			"; give them the lease section of the others")
	}
	if len(a.Disagree) > 0 {
		all = append(all, "other rules than this member's: "+namesText(a.Disagree)+
			"; give all members the same configuration")
	}
	if len(a.Untagged) > 0 {
		all = append(all, "members without a resolver, which are not counted: "+namesText(a.Untagged))
	}
	return all
}

func membersText(a *agentAnswer) string {
	total, out := 0, 0
	for i := range a.Members {
		if m := &a.Members[i]; m.Status != statusDown {
			total++
			if !m.Reachable {
				out++
			}
		}
	}
	text := fmt.Sprintf("%d, all reachable", total)
	if out > 0 {
		text = fmt.Sprintf("%d, %d reachable, %d unreachable", total, total-out, out)
	}
	if n := len(downedNames(a)); n > 0 {
		text += fmt.Sprintf(", %d downed", n)
	}
	return text
}

// downedNames are the members that were downed and are still listed, and those that the newest verdict downed
// and that are not back.
func downedNames(a *agentAnswer) (names []string) {
	for _, m := range slices.Concat(a.Members, a.Downed) {
		if m.Status == statusDown {
			names = append(names, m.Name)
		}
	}
	return names
}

func leaderText(a *agentAnswer) string {
	switch {
	case a.Leader == "":
		return "no member can lead this side"
	case a.Responsible:
		return clean(a.Leader) + ", this member"
	default:
		return clean(a.Leader)
	}
}

func leaseName(l *downing.LeaseStatus) string {
	switch name := clean(l.Name); {
	case name == "":
		return "none"
	case l.Kind == "": // an agent of an older version does not say it
		return name
	default:
		return name + " (" + clean(l.Kind) + ")"
	}
}

func leaseText(a *agentAnswer) string {
	l := &a.Lease
	switch {
	case l.Name == "":
		return leaseName(l)
	case l.Holder == "":
		return fmt.Sprintf("%s, free, token %d", leaseName(l), l.Token)
	default:
		return fmt.Sprintf("%s, held by %s, token %d", leaseName(l), clean(l.Holder), l.Token)
	}
}

// statusLine is what --watch prints for a change.
func statusLine(a *agentAnswer) string {
	switch {
	case a.unwatched():
		return fmt.Sprintf("%s  %s: %s", a.name(), a.State, unwatched)
	case a.alone():
		return fmt.Sprintf("%s  %s: %s", a.name(), a.State, clean(a.StartingBecause))
	}
	line := fmt.Sprintf("%s  %s  %s", a.name(), a.State, membersText(a))
	if a.Leader != "" {
		line += "  leader " + clean(a.Leader)
	}
	if a.Lease.Holder != "" {
		line += "  lease held by " + clean(a.Lease.Holder)
	}
	if v := &a.Verdict; v.Token > 0 {
		line += fmt.Sprintf("  (verdict %d: %d survive, %d go down)", v.Token, len(v.Survivors), len(v.Down))
	}
	return line
}

// state is coloured by how well it is.
func (p painter) state(s sbr.State) string {
	text := clean(string(s))
	switch s {
	case sbr.StateUp:
		return p.green(text)
	case sbr.StateDown:
		return p.red(text)
	default:
		return p.yellow(text)
	}
}

// within is a moment to come, for people.
func within(at, now time.Time) string {
	d := at.Sub(now).Round(time.Second)
	if d <= 0 {
		return "now"
	}
	return "in " + d.String()
}

func namesText(all []string) string { return clean(first(listed, all, " ")) }

// clean replaces what a terminal would obey: the texts come from other machines.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
