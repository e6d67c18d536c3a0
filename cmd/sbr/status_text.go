package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// listed is how many names a line shows: in a cluster of hundreds the rest is for sbr members.
const listed = 20

// statusText is the answer for people.
func statusText(a *agentAnswer, p painter) string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-13s%s\n", name, fmt.Sprintf(format, args...))
	}
	row("member", "%s of %s, incarnation %s", p.bold(clean(a.Member)), clean(a.System), clean(a.Incarnation))
	row("state", "%s", p.state(a.State))
	if a.StartingBecause != "" {
		row("  waits for", "%s", clean(a.StartingBecause))
	}
	if a.SuspendedSince != nil {
		row("  since", "%s, %s", a.SuspendedSince.UTC().Format(time.RFC3339), ago(a.SuspendedSince.Truncate(time.Second), a.now))
	}
	if a.SuspendedBecause != "" {
		row("  because", "%s", clean(a.SuspendedBecause))
	}
	if a.Deadline != nil {
		row("  decides", "%s if nothing changes", within(*a.Deadline, a.now))
	}
	row("members", "%s", membersText(a))
	if len(a.Unreachable) > 0 {
		row("unreachable", "%s", p.red(namesText(a.Unreachable)))
	}
	row("leader", "%s", leaderText(a))
	row("lease", "%s", leaseText(a))
	verdictText(row, a)
	row("rules", "digest %s, version %s", clean(a.ConfigDigest), clean(a.Version))
	for _, warning := range statusWarnings(a) {
		fmt.Fprintln(&b, p.yellow("warning: "+warning))
	}
	return b.String()
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
	if len(a.OtherStore) > 0 {
		all = append(all, "the lease in another store than the cluster's: "+namesText(a.OtherStore)+"; give them the lease section of the others")
	}
	if len(a.Disagree) > 0 {
		all = append(all, "other rules than this member's: "+namesText(a.Disagree)+"; give all members the same configuration")
	}
	if len(a.Untagged) > 0 {
		all = append(all, "members without a resolver, which are not counted: "+namesText(a.Untagged))
	}
	return all
}

func membersText(a *agentAnswer) string {
	total, out := len(a.Members), len(a.Unreachable)
	if out == 0 {
		return fmt.Sprintf("%d, all reachable", total)
	}
	return fmt.Sprintf("%d, %d reachable, %d unreachable", total, total-out, out)
}

func leaderText(a *agentAnswer) string {
	switch {
	case a.Leader == "":
		return "nobody can lead this side"
	case a.Responsible:
		return clean(a.Leader) + ", this member"
	default:
		return clean(a.Leader)
	}
}

func leaseText(a *agentAnswer) string {
	l := &a.Lease
	name := clean(l.Name)
	if l.Kind != "" { // an agent of an older version does not say it
		name += " (" + clean(l.Kind) + ")"
	}
	switch {
	case l.Name == "":
		return "none"
	case l.Holder == "":
		return fmt.Sprintf("%s, free, token %d", name, l.Token)
	default:
		return fmt.Sprintf("%s, held by %s, token %d", name, clean(l.Holder), l.Token)
	}
}

// statusLine is what --watch prints for a change.
func statusLine(a *agentAnswer) string {
	line := fmt.Sprintf("%s  %s  %s", clean(a.Member), a.State, membersText(a))
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

// namesText joins the first of them.
func namesText(all []string) string {
	shown := make([]string, 0, min(len(all), listed))
	for _, name := range all[:min(len(all), listed)] {
		shown = append(shown, clean(name))
	}
	text := strings.Join(shown, " ")
	if more := len(all) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// clean replaces what a terminal would obey: the texts come from other machines.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
